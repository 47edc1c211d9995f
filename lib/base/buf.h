// buf.h: a growable byte buffer with a hard maximum.
//
// Invariants: len <= cap <= max. If growing fails (maximum reached or no memory), the buffer
// keeps its contents, `failed` is set, and later puts do nothing. Callers put without checks
// and test `failed` once, at the end. {0} is a valid empty buffer with the default maximum.
#ifndef QUEEN_BASE_BUF_H
#define QUEEN_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attrs.h"
#include "base/span.h"

struct buf {
    char *ptr;
    size_t len, cap;
    size_t max; // 0: 1 GB
    bool failed;
};

void buf_free(struct buf *b);              // empty and reusable afterwards
bool buf_grow(struct buf *b, size_t more); // the slow path of buf_reserve
static inline void buf_reset(struct buf *b) { b->len = 0, b->failed = false; }
static inline span buf_span(const struct buf *b) { return (span){b->ptr, b->len}; }

// Makes room for `more` bytes at ptr + len; false if that fails.
static inline bool buf_reserve(struct buf *b, size_t more)
{
    return b->cap - b->len >= more || buf_grow(b, more);
}

static inline void buf_put_bytes(struct buf *b, const void *bytes, size_t n)
{
    if (n > 0 && buf_reserve(b, n)) {
        memcpy(b->ptr + b->len, bytes, n);
        b->len += n;
    }
}
static inline void buf_put(struct buf *b, span s) { buf_put_bytes(b, s.ptr, s.len); }
static inline void buf_putc(struct buf *b, char c) { buf_put_bytes(b, &c, 1); }
#define buf_put_lit(b, literal) buf_put_bytes((b), "" literal, sizeof(literal) - 1)

void buf_put_u64(struct buf *b, uint64_t v); // decimal
void buf_put_i64(struct buf *b, int64_t v);
void buf_put_uuid(struct buf *b, const uint8_t id[16]); // 36 characters, lower case
// Big-endian, as in PostgreSQL's binary formats and in the segment codec.
void buf_put_be16(struct buf *b, uint16_t v);
void buf_put_be32(struct buf *b, uint32_t v);
void buf_put_be64(struct buf *b, uint64_t v);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
