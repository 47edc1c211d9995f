// msg.c: writes requests and reads answers.
#include "bench/load/msg.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/mem.h"
#include "bench/load/check.h"
#include "json/write.h"

enum {
    POOL_BYTES = 4 << 20, // random fill: far longer than a server's compression window
    LENGTH_DIGITS = 10,
};

void bench_text_init(struct bench_text *t, const struct bench_conf *conf)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    t->conf = conf;
    t->run = (uint32_t)id_random_u64();
    t->origin_us = clock_mono_us();
    t->fill_len = (size_t)conf->payload + (conf->random ? POOL_BYTES : 0);
    t->fill = mem_new_array(char, t->fill_len);
    for (size_t i = 0; i < t->fill_len; i++)
        t->fill[i] = conf->random ? alphabet[id_random_u64() % 64] : 'x';
}

void bench_text_deinit(struct bench_text *t) { free(t->fill); }

// ---- requests ----

static void put_head(struct buf *out, const struct bench_text *t)
{
    buf_put_lit(out, " HTTP/1.1\r\nHost: ");
    buf_put(out, span_of(t->conf->host));
    buf_putc(out, ':');
    buf_put(out, span_of(t->conf->port));
    if (t->conf->token) {
        buf_put_lit(out, "\r\nAuthorization: Bearer ");
        buf_put(out, span_of(t->conf->token));
    }
    buf_put_lit(out, "\r\n");
}

// The length is not known yet: leaves blanks for it and returns the start of the body.
static size_t begin_post(struct buf *out, const struct bench_text *t, span path)
{
    buf_reset(out);
    buf_put_lit(out, "POST ");
    buf_put(out, path);
    put_head(out, t);
    buf_put_lit(out, "Content-Type: application/json\r\nContent-Length:           \r\n\r\n");
    return out->len;
}

static void end_post(struct buf *out, size_t body)
{
    char digits[LENGTH_DIGITS + 1];

    if (out->failed)
        return; // bench_conn_start() reports it
    snprintf(digits, sizeof digits, "%*zu", LENGTH_DIGITS, out->len - body);
    memcpy(out->ptr + body - 4 - LENGTH_DIGITS, digits, LENGTH_DIGITS);
}

static void put_payload(struct buf *out, const struct bench_text *t, const struct bench_push *p,
                        const struct bench_sent *s)
{
    size_t from = out->len, want = (size_t)t->conf->payload;

    buf_put_lit(out, "{\"bench\":\"");
    buf_put_u64(out, t->run);
    buf_putc(out, '.');
    buf_put_u64(out, p->producer);
    buf_putc(out, '.');
    buf_put_u64(out, s->partition);
    buf_putc(out, '.');
    buf_put_u64(out, s->number);
    buf_putc(out, '.');
    buf_put_u64(out, p->due_us - t->origin_us);
    buf_putc(out, '"');
    size_t used = out->len - from + sizeof ",\"fill\":\"\"}" - 1;
    if (used < want) {
        size_t pad = want - used;
        size_t at = t->conf->random ? id_random_u64() % (t->fill_len - pad) : 0;
        buf_put_lit(out, ",\"fill\":\"");
        buf_put_bytes(out, t->fill + at, pad);
        buf_putc(out, '"');
    }
    buf_putc(out, '}');
}

void bench_put_push(struct buf *out, const struct bench_text *t, struct ledger *l,
                    struct bench_push p, struct bench_sent *sent)
{
    uint32_t partitions = (uint32_t)t->conf->partitions;
    uint32_t partition = (uint32_t)(id_random_u64() % partitions);
    size_t body = begin_post(out, t, SPAN("/api/v1/push"));

    buf_put_lit(out, "{\"items\":[");
    for (unsigned i = 0; i < p.n; i++) {
        uint8_t id[16];
        if (p.spread)
            partition = (uint32_t)(id_random_u64() % partitions);
        sent[i] = (struct bench_sent){partition, ledger_send(l, p.producer, partition), false};
        buf_put_lit(out, "{\"queue\":");
        js_put_text(out, span_of(t->conf->queue));
        buf_put_lit(out, ",\"partition\":\"p");
        buf_put_u64(out, partition);
        buf_put_lit(out, "\",\"transactionId\":\"");
        id_uuid7(id);
        buf_put_uuid(out, id);
        buf_put_lit(out, "\",\"payload\":");
        put_payload(out, t, &p, &sent[i]);
        buf_put_lit(out, "},");
    }
    out->len -= out->failed ? 0 : 1;
    buf_put_lit(out, "]}");
    end_post(out, body);
}

static void put_group(struct buf *out, int group)
{
    buf_put_lit(out, "bench-");
    buf_put_u64(out, (uint64_t)group);
}

// A path segment: everything but the plainest characters as %XX.
static void put_segment(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
            (*text >= '0' && *text <= '9') || *text == '-' || *text == '_' || *text == '.')
            buf_putc(out, *text);
        else
            buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}

void bench_put_pop(struct buf *out, const struct bench_text *t, uint32_t consumer, int group)
{
    const struct bench_conf *c = t->conf;

    buf_reset(out);
    buf_put_lit(out, "GET /api/v1/pop/queue/");
    put_segment(out, c->queue);
    if (c->workload == BENCH_IDLE) {
        buf_putc(out, '-');
        buf_put_i64(out, consumer % c->queues);
    } else if (c->own_partition) {
        buf_put_lit(out, "/partition/p");
        buf_put_i64(out, consumer % c->partitions);
    }
    buf_put_lit(out, "?batch=");
    buf_put_i64(out, c->pop_batch);
    if (c->pop_partitions > 1) {
        buf_put_lit(out, "&partitions=");
        buf_put_i64(out, c->pop_partitions);
    }
    if (!c->ack)
        buf_put_lit(out, "&autoAck=true");
    if (c->wait_ms > 0) {
        buf_put_lit(out, "&wait=true&timeout=");
        buf_put_i64(out, c->wait_ms);
    }
    if (group >= 0) {
        buf_put_lit(out, "&subscriptionMode=all&consumerGroup=");
        put_group(out, group);
    }
    put_head(out, t);
    buf_put_lit(out, "\r\n");
}

void bench_put_ack(struct buf *out, const struct bench_text *t, span acks, int group)
{
    size_t body = begin_post(out, t, SPAN("/api/v1/ack/batch"));

    buf_putc(out, '{');
    if (group >= 0) {
        buf_put_lit(out, "\"consumerGroup\":\"");
        put_group(out, group);
        buf_put_lit(out, "\",");
    }
    buf_put_lit(out, "\"acknowledgments\":[");
    buf_put(out, acks);
    buf_put_lit(out, "]}");
    end_post(out, body);
}

void bench_put_configure(struct buf *out, const struct bench_text *t, uint64_t queue)
{
    size_t body = begin_post(out, t, SPAN("/api/v1/configure"));

    buf_put_lit(out, "{\"queue\":\"");
    js_put_escaped(out, span_of(t->conf->queue));
    if (t->conf->workload == BENCH_IDLE) {
        buf_putc(out, '-');
        buf_put_u64(out, queue);
    }
    buf_put_lit(out, "\",\"options\":{\"leaseTime\":");
    buf_put_i64(out, t->conf->lease_s);
    if (t->conf->work_queue)
        buf_put_lit(out, ",\"ordering\":\"none\"");
    buf_put_lit(out, "}}");
    end_post(out, body);
}

void bench_put_ack_entry(struct buf *acks, const struct bench_popped *m)
{
    if (acks->len > 0)
        buf_putc(acks, ',');
    buf_put_lit(acks, "{\"transactionId\":");
    buf_put(acks, m->transaction_id);
    buf_put_lit(acks, ",\"partitionId\":");
    buf_put(acks, m->partition_id);
    if (m->lease_id.len > 2) {
        buf_put_lit(acks, ",\"leaseId\":");
        buf_put(acks, m->lease_id);
    }
    buf_put_lit(acks, ",\"status\":\"completed\"}");
}

// ---- answers ----

int bench_read_push(span body, struct bench_sent *sent, unsigned n, unsigned *buffered)
{
    struct js j = js_read(body);
    unsigned i = 0;
    span key;

    *buffered = 0;
    js_enter_array(&j);
    for (; js_next_item(&j); i++) {
        js_enter_object(&j);
        while (js_next_key(&j, &key)) {
            span value = js_skip(&j);
            if (i >= n || !span_eq(key, SPAN("status")))
                continue;
            bool late = span_eq(value, SPAN("\"buffered\""));
            sent[i].accepted = late || span_eq(value, SPAN("\"queued\""));
            *buffered += late;
        }
    }
    int rc = js_finish(&j);
    return rc == 0 && i != n ? QE_PG_SHAPE : rc;
}

int bench_read_acks(span body, unsigned *n_ok)
{
    struct js j = js_read(body);
    span key;

    *n_ok = 0;
    js_enter_array(&j);
    while (js_next_item(&j)) {
        js_enter_object(&j);
        while (js_next_key(&j, &key)) {
            span value = js_skip(&j);
            if (span_eq(key, SPAN("success")))
                *n_ok += span_eq(value, SPAN("true"));
        }
    }
    return js_finish(&j);
}

struct bench_walk bench_walk_begin(span body)
{
    struct bench_walk w = {.js = js_read(body)};
    span key;

    js_enter_object(&w.js);
    while (js_next_key(&w.js, &key)) {
        if (span_eq(key, SPAN("messages"))) {
            js_enter_array(&w.js);
            return w;
        }
        js_skip(&w.js);
    }
    js_fail(&w.js, QE_BAD_JSON, "no messages in the answer to a pop");
    return w;
}

// "run.producer.partition.number.due", in quotes.
static bool read_stamp(span raw, const struct bench_text *t, struct bench_popped *m)
{
    uint64_t v[5] = {0};
    unsigned n = 0;

    for (size_t i = 1; i + 1 < raw.len; i++) {
        if (raw.ptr[i] == '.') {
            if (++n == 5)
                return false;
        } else if (raw.ptr[i] >= '0' && raw.ptr[i] <= '9') {
            v[n] = v[n] * 10 + (uint64_t)(raw.ptr[i] - '0');
        } else {
            return false;
        }
    }
    m->producer = (uint32_t)v[1];
    m->partition = (uint32_t)v[2];
    m->number = (uint32_t)v[3];
    m->due_us = v[4] + t->origin_us;
    return n == 4 && v[0] == t->run;
}

static bool read_payload(span data, const struct bench_text *t, struct bench_popped *m)
{
    struct js j = js_read(data);
    span key;

    if (js_type_of(data) != JS_OBJECT)
        return false;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (span_eq(key, SPAN("bench")))
            return read_stamp(js_skip(&j), t, m);
        js_skip(&j);
    }
    return false;
}

bool bench_walk_next(struct bench_walk *w, const struct bench_text *t, struct bench_popped *m)
{
    span key;

    *m = (struct bench_popped){0};
    if (!js_next_item(&w->js))
        return false;
    js_enter_object(&w->js);
    while (js_next_key(&w->js, &key)) {
        span value = js_skip(&w->js);
        if (span_eq(key, SPAN("data")))
            m->ours = read_payload(value, t, m);
        else if (span_eq(key, SPAN("transactionId")))
            m->transaction_id = value;
        else if (span_eq(key, SPAN("partitionId")))
            m->partition_id = value;
        else if (span_eq(key, SPAN("leaseId")))
            m->lease_id = value;
    }
    return true;
}

int bench_walk_end(const struct bench_walk *w) { return w->js.rc; }
