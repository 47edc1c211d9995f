// PUT and DELETE /api/v1/tenants/:tenant/segments/:segment/subscription: a queue that receives
// the customers who enter or leave a segment.
//
// The subscription is stored in the tenant's database first, then the broker schedules the
// checks. If that fails the caller gets an error, and a repeated request does both again.
#include <stdio.h>

#include "platform/members.h"
#include "platform/saved.h"
#include "tenant/sql.gen.h"
#include "json/scan.h"
#include "json/write.h"

enum { MAX_EVERY_S = 3540 };

struct pending_reply {
    struct http_req *req;
    int status;
    struct buf body;
};

struct pending_reply *pending_reply_new(struct tenant_task *t, int status, span body)
{
    struct pending_reply *f = arena_new(http_req_arena(t->req), struct pending_reply);

    f->req = t->req;
    f->status = status;
    buf_put(&f->body, body);
    return f;
}

void pending_reply_on_broker(void *ctx, const struct queen_error *why)
{
    struct pending_reply *f = ctx;

    if (why) {
        buf_free(&f->body);
        http_reply_errf(f->req, QE_PG_AWAY,
                        "stored, but the broker could not be notified (%s); repeat the request",
                        why->text);
        return;
    }
    http_reply_json(f->req, f->status, &f->body);
}

void segment_watch_end(struct tenant_task *t, int status, span body, const char *id_member)
{
    struct buf name = {0};

    if (status >= 300) {
        http_reply_json_span(t->req, status, body);
        return;
    }
    trigger_put_name(&name, "segment", t->tenant,
                     member_of(body, id_member, http_req_arena(t->req)));
    trigger_end(http_req_app(t->req), buf_span(&name), pending_reply_on_broker,
                pending_reply_new(t, status, body));
    buf_free(&name);
}

// Converts an interval to a cron expression: seconds below a minute, else whole minutes.
static span cron_of(char out[32], int64_t every_s)
{
    int n = every_s < 60 ? snprintf(out, 32, "*/%d * * * * *", (int)every_s)
                         : snprintf(out, 32, "0 */%d * * * *", (int)(every_s / 60));
    return (span){out, (size_t)n};
}

void segment_watch_start(struct platform *p, span tenant, span id, int64_t every_s,
                         trigger_cb done, void *ctx)
{
    struct buf name = {0}, payload = {0};
    char cron[32];

    trigger_put_name(&name, "segment", tenant, id);
    trigger_put_payload(&payload, "watch", tenant, id);
    trigger_repeat(p, buf_span(&name), cron_of(cron, every_s), SPAN_NONE, tenant,
                   buf_span(&payload), done, ctx);
    buf_free(&name);
    buf_free(&payload);
}

static void on_subscribed(struct tenant_task *t, int status, span body)
{
    struct arena *a = http_req_arena(t->req);
    span subscription = member_of(body, "subscription", a);
    int64_t every_s;

    if (status >= 300)
        http_reply_json_span(t->req, status, body);
    else if (!js_int(member_of(subscription, "everySeconds", a), &every_s))
        http_reply_err(t->req, QE_PG_SHAPE);
    else
        segment_watch_start(http_req_app(t->req), t->tenant, member_of(body, "id", a), every_s,
                            pending_reply_on_broker, pending_reply_new(t, status, body));
}

static void subscribe_handle(struct http_req *req)
{
    static const char *const names[] = {"queue", "everySeconds", "initial", NULL};
    struct tenant_task *t = saved_task(req, &pg_stmt_tenant_watch_segment);
    span raw[3] = {{0}}, queue;
    int64_t every_s = 10;
    bool initial = false;
    struct buf args = {0};

    if (t == NULL || !members_read(req, names, raw) ||
        !members_name(req, raw[0], "queue", &queue) || !trigger_check_queue(req, queue))
        return;
    if (raw[1].ptr && (!js_int(raw[1], &every_s) || every_s < 1 || every_s > MAX_EVERY_S)) {
        http_reply_errf(req, QE_BAD_PARAM, "everySeconds must be a whole number from 1 to %d",
                        MAX_EVERY_S);
        return;
    }
    if (raw[2].ptr && !js_bool(raw[2], &initial)) {
        http_reply_errf(req, QE_BAD_PARAM, "initial must be true or false");
        return;
    }
    buf_put_lit(&args, "{\"queue\":");
    js_put_text(&args, queue);
    buf_printf(&args, ",\"everySeconds\":%lld,\"initial\":%s", (long long)every_s,
               initial ? "true" : "false");
    t->done = on_subscribed;
    if (tenant_task_put_path(req, &args, 1, "segment")) {
        buf_putc(&args, '}');
        tenant_task_start(t, buf_span(&args));
    }
    buf_free(&args);
}

static void on_unsubscribed(struct tenant_task *t, int status, span body)
{
    // A campaign on entry still needs the checks.
    if (status < 300 &&
        span_eq(member_of(body, "watched", http_req_arena(t->req)), SPAN("true")))
        http_reply_json_span(t->req, status, body);
    else
        segment_watch_end(t, status, body, "id");
}

static void unsubscribe_handle(struct http_req *req)
{
    if (!members_read_none(req))
        return;
    struct tenant_task *t = saved_task(req, &pg_stmt_tenant_watch_segment);
    if (t != NULL)
        t->done = on_unsubscribed;
    saved_task_start(t);
}

#define SEGMENTS "/api/v1/tenants/:tenant/segments"
const struct http_route platform_subscribe = {.verb = HTTP_PUT,
                                              .path = SEGMENTS "/:segment/subscription",
                                              .access = ACCESS_READ_WRITE,
                                              .target = TARGET_TENANT,
                                              .need = MAY_CONFIGURE,
                                              .op = "subscribe_segment",
                                              .handle = subscribe_handle};
const struct http_route platform_unsubscribe = {.verb = HTTP_DELETE,
                                                .path = SEGMENTS "/:segment/subscription",
                                                .access = ACCESS_READ_WRITE,
                                                .target = TARGET_TENANT,
                                                .need = MAY_DELETE,
                                                .op = "unsubscribe_segment",
                                                .handle = unsubscribe_handle};
