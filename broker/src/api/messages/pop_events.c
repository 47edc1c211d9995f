// pop_events.c: claimed segments as CloudEvents, for consumers that accept nothing else.
//
// A message pushed as an event is returned as that event; any other message becomes one.  Where
// it was and what its acknowledgement needs are extension attributes whose names begin with
// "queen".
//
// Runs on the home's thread, so it must not touch the request nor its arena.
#include "api/api_int.h"
#include "api/messages/pop_int.h"
#include "api/tracing.h"
#include "base/str.h"
#include "segment/codec.h"
#include "json/write.h"

// The metadata of a message; raw JSON.
struct told {
    span event, encoding, parent, state;
};

static unsigned put_run(struct buf *out, struct pop_op *op, const struct pop_result *result,
                        const struct pop_claim *claim, const struct pop_run *run);
static struct told read_meta(span meta);
static void put_own(struct buf *out, const struct pop_claim *claim, const uint8_t id[16],
                    int64_t created_us);
static void event_put_place(struct buf *out, const struct pop_op *op,
                            const struct pop_result *result, const struct pop_claim *claim);

void pop_render_events(struct pop_op *op, const struct pop_result *result)
{
    struct pop *p = container_of(op, struct pop, op);
    struct buf *out = &op->out;

    if (result->lease) {
        memcpy(p->lease, result->lease, sizeof p->lease);
        p->has_lease = true;
    }
    if (p->as == POP_EVENTS)
        buf_putc(out, '[');
    for (unsigned i = 0; i < result->n_claims; i++)
        for (unsigned k = 0; k < result->claims[i].n_runs; k++) {
            const struct pop_claim *claim = &result->claims[i];
            const struct pop_run *run = &claim->runs[k];
            unsigned n = put_run(out, op, result, claim, run);
            if (n < run->n)
                pop_aside_add(p, claim->lane, run->first_seq + run->from + n, run->n - n);
        }
    if (out->failed || op->n_messages == 0)
        return;
    out->len--; // the last comma
    if (p->as == POP_EVENTS)
        buf_putc(out, ']');
}

static void put_text_field(struct buf *out, const char *name, span text)
{
    buf_printf(out, ",\"%s\":", name);
    js_put_text(out, text);
}

// Returns how many it could read.
static unsigned put_run(struct buf *out, struct pop_op *op, const struct pop_result *result,
                        const struct pop_claim *claim, const struct pop_run *run)
{
    struct pop *p = container_of(op, struct pop, op);
    struct segment_walk walk = segment_walk(run->body);
    struct segment_message m;
    uint8_t id[16], name[16];

    if (run->keys.len / 16 < (size_t)run->from + run->n)
        return 0;
    segment_skip(&walk, run->from);
    for (unsigned i = 0; i < run->n; i++) {
        unsigned pos = run->from + i;
        if (!segment_next(&walk, &m))
            return i;
        const uint8_t *key = (const uint8_t *)run->keys.ptr + (size_t)16 * pos;
        struct told told = read_meta(m.meta);
        if (m.meta.len > 0 && p->links_wanted)
            tracing_link(&p->links, m.meta);
        if (m.id)
            memcpy(id, m.id, sizeof id);
        else
            segment_message_id(run->created_us, pos, claim->lane, id);

        if (told.event.len > 2)
            buf_put(out, (span){told.event.ptr, told.event.len - 1}); // without its brace
        else
            put_own(out, claim, id, run->created_us);
        if (told.encoding.len > 0)
            buf_put_lit(out, ",\"data_base64\":");
        else
            buf_put_lit(out, ",\"data\":");
        if (m.encrypted)
            broker_unseal(result->home, out, m.payload, broker_seal_key(m.txid, key, name));
        else
            buf_put(out, m.payload);
        if (told.parent.len > 0) {
            buf_put_lit(out, ",\"traceparent\":");
            buf_put(out, told.parent);
        }
        if (told.state.len > 0) {
            buf_put_lit(out, ",\"tracestate\":");
            buf_put(out, told.state);
        }
        buf_put_lit(out, ",\"queenmessageid\":\"");
        buf_put_uuid(out, id);
        buf_put_lit(out, "\",\"queentransactionid\":");
        if (m.txid.ptr) {
            js_put_text(out, m.txid);
        } else {
            buf_putc(out, '"');
            buf_put_uuid(out, key);
            buf_putc(out, '"');
        }
        event_put_place(out, op, result, claim);
        buf_put_lit(out, "},");
    }
    return run->n;
}

static struct told read_meta(span meta)
{
    struct told told = {0};
    struct js j = js_read(meta);
    span key;

    if (meta.len == 0)
        return told;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        if (span_eq(key, SPAN("cloudEvent")))
            told.event = raw;
        else if (span_eq(key, SPAN("dataEncoding")))
            told.encoding = raw;
        else if (span_eq(key, SPAN("traceparent")))
            told.parent = raw;
        else if (span_eq(key, SPAN("tracestate")))
            told.state = raw;
    }
    // An event that came with a context of its own has it among its attributes.
    struct js attributes = js_read(told.event);
    js_enter_object(&attributes);
    while (told.event.len > 0 && js_next_key(&attributes, &key)) {
        js_skip(&attributes);
        if (span_eq(key, SPAN("traceparent")))
            told.parent = told.state = SPAN_NONE;
    }
    return told;
}

// A message that was no event becomes one.
static void put_own(struct buf *out, const struct pop_claim *claim, const uint8_t id[16],
                    int64_t created_us)
{
    char time[STR_TS_US];

    buf_put_lit(out, "{\"specversion\":\"1.0\",\"id\":\"");
    buf_put_uuid(out, id);
    buf_put_lit(out, "\",\"source\":\"/queues/");
    for (size_t i = 0; i < claim->queue.len; i++) {
        unsigned char c = (unsigned char)claim->queue.ptr[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                     (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            buf_putc(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
    str_format_ts_us(created_us, time);
    buf_put_lit(
        out,
        "\",\"type\":\"queen.message\",\"datacontenttype\":\"application/json\",\"time\":\"");
    buf_put_bytes(out, time, sizeof time);
    buf_putc(out, '"');
}

static void event_put_place(struct buf *out, const struct pop_op *op,
                            const struct pop_result *result, const struct pop_claim *claim)
{
    put_text_field(out, "queenqueue", claim->queue);
    put_text_field(out, "queenpartition", claim->partition);
    buf_put_lit(out, ",\"queenpartitionid\":\"");
    buf_put_uuid(out, claim->partition_id);
    buf_putc(out, '"');
    if (result->lease) {
        buf_put_lit(out, ",\"queenleaseid\":\"");
        buf_put_uuid(out, result->lease);
        buf_putc(out, '"');
    }
    put_text_field(out, "queengroup", op->group);
    buf_put_lit(out, ",\"queenretrycount\":");
    buf_put_i64(out, claim->retries);
}
