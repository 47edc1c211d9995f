// format.c: records to bytes and back.
#include "spool/format.h"

#include "base/map.h"

// magic 8 | version 4 | zero 4 | progress: offset 8, its checksum 8
static const char magic[8] = {'Q', 'U', 'E', 'E', 'N', 'B', 'U', 'F'};

enum {
    HAS_TXID = 1,
    HAS_PRODUCER = 2,
    HAS_TRACE = 4,
    HAS_META = 8,
    HAS_DUE = 16,
    IS_SEALED = 32,
    KNOWN_FLAGS = 63
};
// flags 1 | buffered 8 | key 16 | queue length 2 | partition length 2
enum { FIXED_BYTES = 29 };

static uint32_t get_be32(const char *at)
{
    const unsigned char *p = (const unsigned char *)at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t get_be64(const char *at)
{
    return (uint64_t)get_be32(at) << 32 | get_be32(at + 4);
}

void spool_put_header(struct buf *out)
{
    buf_put_bytes(out, magic, sizeof magic);
    buf_put_be32(out, SPOOL_VERSION);
    buf_put_be32(out, 0);
    spool_put_progress(out, SPOOL_HEADER_BYTES);
}

void spool_put_progress(struct buf *out, uint64_t offset)
{
    size_t start = out->len;

    buf_put_be64(out, offset);
    if (!out->failed)
        buf_put_be64(out, XXH3_64bits(out->ptr + start, 8));
}

bool spool_read_header(span file, uint64_t *offset)
{
    if (file.len < SPOOL_HEADER_BYTES || memcmp(file.ptr, magic, sizeof magic) != 0 ||
        get_be32(file.ptr + 8) != SPOOL_VERSION)
        return false;
    // Ignore an invalid progress: records that are replayed twice are stored once.
    uint64_t at = get_be64(file.ptr + SPOOL_PROGRESS_AT);
    bool good = at >= SPOOL_HEADER_BYTES && get_be64(file.ptr + SPOOL_PROGRESS_AT + 8) ==
                                                XXH3_64bits(file.ptr + SPOOL_PROGRESS_AT, 8);
    *offset = good ? at : SPOOL_HEADER_BYTES;
    return true;
}

size_t spool_record_size(const struct spool_record *r)
{
    return SPOOL_FRAME_BYTES + FIXED_BYTES + (r->has_trace ? 16 : 0) +
           (r->txid.ptr ? 2 + r->txid.len : 0) + (r->producer.ptr ? 2 + r->producer.len : 0) +
           (r->meta.ptr ? 2 + r->meta.len : 0) + (r->due_us != 0 ? 8 : 0) + r->queue.len +
           r->partition.len + r->payload.len;
}

static void put_record_text(struct buf *out, span text)
{
    buf_put_be16(out, (uint16_t)text.len);
    buf_put(out, text);
}

void spool_put_record(struct buf *out, const struct spool_record *r)
{
    size_t start = out->len, size = spool_record_size(r);
    uint8_t flags =
        (uint8_t)((r->txid.ptr ? HAS_TXID : 0) | (r->producer.ptr ? HAS_PRODUCER : 0) |
                  (r->has_trace ? HAS_TRACE : 0) | (r->meta.ptr ? HAS_META : 0) |
                  (r->due_us != 0 ? HAS_DUE : 0) | (r->sealed ? IS_SEALED : 0));

    if (r->queue.len > UINT16_MAX || r->partition.len > UINT16_MAX ||
        r->txid.len > UINT16_MAX || r->producer.len > UINT16_MAX || r->meta.len > UINT16_MAX ||
        size > INT32_MAX)
        out->failed = true; // a length that is cut would damage the file
    if (out->failed || !buf_reserve(out, size))
        return;
    buf_put_be32(out, (uint32_t)(size - SPOOL_FRAME_BYTES));
    buf_put_be64(out, 0); // the checksum's place
    buf_putc(out, (char)flags);
    buf_put_be64(out, (uint64_t)r->buffered_us);
    buf_put_bytes(out, r->key, 16);
    put_record_text(out, r->queue);
    put_record_text(out, r->partition);
    if (r->has_trace)
        buf_put_bytes(out, r->trace, 16);
    if (r->txid.ptr)
        put_record_text(out, r->txid);
    if (r->producer.ptr)
        put_record_text(out, r->producer);
    if (r->meta.ptr)
        put_record_text(out, r->meta);
    if (r->due_us != 0)
        buf_put_be64(out, (uint64_t)r->due_us);
    buf_put(out, r->payload);

    // Seeded with the length, so that a damaged one is noticed.
    const char *body = out->ptr + start + SPOOL_FRAME_BYTES;
    size_t len = size - SPOOL_FRAME_BYTES, end = out->len;
    uint64_t sum = XXH3_64bits_withSeed(body, len, len);
    out->len = start + 4;
    buf_put_be64(out, sum);
    out->len = end;
}

static bool record_take(span *rest, size_t n, span *out)
{
    if (rest->len < n)
        return false;
    *out = (span){rest->ptr, n};
    rest->ptr += n;
    rest->len -= n;
    return true;
}

static bool take_text(span *rest, span *out)
{
    span length;

    if (!record_take(rest, 2, &length))
        return false;
    return record_take(
        rest, (size_t)(unsigned char)length.ptr[0] << 8 | (unsigned char)length.ptr[1], out);
}

static bool read_record_body(span body, struct spool_record *r)
{
    span part;

    *r = (struct spool_record){0};
    if (!record_take(&body, 25, &part))
        return false;
    unsigned flags = (unsigned char)part.ptr[0];
    r->buffered_us = (int64_t)get_be64(part.ptr + 1);
    memcpy(r->key, part.ptr + 9, 16);
    if ((flags & ~KNOWN_FLAGS) != 0 || !take_text(&body, &r->queue) ||
        !take_text(&body, &r->partition))
        return false;
    r->has_trace = flags & HAS_TRACE;
    r->sealed = flags & IS_SEALED;
    if (r->has_trace) {
        if (!record_take(&body, 16, &part))
            return false;
        memcpy(r->trace, part.ptr, 16);
    }
    if (((flags & HAS_TXID) && !take_text(&body, &r->txid)) ||
        ((flags & HAS_PRODUCER) && !take_text(&body, &r->producer)) ||
        ((flags & HAS_META) && !take_text(&body, &r->meta)))
        return false;
    if (flags & HAS_DUE) {
        if (!record_take(&body, 8, &part))
            return false;
        r->due_us = (int64_t)get_be64(part.ptr);
        if (r->due_us == 0) // never written
            return false;
    }
    r->payload = body;
    return true;
}

enum spool_found spool_take_record(span bytes, struct spool_record *r, uint64_t *size)
{
    *size = SPOOL_FRAME_BYTES + FIXED_BYTES;
    if (bytes.len == 0)
        return SPOOL_END;
    if (bytes.len < SPOOL_FRAME_BYTES)
        return SPOOL_SHORT;
    uint64_t len = get_be32(bytes.ptr);
    if (len < FIXED_BYTES) {
        *size = 0;
        return SPOOL_DAMAGED;
    }
    *size = SPOOL_FRAME_BYTES + len;
    if (bytes.len < *size)
        return SPOOL_SHORT;
    span body = {bytes.ptr + SPOOL_FRAME_BYTES, (size_t)len};
    if (XXH3_64bits_withSeed(body.ptr, body.len, len) != get_be64(bytes.ptr + 4) ||
        !read_record_body(body, r))
        return SPOOL_DAMAGED;
    return SPOOL_RECORD;
}
