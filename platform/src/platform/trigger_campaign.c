// trigger_campaign.c: a run of a campaign.
//
//       the campaign, and its run if this trigger has already started one
//               ──► run and recipients (one query, one transaction)
//               ──► recipients page by page: render, push, record progress ──► done
//
// A customer who is blocked, has not agreed to the channel or has no address is skipped and
// counted.  That is decided when the page is read, so a customer who objects during a long run
// gets no message.
//
// No customer gets a message twice: the run belongs to the trigger's key, the recipients are
// stored with it, and the transaction id of a message consists of run and customer.  A page
// that is pushed again after a crash is stored once.
#include "audience/template.h"
#include "base/id.h"
#include "platform/trigger_job.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

// The broker limits the size of a body, and a message with a large template is large.
enum { PAGE = 500, PAGE_BYTES = 1 << 20 };
// Other deliveries of a trigger are few.  More restarts mean that the tenant's database does
// not keep what is written, for example because of a trigger of its owner.
enum { MAX_RESTARTS = 10 };

struct campaign {
    span name, queue, template, retry_policy;
    uint8_t run[16];
    char run_text[37];
    int64_t recipients, sent;
    int64_t last; // number of the last recipient of the current page
    unsigned n_restarts;
    // The skipped ones of the current page.
    unsigned n_skipped;
    struct skipped {
        int64_t n;
        span reason;
    } skipped[PAGE];
};

static void begin_run(struct trigger_job *t);
static void on_campaign_campaign(struct trigger_job *t, const struct pg_reply *reply);
static void campaign_compose(struct audience_query *q, struct compiled *c);
static void on_run(struct trigger_job *t, const struct pg_reply *reply);
static void send_page(struct trigger_job *t);
static void on_recipients(struct trigger_job *t, const struct pg_reply *reply);
static void on_campaign_pushed(struct trigger_job *t);
static void on_campaign_noted(struct trigger_job *t, const struct pg_reply *reply);

void trigger_campaign(struct trigger_job *t)
{
    t->state = arena_new(&t->arena, struct campaign);
    begin_run(t);
}

static void begin_run(struct trigger_job *t)
{
    pg_param_uuid(&t->params, t->id);
    pg_param_text(&t->params, t->key);
    trigger_job_exec(t, &pg_stmt_tenant_campaign_to_run, on_campaign_campaign);
}

static void begin_again(struct trigger_job *t)
{
    struct campaign *c = t->state;

    if (++c->n_restarts > MAX_RESTARTS)
        trigger_job_failed(t, "the tenant's database does not keep the progress of the run");
    else
        begin_run(t);
}

static void keep_run(struct campaign *c, const uint8_t *id)
{
    static const uint8_t none[16];

    memcpy(c->run, id ? id : none, 16); // NULL: unexpected result of the tenant's database
    id_format_uuid(c->run, c->run_text);
}

static void on_campaign_campaign(struct trigger_job *t, const struct pg_reply *reply)
{
    struct campaign *c = t->state;

    // The campaign was deleted, or the run is complete.
    if (pg_reply_rows(reply) == 0 ||
        pg_reply_bool(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_FINISHED)) {
        trigger_job_done(t);
        return;
    }
    c->name = arena_copy(&t->arena, pg_reply_bytes(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_NAME));
    c->queue =
        arena_copy(&t->arena, pg_reply_bytes(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_QUEUE));
    if (!trigger_may_deliver(t->p, c->queue)) {
        trigger_job_hopeless(t, "campaign " SPAN_FMT " names a queue of the platform",
                             SPAN_ARG(c->name));
        return;
    }
    c->template =
        arena_copy(&t->arena, pg_reply_bytes(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_TEMPLATE));
    c->retry_policy = arena_copy(
        &t->arena, pg_reply_bytes(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_RETRY_POLICY));
    if (pg_reply_is_null(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_RUN)) {
        trigger_job_query(t, pg_reply_bytes(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_FILTER),
                          campaign_compose, on_run);
        return;
    }
    keep_run(c, pg_reply_uuid(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_RUN));
    c->recipients = pg_reply_i64(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_RECIPIENTS);
    c->sent = pg_reply_i64(reply, 0, TENANT_CAMPAIGN_TO_RUN_COL_SENT);
    send_page(t);
}

static void campaign_compose(struct audience_query *q, struct compiled *c)
{
    const struct trigger_job *t = q->owner;

    compile_run(c, q->filter, &q->facts, t->id, t->key);
}

static void on_run(struct trigger_job *t, const struct pg_reply *reply)
{
    struct campaign *c = t->state;

    if (pg_reply_rows(reply) == 0) { // another delivery of this trigger was first
        begin_again(t);
        return;
    }
    keep_run(c, pg_reply_uuid(reply, 0, RUN_ID));
    c->recipients = pg_reply_i64(reply, 0, RUN_RECIPIENTS);
    if (c->recipients == 0)
        trigger_job_done(t);
    else
        send_page(t);
}

static void send_page(struct trigger_job *t)
{
    struct campaign *c = t->state;

    pg_param_uuid(&t->params, c->run);
    pg_param_i64(&t->params, c->sent);
    pg_param_i64(&t->params, PAGE);
    trigger_job_exec(t, &pg_stmt_tenant_campaign_recipients, on_recipients);
}

static void put_message(struct buf *out, const struct trigger_job *t,
                        const struct pg_reply *reply, unsigned row)
{
    const struct campaign *c = t->state;
    span values[TEMPLATE_NAMES];

    for (unsigned i = NAME_CUSTOMER; i <= NAME_COUNTRY; i++)
        values[i] = pg_reply_bytes(reply, row, TENANT_CAMPAIGN_RECIPIENTS_COL_CUSTOMER + i);
    values[NAME_TENANT] = t->tenant;
    values[NAME_CAMPAIGN] = c->name;
    values[NAME_RUN] = span_of(c->run_text);
    buf_put_lit(out, "{\"queue\":");
    js_put_text(out, c->queue);
    trigger_put_partition(out, values[NAME_CUSTOMER]);
    buf_printf(out, ",\"transactionId\":\"campaign:%s:" SPAN_FMT "\"", c->run_text,
               SPAN_ARG(values[NAME_CUSTOMER]));
    buf_put_lit(out, ",\"eventType\":\"campaign\",\"retryPolicy\":");
    buf_put(out, c->retry_policy.len > 0 ? c->retry_policy : SPAN("{\"mode\":\"scheduled\"}"));
    buf_put_lit(out, ",\"payload\":");
    template_put(out, c->template, values);
    buf_putc(out, '}');
}

static void on_recipients(struct trigger_job *t, const struct pg_reply *reply)
{
    struct campaign *c = t->state;
    unsigned n = pg_reply_rows(reply), n_messages = 0;
    struct buf body = {.max = TRIGGER_BODY_MAX};

    if (n == 0 || n > PAGE) { // deleted meanwhile; more: not our database's answer
        trigger_job_done(t);
        return;
    }
    c->n_skipped = 0;
    buf_put_lit(&body, "{\"items\":[");
    for (unsigned row = 0; row < n && (row == 0 || body.len < PAGE_BYTES); row++) {
        c->last = pg_reply_i64(reply, row, TENANT_CAMPAIGN_RECIPIENTS_COL_N);
        if (!pg_reply_is_null(reply, row, TENANT_CAMPAIGN_RECIPIENTS_COL_SKIPPED)) {
            span why = pg_reply_bytes(reply, row, TENANT_CAMPAIGN_RECIPIENTS_COL_SKIPPED);
            c->skipped[c->n_skipped++] = (struct skipped){c->last, arena_copy(&t->arena, why)};
            continue;
        }
        if (n_messages++ > 0)
            buf_putc(&body, ',');
        put_message(&body, t, reply, row);
    }
    buf_put_lit(&body, "]}");
    if (n_messages > 0) {
        trigger_job_push(t, &body, on_campaign_pushed);
    } else {
        buf_free(&body);
        on_campaign_pushed(t);
    }
}

static void on_campaign_pushed(struct trigger_job *t)
{
    struct campaign *c = t->state;

    pg_param_uuid(&t->params, c->run);
    pg_param_i64(&t->params, c->sent);
    pg_param_i64(&t->params, c->last);
    pg_begin_array(&t->params, PG_INT8);
    for (unsigned i = 0; i < c->n_skipped; i++)
        pg_put_i64(&t->params, c->skipped[i].n);
    pg_end_array(&t->params);
    pg_begin_array(&t->params, PG_TEXT);
    for (unsigned i = 0; i < c->n_skipped; i++)
        pg_put_text(&t->params, c->skipped[i].reason);
    pg_end_array(&t->params);
    trigger_job_exec(t, &pg_stmt_tenant_campaign_sent, on_campaign_noted);
}

static void on_campaign_noted(struct trigger_job *t, const struct pg_reply *reply)
{
    struct campaign *c = t->state;

    if (c->last <= c->sent) {
        begin_again(t);
        return;
    }
    c->sent = c->last;
    if (pg_reply_rows(reply) == 0)
        begin_again(t); // another delivery of the trigger has recorded the page: continue there
    else if (pg_reply_bool(reply, 0, TENANT_CAMPAIGN_SENT_COL_FINISHED))
        trigger_job_done(t);
    else
        send_page(t);
}
