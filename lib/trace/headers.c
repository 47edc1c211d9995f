// headers.c: splits and decodes the headers for a collector.
#include "trace/headers.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

static span trimmed(span s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s.ptr++, s.len--;
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static bool is_token(span s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

static bool is_value(span s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f)
            return false;
    return true;
}

// Appends the texts, each with its NUL, and remembers where they begin: the memory may move.
static bool read_one(span pair, struct buf *texts, size_t at[2])
{
    const char *sign = pair.len > 0 ? memchr(pair.ptr, '=', pair.len) : NULL;
    if (!sign)
        return false;
    span name = trimmed((span){pair.ptr, (size_t)(sign - pair.ptr)});
    span value = trimmed((span){sign + 1, pair.len - (size_t)(sign + 1 - pair.ptr)});

    at[0] = texts->len;
    buf_put(texts, name);
    buf_putc(texts, '\0');
    at[1] = texts->len;
    bool ok = is_token(name) && str_percent_decode(value, false, texts) &&
              is_value((span){texts->ptr + at[1], texts->len - at[1]});
    buf_putc(texts, '\0');
    return ok && !texts->failed;
}

// The text may be a secret, so errors do not repeat it.
int trace_headers_read(const char *text, struct trace_headers *h, struct fault *f)
{
    size_t at[TRACE_MAX_HEADERS][2];
    struct buf texts = {0};
    span rest = span_of(text), pair;
    int rc = 0;

    *h = (struct trace_headers){0};
    while (rc == 0 && str_split(&rest, ',', &pair)) {
        if (trimmed(pair).len == 0)
            continue;
        if (h->n == TRACE_MAX_HEADERS)
            rc = fault_set(f, QE_CONF, "there are more than %d headers", TRACE_MAX_HEADERS);
        else if (!read_one(pair, &texts, at[h->n]))
            rc = fault_set(f, QE_CONF, "header %u is not name=value", h->n + 1);
        else
            h->n++;
    }
    if (rc != 0) {
        h->n = 0;
        buf_free(&texts);
        return rc;
    }
    h->memory = texts.ptr;
    for (unsigned i = 0; i < h->n; i++)
        h->at[i] = (struct fetch_header){texts.ptr + at[i][0], texts.ptr + at[i][1]};
    return 0;
}

void trace_headers_deinit(struct trace_headers *h)
{
    free(h->memory);
    *h = (struct trace_headers){0};
}
