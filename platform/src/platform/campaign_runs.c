// GET /api/v1/tenants/:tenant/campaigns/:campaign/runs: the runs of a campaign with their
// status; and one customer's message, .../runs/:run/recipients/:customer.
//
//       runs of the tenant's database ──► for each the broker's timeline ──► the reply
//
// The status comes from the broker, which delivers and retries triggers and messages.
#include <stdlib.h>

#include "base/id.h"
#include "platform/members.h"
#include "platform/saved.h"
#include "platform/segment_request.h"
#include "tenant/sql.gen.h"
#include "json/scan.h"
#include "json/write.h"

enum { MAX_RUNS = 100 };

// ---- the runs ----

struct runs {
    struct http_req *req;
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_params params;
    struct pg_call call;
    unsigned n, waiting;
    struct run {
        struct runs *runs;
        span body, status; // status: members of the reply, from the timeline
    } * run;
};

static void on_runs_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                           const struct fault *why);
static void on_runs_runs(struct pg_call *call, int status, const struct pg_reply *reply);
static void ask_timeline(struct platform *p, span queue, span transaction,
                         queen_response_cb done, void *ctx);
static void on_timeline(struct queen_response *r, const struct queen_error *err, void *ctx);
static void runs_reply(struct runs *r);

static void runs_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct runs *r = arena_new(http_req_arena(req), struct runs);
    struct buf args = {0};
    span tenant;

    r->req = req;
    if (!segment_request_tenant(req, &tenant))
        return;
    buf_put_lit(&args, "{\"tenant\":");
    js_put_text(&args, tenant);
    if (tenant_task_put_path(req, &args, 1, "campaign") &&
        tenant_task_put_count(req, &args, "limit", MAX_RUNS)) {
        buf_putc(&args, '}');
        pg_param_text(&r->params, buf_span(&args));
        r->want = (struct tenant_want){.got = on_runs_tenant, .owner = r};
        tenant_get(p->pools, tenant, &r->want);
    }
    buf_free(&args);
}

static void on_runs_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                           const struct fault *why)
{
    struct runs *r = w->owner;

    if (status == 0 && tenant_ref_kind(ref) == TENANT_PG) {
        r->ref = ref;
        r->call = (struct pg_call){.statement = &pg_stmt_tenant_campaign_runs,
                                   .params = &r->params,
                                   .done = on_runs_runs,
                                   .owner = r};
        pg_pool_exec(tenant_ref_pg(ref), &r->call);
        return;
    }
    pg_params_free(&r->params);
    if (status != 0) {
        platform_reply_failed(r->req, status, why);
    } else {
        tenant_put(ref);
        http_reply_err(r->req, QE_NOT_SUPPORTED);
    }
}

static void on_runs_runs(struct pg_call *call, int status, const struct pg_reply *rows)
{
    struct runs *r = call->owner;
    struct platform *p = http_req_app(r->req);
    struct arena *a = http_req_arena(r->req);

    pg_params_free(&r->params);
    if (status != 0)
        tenant_ref_failed(r->ref, status);
    tenant_put(r->ref);
    if (status == 0 && pg_reply_rows(rows) > MAX_RUNS + 1) // a tenant may own its database
        status = QE_PG_SHAPE;
    if (status != 0) {
        platform_reply_failed(r->req, status, NULL);
        return;
    }
    if (pg_reply_rows(rows) == 0) {
        http_reply_errf(r->req, QE_NOT_FOUND, "there is no such campaign");
        return;
    }
    r->n = r->waiting = pg_reply_rows(rows) - 1;
    r->run = arena_new_array(a, struct run, r->n);
    for (unsigned i = 0; i < r->n; i++) {
        r->run[i].runs = r;
        r->run[i].body =
            arena_copy(a, pg_reply_bytes(rows, i + 1, TENANT_CAMPAIGN_RUNS_COL_BODY));
        ask_timeline(p, span_of(p->conf->trigger_queue),
                     pg_reply_bytes(rows, i + 1, TENANT_CAMPAIGN_RUNS_COL_KEY), on_timeline,
                     &r->run[i]);
    }
    if (r->n == 0)
        runs_reply(r);
}

static void ask_timeline(struct platform *p, span queue, span transaction,
                         queen_response_cb done, void *ctx)
{
    struct buf path = {0}, text = {0};

    buf_put(&text, queue);
    buf_putc(&text, '\0');
    char *escaped = queen_escape(text.ptr);
    buf_printf(&path, "/api/v1/messages/timeline?queue=%s&transactionId=", escaped);
    free(escaped);
    buf_reset(&text);
    buf_put(&text, transaction);
    buf_putc(&text, '\0');
    escaped = queen_escape(text.ptr);
    buf_printf(&path, "%s", escaped);
    free(escaped);
    buf_putc(&path, '\0');
    queen_request_start(p->broker, &(struct queen_request){.path = path.ptr}, done, ctx);
    buf_free(&path);
    buf_free(&text);
}

// The last error of any group in a timeline.
static span last_error(span timeline, struct arena *a)
{
    struct js messages = js_read(member_of(timeline, "messages", a));
    span found = SPAN_NONE;

    js_enter_array(&messages);
    while (js_next_item(&messages)) {
        struct js groups = js_read(member_of(js_skip(&messages), "consumerGroups", a));
        js_enter_array(&groups);
        while (js_next_item(&groups)) {
            span error = member_of(js_skip(&groups), "lastError", a);
            if (error.ptr && !span_eq(error, SPAN("null")))
                found = error;
        }
    }
    return found;
}

static void put_status(struct buf *out, span timeline, struct arena *a)
{
    static const char *const fields[] = {"attempt", "maxAttempts"};
    span next = member_of(timeline, "nextAttemptAt", a);

    buf_put_lit(out, ",\"status\":");
    js_put_text_or_null(out, member_of(timeline, "status", a));
    for (unsigned i = 0; i < countof(fields); i++) {
        span value = member_of(timeline, fields[i], a);
        buf_printf(out, ",\"%s\":", fields[i]);
        buf_put(out, value.ptr ? value : SPAN("null"));
    }
    buf_put_lit(out, ",\"nextAttemptAt\":");
    js_put_text_or_null(out, span_eq(next, SPAN("null")) ? SPAN_NONE : next);
    buf_put_lit(out, ",\"lastError\":");
    js_put_text_or_null(out, last_error(timeline, a));
}

static void on_timeline(struct queen_response *resp, const struct queen_error *err, void *ctx)
{
    struct run *run = ctx;
    struct runs *r = run->runs;
    struct arena *a = http_req_arena(r->req);
    struct buf out = {0};

    if (err->code == QUEEN_OK) {
        put_status(&out, (span){resp->body, resp->body_len}, a);
    } else {
        // 404: the history has expired.  Any other error: the broker is unavailable, which is
        // reported.
        buf_put_lit(&out, ",\"status\":null,\"statusError\":");
        js_put_text(&out, span_of(err->text));
    }
    run->status = arena_copy(a, buf_span(&out));
    buf_free(&out);
    queen_response_free(resp);
    if (--r->waiting == 0)
        runs_reply(r);
}

static void runs_reply(struct runs *r)
{
    struct buf out = {0};

    buf_put_lit(&out, "{\"runs\":[");
    for (unsigned i = 0; i < r->n; i++) {
        if (i > 0)
            buf_putc(&out, ',');
        buf_put(&out, r->run[i].body);
        buf_put(&out, r->run[i].status);
        buf_putc(&out, '}');
    }
    buf_put_lit(&out, "]}");
    http_reply_json(r->req, 200, &out);
}

// ---- one recipient ----

static void on_recipient(struct queen_response *resp, const struct queen_error *err, void *ctx)
{
    struct http_req *req = ctx;

    if (resp)
        http_reply_json_span(req, resp->status, (span){resp->body, resp->body_len});
    else
        http_reply_errf(req, QE_PG_AWAY, "the broker is unavailable: %s", err->text);
    queen_response_free(resp);
}

static void on_recipient_found(struct tenant_task *t, int status, span body)
{
    struct arena *a = http_req_arena(t->req);
    struct buf text = {0};
    span run, customer;

    if (status >= 300) {
        http_reply_json_span(t->req, status, body);
        return;
    }
    span skipped = member_of(body, "skipped", a);
    if (skipped.ptr && !span_eq(skipped, SPAN("null"))) {
        buf_put_lit(&text, "{\"status\":\"SKIPPED\",\"skipped\":");
        js_put_text(&text, skipped);
        buf_putc(&text, '}');
        http_reply_json(t->req, 200, &text);
        return;
    }
    if (!http_req_param(t->req, 2, &run) || !http_req_param(t->req, 3, &customer))
        run = customer = SPAN_NONE; // not reached: recipient_handle() has read them
    buf_printf(&text, "campaign:" SPAN_FMT ":" SPAN_FMT, SPAN_ARG(run), SPAN_ARG(customer));
    ask_timeline(http_req_app(t->req), member_of(body, "queue", a), buf_span(&text),
                 on_recipient, t->req);
    buf_free(&text);
}

static void recipient_handle(struct http_req *req)
{
    struct tenant_task *t = saved_task(req, &pg_stmt_tenant_campaign_recipient);
    struct buf args = {0};
    span run, customer;
    uint8_t id[16];

    if (t == NULL)
        return;
    if (!http_req_param(req, 2, &run) || !http_req_param(req, 3, &customer) ||
        !id_parse_uuid(run, id) || !id_parse_uuid(customer, id)) {
        http_reply_errf(req, QE_BAD_PARAM, "run and customer in the path must be UUIDs");
        return;
    }
    t->done = on_recipient_found;
    buf_putc(&args, '{');
    if (tenant_task_put_path(req, &args, 1, "campaign") &&
        tenant_task_put_path(req, &args, 2, "run") &&
        tenant_task_put_path(req, &args, 3, "customer")) {
        buf_putc(&args, '}');
        tenant_task_start(t, buf_span(&args));
    }
    buf_free(&args);
}

#define RUNS "/api/v1/tenants/:tenant/campaigns/:campaign/runs"
static const char *const runs_params[] = {"limit", NULL};

const struct http_route platform_campaign_runs = {.verb = HTTP_GET,
                                                  .path = RUNS,
                                                  .access = ACCESS_READ_ONLY,
                                                  .target = TARGET_TENANT,
                                                  .need = MAY_READ,
                                                  .op = "campaign_runs",
                                                  .handle = runs_handle,
                                                  .query = runs_params};
const struct http_route platform_campaign_recipient = {.verb = HTTP_GET,
                                                       .path =
                                                           RUNS "/:run/recipients/:customer",
                                                       .access = ACCESS_READ_ONLY,
                                                       .target = TARGET_TENANT,
                                                       .need = MAY_READ,
                                                       .op = "campaign_recipient",
                                                       .handle = recipient_handle};
