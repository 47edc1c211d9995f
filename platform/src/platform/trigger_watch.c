// trigger_watch.c: checks a watched segment.
//
//       the segment ──► members, outbox and runs as of now (one transaction)
//               ──► outbox to its queue, page by page ──► new runs to the queue of triggers ──►
//               done
//
// Rows that a check wrote and did not send are sent by its retry or by the next check.
#include "platform/trigger_job.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

enum { PAGE = 500, RUNS = 100 /* as segment_new_runs.sql */ };

struct watch {
    span name;
    unsigned n_page;
    int64_t last; // id of the last row of the page before; ids increase
    // runs to announce
    struct run_key {
        span campaign, key;
    } * runs;
    unsigned n_runs, announced;
};

static void on_watch_segment(struct trigger_job *t, const struct pg_reply *reply);
static void watch_compose(struct audience_query *q, struct compiled *c);
static void on_watch_checked(struct trigger_job *t, const struct pg_reply *reply);
static void send_outbox(struct trigger_job *t);
static void on_outbox(struct trigger_job *t, const struct pg_reply *reply);
static void on_outbox_sent(struct trigger_job *t);
static void on_outbox_deleted(struct trigger_job *t, const struct pg_reply *reply);
static void look_for_runs(struct trigger_job *t);
static void on_watch_runs(struct trigger_job *t, const struct pg_reply *reply);
static void announce_customers(struct trigger_job *t);
static void on_announced_recorded(struct trigger_job *t, const struct pg_reply *reply);

void trigger_watch(struct trigger_job *t)
{
    t->state = arena_new(&t->arena, struct watch);
    pg_param_uuid(&t->params, t->id);
    trigger_job_exec(t, &pg_stmt_tenant_segment_to_watch, on_watch_segment);
}

static void on_watch_segment(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    if (pg_reply_rows(reply) == 0) {
        trigger_job_done(t);
        return;
    }
    w->name = arena_copy(&t->arena, pg_reply_bytes(reply, 0, TENANT_SEGMENT_TO_WATCH_COL_NAME));
    if (pg_reply_bool(reply, 0, TENANT_SEGMENT_TO_WATCH_COL_DUE))
        trigger_job_query(t, pg_reply_bytes(reply, 0, TENANT_SEGMENT_TO_WATCH_COL_FILTER),
                          watch_compose, on_watch_checked);
    else
        send_outbox(t); // rows that an earlier check did not send
}

static void watch_compose(struct audience_query *q, struct compiled *c)
{
    const struct trigger_job *t = q->owner;

    compile_watch(c, q->filter, &q->facts, t->id);
}

static void on_watch_checked(struct trigger_job *t, const struct pg_reply *reply)
{
    (void)reply;
    send_outbox(t);
}

// ---- the outbox ----

static void send_outbox(struct trigger_job *t)
{
    pg_param_uuid(&t->params, t->id);
    pg_param_i64(&t->params, PAGE);
    trigger_job_exec(t, &pg_stmt_tenant_segment_outbox, on_outbox);
}

// The partition of the customer keeps the order of its events.  The transaction id is that of
// the row, so a page that is sent again is stored once.
static void put_event(struct buf *out, const struct trigger_job *t,
                      const struct pg_reply *reply, unsigned row)
{
    const struct watch *w = t->state;
    span customer = pg_reply_bytes(reply, row, TENANT_SEGMENT_OUTBOX_COL_CUSTOMER);

    buf_put_lit(out, "{\"queue\":");
    js_put_text(out, pg_reply_bytes(reply, row, TENANT_SEGMENT_OUTBOX_COL_QUEUE));
    trigger_put_partition(out, customer);
    buf_printf(
        out,
        ",\"transactionId\":\"segment:%s:%lld\",\"eventType\":\"segment.%s\","
        "\"payload\":{\"type\":\"segment.%s\",\"tenant\":",
        t->id_text, (long long)pg_reply_i64(reply, row, TENANT_SEGMENT_OUTBOX_COL_ID),
        pg_reply_bool(reply, row, TENANT_SEGMENT_OUTBOX_COL_ENTERED) ? "entered" : "left",
        pg_reply_bool(reply, row, TENANT_SEGMENT_OUTBOX_COL_ENTERED) ? "entered" : "left");
    js_put_text(out, t->tenant);
    buf_printf(out, ",\"segmentId\":\"%s\",\"segment\":", t->id_text);
    js_put_text(out, w->name);
    buf_put_lit(out, ",\"customer\":");
    js_put_text(out, customer);
    buf_put_lit(out, ",\"at\":");
    js_put_text(out, pg_reply_bytes(reply, row, TENANT_SEGMENT_OUTBOX_COL_AT));
    buf_put_lit(out, "}}");
}

static void on_outbox(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;
    struct buf body = {.max = TRIGGER_BODY_MAX};

    w->n_page = pg_reply_rows(reply);
    if (w->n_page == 0) {
        look_for_runs(t);
        return;
    }
    int64_t last = pg_reply_i64(reply, w->n_page - 1, TENANT_SEGMENT_OUTBOX_COL_ID);
    if (last <= w->last) { // for example because of a trigger of its owner
        trigger_job_failed(t, "the tenant's database does not delete what was sent");
        return;
    }
    w->last = last;
    pg_begin_array(&t->params, PG_INT8);
    buf_put_lit(&body, "{\"items\":[");
    for (unsigned row = 0; row < w->n_page; row++) {
        if (!trigger_may_deliver(t->p,
                                 pg_reply_bytes(reply, row, TENANT_SEGMENT_OUTBOX_COL_QUEUE))) {
            buf_free(&body);
            trigger_job_hopeless(t, "segment " SPAN_FMT " sends to a queue of the platform",
                                 SPAN_ARG(w->name));
            return;
        }
        pg_put_i64(&t->params, pg_reply_i64(reply, row, TENANT_SEGMENT_OUTBOX_COL_ID));
        if (row > 0)
            buf_putc(&body, ',');
        put_event(&body, t, reply, row);
    }
    pg_end_array(&t->params);
    buf_put_lit(&body, "]}");
    trigger_job_push(t, &body, on_outbox_sent);
}

static void on_outbox_sent(struct trigger_job *t)
{
    trigger_job_exec(t, &pg_stmt_tenant_segment_told, on_outbox_deleted);
}

static void on_outbox_deleted(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    (void)reply;
    if (w->n_page == PAGE)
        send_outbox(t);
    else
        look_for_runs(t);
}

// ---- campaigns on entry ----

static void look_for_runs(struct trigger_job *t)
{
    pg_param_uuid(&t->params, t->id);
    trigger_job_exec(t, &pg_stmt_tenant_segment_new_runs, on_watch_runs);
}

static void on_watch_runs(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    w->n_runs = pg_reply_rows(reply);
    if (w->n_runs > 0 && w->runs &&
        span_eq(w->runs[0].key, pg_reply_bytes(reply, 0, TENANT_SEGMENT_NEW_RUNS_COL_KEY))) {
        trigger_job_failed(t, "the tenant's database does not keep which runs were announced");
        return;
    }
    w->runs = arena_new_array(&t->arena, struct run_key, w->n_runs);
    for (unsigned row = 0; row < w->n_runs; row++) {
        w->runs[row].campaign = arena_copy(
            &t->arena, pg_reply_bytes(reply, row, TENANT_SEGMENT_NEW_RUNS_COL_CAMPAIGN));
        w->runs[row].key =
            arena_copy(&t->arena, pg_reply_bytes(reply, row, TENANT_SEGMENT_NEW_RUNS_COL_KEY));
    }
    announce_customers(t);
}

static void on_announced(void *ctx, const struct queen_error *why)
{
    struct trigger_job *t = ctx;

    if (why)
        trigger_job_failed(t, "the broker did not accept a trigger: %s", why->text);
    else
        announce_customers(t);
}

// From now on the broker retries these triggers: runs that keep failing must not delay others.
static void record_announced(struct trigger_job *t)
{
    const struct watch *w = t->state;

    if (w->n_runs == 0) {
        trigger_job_done(t);
        return;
    }
    pg_begin_array(&t->params, PG_TEXT);
    for (unsigned i = 0; i < w->n_runs; i++)
        pg_put_text(&t->params, w->runs[i].key);
    pg_end_array(&t->params);
    trigger_job_exec(t, &pg_stmt_tenant_segment_announced, on_announced_recorded);
}

static void on_announced_recorded(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    (void)reply;
    w->announced = 0;
    if (w->n_runs == RUNS)
        look_for_runs(t);
    else
        trigger_job_done(t);
}

static void announce_customers(struct trigger_job *t)
{
    struct watch *w = t->state;
    struct buf payload = {0};

    if (w->announced == w->n_runs) {
        record_announced(t);
        return;
    }
    const struct run_key *run = &w->runs[w->announced++];
    trigger_put_payload(&payload, "campaign", t->tenant, run->campaign);
    trigger_push(t->p, run->key, SPAN_NONE, t->tenant, buf_span(&payload), on_announced, t);
    buf_free(&payload);
}
