// pop_render.c: claimed segments into the body of a pop's answer.
//
// The hot path of delivery.  The part that is the same for all messages of a run (from
// createdAt to the closing brace) is written once and copied from where it stands in the
// answer.
//
// Runs on the home's thread, so it must not touch the request nor its arena.
#include "api/api_int.h"
#include "api/messages/pop_int.h"
#include "api/tracing.h"
#include "base/str.h"
#include "segment/codec.h"
#include "json/write.h"

enum {
    HEAD_BYTES = 256,   // {"id": to "data": and ,"producerSub": around a message's own texts
    SHARED_BYTES = 320, // from ,"createdAt": on, without names
};

// The text copied from message to message: offsets into the answer, which may move.
struct shared {
    size_t at, len;        // ,"createdAt":...} of this run
    size_t tail, tail_len; // ,"partitionId":...} of this claim
};

static size_t room_for(const struct pop_result *result);
static void put_top(struct buf *out, const struct pop_op *op, const struct pop_result *result);
static unsigned put_run(struct buf *out, struct pop_op *op, const struct pop_result *result,
                        const struct pop_claim *claim, const struct pop_run *run,
                        struct shared *s);
static void put_message(struct buf *out, const struct segment_message *m, const uint8_t id[16],
                        const uint8_t *key, struct broker *home);
static void put_shared(struct buf *out, const struct pop_op *op,
                       const struct pop_result *result, const struct pop_claim *claim,
                       const struct pop_run *run, struct shared *s);

void pop_render(struct pop_op *op, const struct pop_result *result)
{
    struct pop *p = container_of(op, struct pop, op);
    struct buf *out = &op->out;

    if (result->lease) {
        memcpy(p->lease, result->lease, sizeof p->lease);
        p->has_lease = true;
    }
    if (!buf_reserve(out, room_for(result)))
        return;
    put_top(out, op, result);
    for (unsigned i = 0; i < result->n_claims; i++) {
        const struct pop_claim *claim = &result->claims[i];
        struct shared s = {0};
        for (unsigned k = 0; k < claim->n_runs; k++) {
            const struct pop_run *run = &claim->runs[k];
            unsigned n = put_run(out, op, result, claim, run, &s);
            if (n < run->n)
                pop_aside_add(p, claim->lane, run->first_seq + run->from + n, run->n - n);
        }
    }
    if (out->failed || op->n_messages == 0)
        return;
    out->len--; // the last comma
    buf_put_lit(out, "]}");
}

// A good guess, so that the answer is rarely moved while it grows.
static size_t room_for(const struct pop_result *result)
{
    size_t room = 512;

    for (unsigned i = 0; i < result->n_claims; i++) {
        const struct pop_claim *c = &result->claims[i];
        for (unsigned k = 0; k < c->n_runs; k++) {
            const struct pop_run *s = &c->runs[k];
            size_t in_segment = s->keys.len / 16 > 0 ? s->keys.len / 16 : 1;
            room += s->n * (s->body.len / in_segment + 500 + c->queue.len + c->partition.len);
        }
    }
    return room;
}

static void put_lease(struct buf *out, const uint8_t *lease)
{
    buf_put_lit(out, ",\"leaseId\":\"");
    if (lease)
        buf_put_uuid(out, lease);
    buf_putc(out, '"');
}

static void put_top(struct buf *out, const struct pop_op *op, const struct pop_result *result)
{
    const struct pop_claim *first = &result->claims[0];
    unsigned n_partitions = 1;

    // Messages of one partition of a work queue may be several claims.
    for (unsigned i = 1; i < result->n_claims; i++)
        n_partitions += result->claims[i].lane != result->claims[i - 1].lane;

    buf_put_lit(out, "{\"success\":true,\"queue\":");
    js_put_text(out, first->queue);
    buf_put_lit(out, ",\"partition\":");
    js_put_text(out, first->partition);
    buf_put_lit(out, ",\"partitionId\":\"");
    buf_put_uuid(out, first->partition_id);
    buf_putc(out, '"');
    put_lease(out, result->lease);
    buf_put_lit(out, ",\"consumerGroup\":");
    js_put_text(out, op->group);
    buf_put_lit(out, ",\"partitionsClaimed\":");
    buf_put_u64(out, n_partitions);
    buf_put_lit(out, ",\"messages\":[");
}

// Returns how many it could read.
static unsigned put_run(struct buf *out, struct pop_op *op, const struct pop_result *result,
                        const struct pop_claim *claim, const struct pop_run *run,
                        struct shared *s)
{
    struct pop *p = container_of(op, struct pop, op);
    struct segment_walk walk = segment_walk(run->body);
    struct segment_message m;
    uint8_t id[16];

    if (run->keys.len / 16 < (size_t)run->from + run->n)
        return 0;
    segment_skip(&walk, run->from);
    for (unsigned i = 0; i < run->n; i++) {
        if (!segment_next(&walk, &m))
            return i;
        unsigned pos = run->from + i;
        if (m.meta.len > 0 && p->links_wanted)
            tracing_link(&p->links, m.meta);
        if (!m.id)
            segment_message_id(run->created_us, pos, claim->lane, id);
        put_message(out, &m, m.id ? m.id : id,
                    (const uint8_t *)run->keys.ptr + (size_t)16 * pos, result->home);
        if (i == 0) {
            put_shared(out, op, result, claim, run, s);
        } else if (buf_reserve(out, s->len)) {
            memcpy(out->ptr + out->len, out->ptr + s->at, s->len);
            out->len += s->len;
        }
    }
    return run->n;
}

// {"id" to "producerSub".  The three texts that may need escapes are rare or short.
static void put_message(struct buf *out, const struct segment_message *m, const uint8_t id[16],
                        const uint8_t *key, struct broker *home)
{
    size_t size =
        HEAD_BYTES + 6 * (m->txid.len + m->producer.len) + m->payload.len + m->meta.len;
    if (!buf_reserve(out, size))
        return;

    char *at = out->ptr + out->len;
    at = put_lit(at, "{\"id\":\"");
    at = put_uuid(at, id);
    at = put_lit(at, "\",\"transactionId\":\"");
    if (!m->txid.ptr) {
        at = put_uuid(at, key);
    } else if (!api_needs_escape(m->txid)) {
        at = put_span(at, m->txid);
    } else {
        out->len = (size_t)(at - out->ptr);
        js_put_escaped(out, m->txid);
        at = out->ptr + out->len;
    }
    if (m->trace) {
        at = put_lit(at, "\",\"traceId\":\"");
        at = put_uuid(at, m->trace);
        at = put_lit(at, "\",\"data\":");
    } else {
        at = put_lit(at, "\",\"traceId\":null,\"data\":");
    }
    if (m->encrypted) {
        uint8_t name[16];
        out->len = (size_t)(at - out->ptr);
        broker_unseal(home, out, m->payload, broker_seal_key(m->txid, key, name));
        if (!buf_reserve(out, size))
            return;
        at = out->ptr + out->len;
    } else {
        at = put_span(at, m->payload);
    }
    if (m->meta.len > 2) { // an object: its members become the message's
        *at++ = ',';
        at = put_span(at, (span){m->meta.ptr + 1, m->meta.len - 2});
    }
    if (m->producer.ptr) {
        at = put_lit(at, ",\"producerSub\":");
        out->len = (size_t)(at - out->ptr);
        js_put_text(out, m->producer);
    } else {
        at = put_lit(at, ",\"producerSub\":null");
        out->len = (size_t)(at - out->ptr);
    }
}

// The first message of a run writes what the others copy; the claim's part of it is written
// by the first run.
static void put_shared(struct buf *out, const struct pop_op *op,
                       const struct pop_result *result, const struct pop_claim *claim,
                       const struct pop_run *run, struct shared *s)
{
    if (!buf_reserve(out, SHARED_BYTES + s->tail_len))
        return;
    s->at = out->len;
    buf_put_lit(out, ",\"createdAt\":\"");
    str_format_ts_us(run->created_us, out->ptr + out->len);
    out->len += STR_TS_US;
    buf_putc(out, '"');

    if (s->tail_len > 0) {
        memcpy(out->ptr + out->len, out->ptr + s->tail, s->tail_len);
        out->len += s->tail_len;
    } else {
        s->tail = out->len;
        buf_put_lit(out, ",\"partitionId\":\"");
        buf_put_uuid(out, claim->partition_id);
        buf_put_lit(out, "\",\"partition\":");
        js_put_text(out, claim->partition);
        put_lease(out, result->lease);
        buf_put_lit(out, ",\"consumerGroup\":");
        js_put_text(out, op->group);
        buf_put_lit(out, ",\"queue\":");
        js_put_text(out, claim->queue);
        buf_put_lit(out, ",\"retryCount\":");
        buf_put_i64(out, claim->retries);
        buf_put_lit(out, "},");
        s->tail_len = out->len - s->tail;
    }
    s->len = out->len - s->at;
}
