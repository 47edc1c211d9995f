// write.c: escaping text and printing numbers.
#include "json/write.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void js_put_text(struct buf *b, span text)
{
    buf_putc(b, '"');
    js_put_escaped(b, text);
    buf_putc(b, '"');
}

void js_put_text_or_null(struct buf *b, span text)
{
    if (text.ptr)
        js_put_text(b, text);
    else
        buf_put_lit(b, "null");
}

static bool needs_escape(char c) { return (unsigned char)c < 0x20 || c == '"' || c == '\\'; }

static void put_escape(struct buf *b, char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", hex[] = "0123456789abcdef";

    const char *named = c == '\0' ? NULL : strchr(from, c);
    buf_putc(b, '\\');
    if (named) {
        buf_putc(b, to[named - from]);
    } else {
        buf_put_lit(b, "u00");
        buf_putc(b, hex[(unsigned char)c >> 4]);
        buf_putc(b, hex[c & 15]);
    }
}

void js_put_escaped(struct buf *b, span text)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!needs_escape(text.ptr[i]))
            continue;
        buf_put_bytes(b, text.ptr + from, i - from);
        put_escape(b, text.ptr[i]);
        from = i + 1;
    }
    if (text.len > from)
        buf_put_bytes(b, text.ptr + from, text.len - from);
}

void js_put_bool(struct buf *b, bool v)
{
    if (v)
        buf_put_lit(b, "true");
    else
        buf_put_lit(b, "false");
}

// Prints the shorter of the two usual precisions that reads back as the same number.
void js_put_number(struct buf *b, double v)
{
    if (!isfinite(v)) { // JSON has no NaN or infinity, but a tenant's table may contain them
        buf_put_lit(b, "null");
        return;
    }
    if (v == trunc(v) && fabs(v) < 9007199254740992.0) {
        buf_put_i64(b, (int64_t)v);
        return;
    }
    char text[32];
    int n = snprintf(text, sizeof text, "%.15g", v);
    if (strtod(text, NULL) != v)
        n = snprintf(text, sizeof text, "%.17g", v);
    buf_put_bytes(b, text, (size_t)n);
}
