// The segment body: version byte, then per message flags, optional fields, payload.
#include "segment/codec.h"

#include "base/err.h"

enum {
    VERSION = 1,
    HAS_TXID = 1,
    HAS_TRACE = 2,
    HAS_PRODUCER = 4,
    ENCRYPTED = 8,
    HAS_ID = 16,
    HAS_META = 32,
    KNOWN_FLAGS = 63,
};

void segment_begin(struct buf *body) { buf_putc(body, VERSION); }

size_t segment_size(const struct segment_message *m)
{
    return 1 + (m->txid.ptr ? 2 + m->txid.len : 0) + (m->trace ? 16 : 0) +
           (m->producer.ptr ? 2 + m->producer.len : 0) + (m->id ? 16 : 0) +
           (m->meta.ptr ? 2 + m->meta.len : 0) + 4 + m->payload.len;
}

size_t segment_id_at(const struct segment_message *m)
{
    return 1 + (m->txid.ptr ? 2 + m->txid.len : 0) + (m->trace ? 16 : 0) +
           (m->producer.ptr ? 2 + m->producer.len : 0);
}

bool segment_fits(const struct segment_message *m)
{
    return m->txid.len <= UINT16_MAX && m->producer.len <= UINT16_MAX &&
           m->meta.len <= SEGMENT_MAX_META && m->payload.len <= INT32_MAX;
}

void segment_put(struct buf *body, const struct segment_message *m)
{
    segment_put_head(body, m);
    if (!body->failed)
        buf_put(body, m->payload);
}

void segment_put_head(struct buf *body, const struct segment_message *m)
{
    if (!segment_fits(m))
        body->failed = true; // a length that is cut would make the whole segment unreadable
    if (body->failed || !buf_reserve(body, segment_size(m)))
        return;
    buf_putc(body,
             (char)((m->txid.ptr ? HAS_TXID : 0) | (m->trace ? HAS_TRACE : 0) |
                    (m->producer.ptr ? HAS_PRODUCER : 0) | (m->encrypted ? ENCRYPTED : 0) |
                    (m->id ? HAS_ID : 0) | (m->meta.ptr ? HAS_META : 0)));
    if (m->txid.ptr) {
        buf_put_be16(body, (uint16_t)m->txid.len);
        buf_put(body, m->txid);
    }
    if (m->trace)
        buf_put_bytes(body, m->trace, 16);
    if (m->producer.ptr) {
        buf_put_be16(body, (uint16_t)m->producer.len);
        buf_put(body, m->producer);
    }
    if (m->id)
        buf_put_bytes(body, m->id, 16);
    if (m->meta.ptr) {
        buf_put_be16(body, (uint16_t)m->meta.len);
        buf_put(body, m->meta);
    }
    buf_put_be32(body, (uint32_t)m->payload.len);
}

struct segment_walk segment_walk(span body)
{
    struct segment_walk w = {body.ptr, body.ptr + body.len, 0};

    if (body.len == 0 || body.ptr[0] != VERSION)
        w.rc = QE_BAD_SEGMENT;
    else
        w.pos++;
    return w;
}

static span codec_take(struct segment_walk *w, size_t n)
{
    if (w->rc != 0 || (size_t)(w->end - w->pos) < n) {
        w->rc = QE_BAD_SEGMENT;
        return (span){"", 0};
    }
    span s = {w->pos, n};
    w->pos += n;
    return s;
}

static size_t take_length(struct segment_walk *w, size_t width)
{
    span s = codec_take(w, width);
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n = n << 8 | (unsigned char)s.ptr[i];
    return n;
}

bool segment_next(struct segment_walk *w, struct segment_message *m)
{
    if (w->rc != 0 || w->pos == w->end)
        return false;

    unsigned flags = (unsigned char)*w->pos++;
    *m = (struct segment_message){.encrypted = (flags & ENCRYPTED) != 0};
    if ((flags & ~(unsigned)KNOWN_FLAGS) != 0)
        w->rc = QE_BAD_SEGMENT;
    if (flags & HAS_TXID)
        m->txid = codec_take(w, take_length(w, 2));
    if (flags & HAS_TRACE)
        m->trace = (const uint8_t *)codec_take(w, 16).ptr;
    if (flags & HAS_PRODUCER)
        m->producer = codec_take(w, take_length(w, 2));
    if (flags & HAS_ID)
        m->id = (const uint8_t *)codec_take(w, 16).ptr;
    if (flags & HAS_META)
        m->meta = codec_take(w, take_length(w, 2));
    m->payload = codec_take(w, take_length(w, 4));
    return w->rc == 0;
}

bool segment_skip(struct segment_walk *w, unsigned n)
{
    struct segment_message m;

    while (n > 0 && segment_next(w, &m))
        n--;
    return n == 0;
}

void segment_message_id(int64_t created_us, unsigned pos, int64_t lane, uint8_t id[16])
{
    uint64_t ms = (uint64_t)created_us / 1000, us = (uint64_t)created_us % 1000;
    uint64_t high = ms << 16 | 0x7000 | us << 2;
    uint64_t low = 1ull << 63 | (uint64_t)pos << 42 | ((uint64_t)lane & ((1ull << 42) - 1));

    for (unsigned i = 0; i < 8; i++) {
        id[i] = (uint8_t)(high >> (56 - 8 * i));
        id[8 + i] = (uint8_t)(low >> (56 - 8 * i));
    }
}
