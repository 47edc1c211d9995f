// known.c: finds a name among the known ones, and the nearest when it is none of them.
#include "base/known.h"

#include <stdio.h>

#include "base/str.h"

enum { SHORT = 2, SHOWN = 80 };

static char known_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

static bool is_same_rest(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (known_lower(a[i]) != known_lower(b[i]))
            return false;
    return true;
}

bool known_is_near(span name, span known)
{
    span a = name.len >= known.len ? name : known, b = name.len >= known.len ? known : name;
    size_t i = 0;

    if (known.len <= SHORT || a.len - b.len > 1)
        return false;
    while (i < b.len && known_lower(a.ptr[i]) == known_lower(b.ptr[i]))
        i++;
    if (i == b.len)
        return true; // the same, or one more character at the end
    if (a.len > b.len)
        return is_same_rest(a.ptr + i + 1, b.ptr + i, b.len - i);
    if (is_same_rest(a.ptr + i + 1, b.ptr + i + 1, a.len - i - 1))
        return true;
    return i + 1 < a.len && known_lower(a.ptr[i]) == known_lower(b.ptr[i + 1]) &&
           known_lower(a.ptr[i + 1]) == known_lower(b.ptr[i]) &&
           is_same_rest(a.ptr + i + 2, b.ptr + i + 2, a.len - i - 2);
}

// Name i; SPAN_NONE: there are no more.
static span name_at(const struct known_names *known, unsigned i)
{
    if (known->spans)
        return i < known->n_spans ? known->spans[i] : SPAN_NONE;
    return known->texts && known->texts[i] ? span_of(known->texts[i]) : SPAN_NONE;
}

// SPAN_NONE: none is similar.
static span nearest_to(span name, const struct known_names *known)
{
    span nearest = SPAN_NONE, at;
    unsigned best = (unsigned)(name.len < 64 ? name.len / 2 + 1 : 0);

    for (unsigned i = 0; (at = name_at(known, i)).ptr; i++) {
        unsigned d = known_is_near(name, at) ? 1 : str_distance(name, at);
        if (d < best) {
            best = d;
            nearest = at;
        }
    }
    return nearest;
}

static int known_refuse(span name, const struct known_names *known, const char *what,
                        struct fault *f)
{
    char shown[SHOWN + 1], names[128] = "";
    span nearest = nearest_to(name, known), at;
    size_t n = 0;

    str_clean_utf8(shown, sizeof shown, name);
    if (nearest.ptr)
        return fault_set(f, QE_BAD_PARAM, "unknown %s \"%s\"; did you mean \"%.*s\"?", what,
                         shown, (int)nearest.len, nearest.ptr);
    for (unsigned i = 0; (at = name_at(known, i)).ptr; i++) {
        if (n + at.len + 8 > sizeof names) {
            n += (size_t)snprintf(names + n, sizeof names - n, ", ...");
            break;
        }
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%.*s", n > 0 ? ", " : "",
                              (int)at.len, at.ptr);
    }
    if (n == 0)
        return fault_set(f, QE_BAD_PARAM, "unknown %s \"%s\": none is taken here", what, shown);
    return fault_set(f, QE_BAD_PARAM, "unknown %s \"%s\"; known: %s", what, shown, names);
}

int known_check(span name, const struct known_names *known, enum known_rule rule,
                const char *what, struct fault *f)
{
    bool is_near = false;
    span at;

    for (unsigned i = 0; (at = name_at(known, i)).ptr; i++) {
        if (span_eq(name, at))
            return 0;
        is_near = is_near || known_is_near(name, at);
    }
    return rule == KNOWN_ONLY || is_near ? known_refuse(name, known, what, f) : 0;
}
