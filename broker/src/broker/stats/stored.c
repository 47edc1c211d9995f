// Stored: counts the bytes of stored messages by sender, partition and time, for limits of
// stored bytes (auth/identity_limits.h).
//
//      stored_add ──► on_stored_due ──► count_stored ──► on_counted
//      broker 0: on_read_due ──► read_stored ──► on_read, which also frees counts of messages
//      that are removed
//
// Nothing is counted until a sender with such a limit has been seen. What is counted goes to
// the database once a second, so that a crash forgets at most that much. A call whose outcome
// is unknown is sent again and may count twice, until these messages are removed.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "auth/identity_limits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "db/sql.gen.h"

enum { REPORT_US = 1000 * 1000, READ_US = 2 * 1000 * 1000, FREE_AT_ONCE = 2000 };
// Messages of one sender in one partition are counted together if they were stored within this
// time.
#define STORED_SPAN_US (INT64_C(600) * 1000 * 1000)

struct stored_count {
    UT_hash_handle hh;
    uint64_t bytes;
    int64_t lane, span, last_us;
    span subject; // within key
    size_t len;
    char key[]; // lane, span, subject
};

struct stored {
    struct broker *broker;
    struct stored_count *waiting, *sent; // sent: in the call that is out, or to be sent again
    struct buf key;
    struct due due, read_due;
    bool flying, reading;
    bool forgotten; // the counts in the call that is out are of another server
    int64_t after;  // the lane where freeing continues
};

static void on_stored_due(struct due *d);
static void on_counted(struct pg_call *pg, int status, const struct pg_reply *reply);
static void on_read_due(struct due *d);
static void on_read(struct pg_call *pg, int status, const struct pg_reply *reply);

void house_use_limits(struct house *h, struct limit_table *limits) { h->limits = limits; }

void stored_start(struct broker *b)
{
    if (!b->house->limits)
        return;
    struct stored *s = b->stored = mem_new(struct stored);
    s->broker = b;
    if (b->index == 0)
        due_set(&b->due, &s->read_due, clock_mono_us() + READ_US, on_read_due);
}

bool stored_is_counted(const struct broker *b)
{
    return b->stored && limits_stored_any(b->house->limits);
}

// ---- counting ----

void stored_add(struct broker *b, span subject, int64_t lane, int64_t at_us, uint64_t bytes)
{
    struct stored *s = b->stored;
    struct stored_count *c;
    int64_t span_no = at_us / STORED_SPAN_US;

    if (!limits_stored_add(b->house->limits, subject, bytes))
        return;
    buf_reset(&s->key);
    buf_put_be64(&s->key, (uint64_t)lane);
    buf_put_be64(&s->key, (uint64_t)span_no);
    buf_put(&s->key, subject);
    HASH_FIND(hh, s->waiting, s->key.ptr, s->key.len, c);
    if (!c) {
        c = mem_zalloc(1, sizeof *c + s->key.len);
        memcpy(c->key, s->key.ptr, s->key.len);
        c->len = s->key.len;
        c->subject = (span){c->key + s->key.len - subject.len, subject.len};
        c->lane = lane;
        c->span = span_no;
        HASH_ADD_KEYPTR(hh, s->waiting, c->key, c->len, c);
    }
    c->bytes += bytes;
    if (c->last_us < at_us)
        c->last_us = at_us;
    if (!due_is_set(&s->due) && !s->flying)
        due_set(&b->due, &s->due, clock_mono_us() + REPORT_US, on_stored_due);
}

// ---- reporting ----

#define FOR_COUNTS(type, put)                                   \
    pg_begin_array(p, type);                                    \
    for (c = s->sent; c; c = (struct stored_count *)c->hh.next) \
        put;                                                    \
    pg_end_array(p)

static void stored_report(struct stored *s)
{
    const struct stored_count *c;

    if (!s->sent) {
        s->sent = s->waiting;
        s->waiting = NULL;
    }
    if (!s->sent)
        return;
    struct call *call = call_new(s->broker, &pg_stmt_count_stored, NULL);
    struct pg_params *p = &call->params;
    FOR_COUNTS(PG_INT8, pg_put_i64(p, c->lane));
    FOR_COUNTS(PG_TEXT, pg_put_text(p, c->subject));
    FOR_COUNTS(PG_INT8, pg_put_i64(p, c->span));
    FOR_COUNTS(PG_TIMESTAMPTZ, pg_put_unix_us(p, c->last_us));
    FOR_COUNTS(PG_INT8, pg_put_i64(p, (int64_t)c->bytes));
    s->flying = true;
    call_send(call, on_counted);
}

static void on_stored_due(struct due *d)
{
    struct stored *s = container_of(d, struct stored, due);

    if (!broker_is_up(s->broker) && !s->broker->closing)
        due_set(&s->broker->due, d, clock_mono_us() + REPORT_US, on_stored_due);
    else
        stored_report(s);
}

static void counts_free(struct stored_count **counts)
{
    struct stored_count *c, *next;

    HASH_ITER (hh, *counts, c, next) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        HASH_DELETE(hh, *counts, c);
        free(c);
    }
}

// They are in the database, or will not be.
static void counts_end(struct broker *b, struct stored_count **counts)
{
    for (const struct stored_count *c = *counts; c; c = (struct stored_count *)c->hh.next)
        limits_stored_reported(b->house->limits, c->subject, c->bytes);
    counts_free(counts);
}

static void on_counted(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *call = pg->owner;
    struct broker *b = call->broker;
    struct stored *s = b->stored;
    bool is_over = status == 0 || (!is_outage(status) && !is_worth_retry(status));

    s->flying = false;
    if (is_over && status != 0)
        log_warn("stored.count_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    if (is_over || s->forgotten)
        counts_end(b, &s->sent);
    s->forgotten = false;
    call_free(call);
    if ((s->sent || s->waiting) && !b->closing)
        due_set(&b->due, &s->due, clock_mono_us() + REPORT_US, on_stored_due);
}

void stored_forget(struct broker *b)
{
    struct stored *s = b->stored;

    if (!s)
        return;
    counts_end(b, &s->waiting);
    s->forgotten = s->flying;
    if (!s->flying)
        counts_end(b, &s->sent);
    s->after = 0;
}

void stored_finish(struct broker *b)
{
    if (b->stored && !b->stored->flying && broker_is_up(b))
        stored_report(b->stored);
}

void stored_free(struct broker *b)
{
    struct stored *s = b->stored;

    if (!s)
        return;
    due_cancel(&b->due, &s->due);
    due_cancel(&b->due, &s->read_due);
    counts_free(&s->waiting);
    counts_free(&s->sent);
    buf_free(&s->key);
    free(s);
    b->stored = NULL;
}

// ---- reading ----

static void put_subject(void *ctx, span subject) { pg_put_text(ctx, subject); }

static void on_read_due(struct due *d)
{
    struct stored *s = container_of(d, struct stored, read_due);
    struct broker *b = s->broker;

    if (b->closing)
        return;
    due_set(&b->due, d, clock_mono_us() + READ_US, on_read_due);
    if (s->reading || !broker_is_up(b) || !stored_is_counted(b))
        return;
    struct call *c = call_new(b, &pg_stmt_read_stored, NULL);
    pg_begin_array(&c->params, PG_TEXT);
    limits_stored_each(b->house->limits, put_subject, &c->params);
    pg_end_array(&c->params);
    pg_param_i64(&c->params, s->after);
    pg_param_i32(&c->params, FREE_AT_ONCE);
    s->reading = true;
    call_send(c, on_read);
}

static void on_read(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct stored *s = b->stored;

    s->reading = false;
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        limits_stored_set(b->house->limits, pg_reply_bytes(reply, row, READ_STORED_COL_SUBJECT),
                          (uint64_t)pg_reply_i64(reply, row, READ_STORED_COL_BYTES));
        s->after = pg_reply_i64(reply, row, READ_STORED_COL_NEXT);
    }
    call_failed(c, status, reply);
    call_free(c);
}
