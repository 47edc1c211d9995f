// trigger_watch.c: a look at a watched segment.
//
//      the segment ──► who is inside now: members, outbox, runs (one transaction)
//              ──► outbox to its queue, page by page ──► new runs to the queue of triggers ──►
//              done
//
// What a look has written and not told is told by the next one, or by this one's retry.
#include "platform/trigger_job.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

enum { PAGE = 500, RUNS = 100 /* as segment_new_runs.sql */ };

struct watch {
    span name, queue; // queue: SPAN_NONE: only campaigns want to know
    unsigned n_page;
    // runs to announce
    struct run_key {
        span campaign, key;
    } * runs;
    unsigned n_runs, announced;
};

static void on_segment(struct trigger_job *t, const struct pg_reply *reply);
static void compose(struct audience_query *q, struct compiled *c);
static void on_looked(struct trigger_job *t, const struct pg_reply *reply);
static void tell(struct trigger_job *t);
static void on_outbox(struct trigger_job *t, const struct pg_reply *reply);
static void on_told(struct trigger_job *t);
static void on_forgotten(struct trigger_job *t, const struct pg_reply *reply);
static void look_for_runs(struct trigger_job *t);
static void on_runs(struct trigger_job *t, const struct pg_reply *reply);
static void announce(struct trigger_job *t);
static void on_runs_noted(struct trigger_job *t, const struct pg_reply *reply);

void trigger_watch(struct trigger_job *t)
{
    t->state = arena_new(&t->arena, struct watch);
    pg_param_uuid(&t->params, t->id);
    trigger_job_exec(t, &pg_stmt_tenant_segment_to_watch, on_segment);
}

static void on_segment(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    if (pg_reply_rows(reply) == 0) {
        trigger_job_done(t);
        return;
    }
    w->name = arena_copy(&t->arena, pg_reply_bytes(reply, 0, 1));
    if (!pg_reply_is_null(reply, 0, 2))
        w->queue = arena_copy(&t->arena, pg_reply_bytes(reply, 0, 2));
    if (pg_reply_bool(reply, 0, 3))
        trigger_job_ask(t, pg_reply_bytes(reply, 0, 0), compose, on_looked);
    else
        tell(t); // what an earlier one could not
}

static void compose(struct audience_query *q, struct compiled *c)
{
    const struct trigger_job *t = q->owner;

    compile_watch(c, q->filter, &q->facts, t->id);
}

static void on_looked(struct trigger_job *t, const struct pg_reply *reply)
{
    (void)reply;
    tell(t);
}

// ---- the outbox ----

static void tell(struct trigger_job *t)
{
    struct watch *w = t->state;

    if (w->queue.ptr == NULL) {
        look_for_runs(t);
        return;
    }
    pg_param_uuid(&t->params, t->id);
    pg_param_i64(&t->params, PAGE);
    trigger_job_exec(t, &pg_stmt_tenant_segment_outbox, on_outbox);
}

// In the partition of its customer a customer's comings and goings keep their order; the
// transaction id is that of the row, so a page that is sent again is stored once.
static void put_event(struct buf *out, const struct trigger_job *t,
                      const struct pg_reply *reply, unsigned row)
{
    const struct watch *w = t->state;
    span customer = pg_reply_bytes(reply, row, 1);

    buf_put_lit(out, "{\"queue\":");
    js_put_text(out, w->queue);
    trigger_put_partition(out, customer);
    buf_printf(out,
               ",\"transactionId\":\"segment:%s:%lld\",\"eventType\":\"segment.%s\","
               "\"payload\":{\"type\":\"segment.%s\",\"tenant\":",
               t->id_text, (long long)pg_reply_i64(reply, row, 0),
               pg_reply_bool(reply, row, 2) ? "entered" : "left",
               pg_reply_bool(reply, row, 2) ? "entered" : "left");
    js_put_text(out, t->tenant);
    buf_printf(out, ",\"segmentId\":\"%s\",\"segment\":", t->id_text);
    js_put_text(out, w->name);
    buf_put_lit(out, ",\"customer\":");
    js_put_text(out, customer);
    buf_put_lit(out, ",\"at\":");
    js_put_text(out, pg_reply_bytes(reply, row, 3));
    buf_put_lit(out, "}}");
}

static void on_outbox(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;
    struct buf body = {0};

    w->n_page = pg_reply_rows(reply);
    if (w->n_page == 0) {
        look_for_runs(t);
        return;
    }
    pg_begin_array(&t->params, PG_INT8);
    buf_put_lit(&body, "{\"items\":[");
    for (unsigned row = 0; row < w->n_page; row++) {
        pg_put_i64(&t->params, pg_reply_i64(reply, row, 0));
        if (row > 0)
            buf_putc(&body, ',');
        put_event(&body, t, reply, row);
    }
    pg_end_array(&t->params);
    buf_put_lit(&body, "]}");
    trigger_job_push(t, buf_span(&body), on_told);
    buf_free(&body);
}

static void on_told(struct trigger_job *t)
{
    trigger_job_exec(t, &pg_stmt_tenant_segment_told, on_forgotten);
}

static void on_forgotten(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    (void)reply;
    if (w->n_page == PAGE)
        tell(t);
    else
        look_for_runs(t);
}

// ---- campaigns on entering ----

static void look_for_runs(struct trigger_job *t)
{
    pg_param_uuid(&t->params, t->id);
    trigger_job_exec(t, &pg_stmt_tenant_segment_new_runs, on_runs);
}

static void on_runs(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    w->n_runs = pg_reply_rows(reply);
    w->runs = arena_new_array(&t->arena, struct run_key, w->n_runs);
    for (unsigned row = 0; row < w->n_runs; row++) {
        w->runs[row].campaign = arena_copy(&t->arena, pg_reply_bytes(reply, row, 0));
        w->runs[row].key = arena_copy(&t->arena, pg_reply_bytes(reply, row, 1));
    }
    announce(t);
}

static void on_announced(void *ctx, const struct queen_error *why)
{
    struct trigger_job *t = ctx;

    if (why)
        trigger_job_failed(t, "the broker did not take a trigger: %s", why->text);
    else
        announce(t);
}

// From now on the broker retries these triggers: runs that fail again and again must not keep
// the others from being announced.
static void note_runs(struct trigger_job *t)
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
    trigger_job_exec(t, &pg_stmt_tenant_segment_announced, on_runs_noted);
}

static void on_runs_noted(struct trigger_job *t, const struct pg_reply *reply)
{
    struct watch *w = t->state;

    (void)reply;
    w->announced = 0;
    if (w->n_runs == RUNS)
        look_for_runs(t);
    else
        trigger_job_done(t);
}

static void announce(struct trigger_job *t)
{
    struct watch *w = t->state;
    struct buf payload = {0};

    if (w->announced == w->n_runs) {
        note_runs(t);
        return;
    }
    const struct run_key *run = &w->runs[w->announced++];
    trigger_put_payload(&payload, "campaign", t->tenant, run->campaign);
    trigger_push(t->p, run->key, SPAN_NONE, t->tenant, buf_span(&payload), on_announced, t);
    buf_free(&payload);
}
