// series.c: a line is `name value` or `name{labels} value`.
#include "cli/series.h"

#include <string.h>

#include "base/str.h"

bool series_next(span *text, const char *name, span *labels, double *value)
{
    span line, wanted = span_of(name);

    while (str_split(text, '\n', &line)) {
        if (!str_starts(line, wanted) ||
            (line.len > wanted.len && line.ptr[wanted.len] != ' ' &&
             line.ptr[wanted.len] != '{'))
            continue;
        const char *space = memrchr(line.ptr, ' ', line.len);
        if (!space || !str_parse_double(
                          (span){space + 1, line.len - (size_t)(space + 1 - line.ptr)}, value))
            continue;
        const char *open = memchr(line.ptr, '{', (size_t)(space - line.ptr));
        if (labels)
            *labels = open && space[-1] == '}' ? (span){open + 1, (size_t)(space - open) - 2}
                                               : SPAN_NONE;
        return true;
    }
    return false;
}

double series_sum(span text, const char *name)
{
    double sum = 0, v;

    while (series_next(&text, name, NULL, &v))
        sum += v;
    return sum;
}

bool series_has(span text, const char *name)
{
    double v;

    return series_next(&text, name, NULL, &v);
}

double series_max(span text, const char *name, span *labels)
{
    double most = 0, v;
    span where;

    *labels = SPAN_NONE;
    while (series_next(&text, name, &where, &v)) {
        if (v > most) {
            most = v;
            *labels = where;
        }
    }
    return most;
}
