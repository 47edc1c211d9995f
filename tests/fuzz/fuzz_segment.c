// fuzz_segment.c: any bytes as a segment's body: no crash, no byte outside, and what is
// accepted is written again as the same bytes.
//
// The first byte is the number of messages that segment_skip() skips. The rest is the body.
//
// build: broker/src/segment/codec.c
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "segment/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static span body; // of exact length, so that ASan sees an overrun

static void check_inside(const void *ptr, size_t len)
{
    const char *p = ptr;

    if (p < body.ptr || len > body.len || p > body.ptr + body.len - len)
        BUG("a field outside of the body");
}

static void check_fields(const struct segment_message *m)
{
    if (m->txid.ptr)
        check_inside(m->txid.ptr, m->txid.len);
    if (m->producer.ptr)
        check_inside(m->producer.ptr, m->producer.len);
    if (m->trace)
        check_inside(m->trace, 16);
    if (m->id)
        check_inside(m->id, 16);
    check_inside(m->payload.ptr, m->payload.len);
}

// Walks all of it; returns how many messages were accepted.
static unsigned walk_and_write(int *rc)
{
    struct segment_walk w = segment_walk(body);
    struct segment_message m;
    struct buf again = {0};
    unsigned n = 0;

    segment_begin(&again);
    for (const char *from = w.pos; segment_next(&w, &m); from = w.pos, n++) {
        check_fields(&m);
        if (segment_size(&m) != (size_t)(w.pos - from))
            BUG("message %u: another size than it has", n);
        segment_put(&again, &m);
    }
    if (n > 0 && (again.len > body.len || memcmp(again.ptr, body.ptr, again.len) != 0))
        BUG("%u messages are not written as they were read", n);
    if (w.rc == 0 && again.len != body.len)
        BUG("accepted, but not to the end");
    if (segment_next(&w, &m))
        BUG("a message after the end");
    buf_free(&again);
    *rc = w.rc;
    return n;
}

static void skip(unsigned jump, unsigned n, int rc)
{
    struct segment_walk w = segment_walk(body);

    if (segment_skip(&w, jump) != (jump <= n))
        BUG("skipped %u of %u", jump, n);
    if (jump <= n && w.rc != 0 && jump > 0)
        BUG("damage before it was met");
    if (jump > n && w.rc != rc)
        BUG("skip and next disagree about damage");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *copy = malloc(size > 1 ? size - 1 : 1);
    int rc;

    memcpy(copy, data + 1, size - 1);
    body = (span){copy, size - 1};
    unsigned n = walk_and_write(&rc);
    skip(data[0], n, rc);
    skip(n, n, rc);
    skip(n + 1, n, rc);
    free(copy);
    return 0;
}
