// buf.c: growth, and the puts that are too long to be inline.
#include "base/buf.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/mem.h"

static const size_t default_max = (size_t)1 << 30;

void buf_free(struct buf *b)
{
    free(b->ptr);
    *b = (struct buf){.max = b->max};
}

bool buf_grow(struct buf *b, size_t more)
{
    size_t max = b->max > 0 ? b->max : default_max;
    if (b->failed || b->len > max || more > max - b->len)
        goto fail;

    size_t need = b->len + more;
    size_t cap = b->cap < 128 ? 256 : b->cap * 2;
    if (cap < need)
        cap = need;
    if (cap > max)
        cap = max;
    char *p = mem_try_realloc(b->ptr, cap);
    if (!p)
        goto fail;
    b->ptr = p;
    b->cap = cap;
    return true;

fail:
    // Drop the spare room. Otherwise a smaller put could still succeed and leave a gap where
    // the failed one belongs.
    b->cap = b->len;
    b->failed = true;
    return false;
}

void buf_put_u64(struct buf *b, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    buf_put_bytes(b, digits + at, sizeof digits - at);
}

void buf_put_i64(struct buf *b, int64_t v)
{
    if (v < 0)
        buf_putc(b, '-');
    buf_put_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void buf_put_uuid(struct buf *b, const uint8_t id[16])
{
    char text[36];
    id_format_uuid(id, text);
    buf_put_bytes(b, text, sizeof text);
}

void buf_put_be16(struct buf *b, uint16_t v)
{
    v = htobe16(v);
    buf_put_bytes(b, &v, sizeof v);
}

void buf_put_be32(struct buf *b, uint32_t v)
{
    v = htobe32(v);
    buf_put_bytes(b, &v, sizeof v);
}

void buf_put_be64(struct buf *b, uint64_t v)
{
    v = htobe64(v);
    buf_put_bytes(b, &v, sizeof v);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0 || !buf_reserve(b, (size_t)n + 1)) { // one for vsnprintf's NUL
        b->failed = true;
        b->cap = b->len;
        return;
    }
    va_start(args, fmt);
    vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    b->len += (size_t)n;
}
