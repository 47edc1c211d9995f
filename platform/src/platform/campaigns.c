// /api/v1/tenants/:tenant/campaigns: messages to all customers of a segment: now, at a time,
// repeatedly, or to each customer who enters it.
//
//       check ──► the tenant's database ──► a trigger at the broker ──► 201
//
// If the broker refuses the trigger, the campaign is deleted again.
#include "audience/template.h"
#include "base/log.h"
#include "base/moment.h"
#include "base/str.h"
#include "platform/members.h"
#include "platform/saved.h"
#include "platform/segment_request.h"
#include "tenant/sql.gen.h"
#include "json/retry_policy.h"
#include "json/scan.h"
#include "json/write.h"

enum { WATCH_EVERY_S = 10, MAX_TEMPLATE = 65536 };

enum { F_NAME, F_SEGMENT, F_WHEN, F_QUEUE, F_TEMPLATE, F_RETRY, F_CHANNEL, N_FIELDS };

struct campaign_request {
    struct tenant_task task;
    const char *kind;
    span at, cron, timezone; // as sent
    struct buf made;         // the campaign as returned by the database
    struct tenant_task undo;
    struct queen_error why; // why the broker refused the trigger
};

static bool read_when(struct campaign_request *c, span raw);
static bool read_channel(struct http_req *req, span raw, span *channel);
static bool read_template(struct http_req *req, span *raw);
static void on_made(struct tenant_task *t, int status, span body);
static void on_triggered(void *ctx, const struct queen_error *why);
static void on_campaign_deleted(struct tenant_task *t, int status, span body);
static void on_delete_failed(struct tenant_task *t, int status, const struct fault *why);
static void on_trigger_ended(void *ctx, const struct queen_error *why);
static void reply_not_triggered(struct campaign_request *c);

static void campaigns_put_text(struct buf *out, const char *name, span text)
{
    buf_printf(out, ",\"%s\":", name);
    js_put_text_or_null(out, text);
}

static void create_handle(struct http_req *req)
{
    static const char *const names[] = {"name",     "segment",     "when",    "queue",
                                        "template", "retryPolicy", "channel", NULL};
    struct campaign_request *c = arena_new(http_req_arena(req), struct campaign_request);
    span raw[N_FIELDS] = {{0}}, name, segment, queue, channel;
    struct fault why;
    struct buf args = {0};

    c->task = (struct tenant_task){
        .req = req, .statement = &pg_stmt_tenant_create_campaign, .done = on_made, .owner = c};
    if (!segment_request_tenant(req, &c->task.tenant) || !members_read(req, names, raw) ||
        !members_name(req, raw[F_NAME], "name", &name) ||
        !members_name(req, raw[F_SEGMENT], "segment", &segment) ||
        !members_name(req, raw[F_QUEUE], "queue", &queue) || !trigger_check_queue(req, queue) ||
        !read_when(c, raw[F_WHEN]) || !read_channel(req, raw[F_CHANNEL], &channel) ||
        !read_template(req, &raw[F_TEMPLATE]))
        return;
    // The broker applies the same check to every message and would refuse them all.
    if (raw[F_RETRY].ptr && retry_policy_check(raw[F_RETRY], &why) != 0) {
        http_reply_fault(req, &why);
        return;
    }
    buf_printf(&args, "{\"kind\":\"%s\",\"template\":", c->kind);
    buf_put(&args, raw[F_TEMPLATE]);
    if (raw[F_RETRY].ptr) {
        buf_put_lit(&args, ",\"retryPolicy\":");
        buf_put(&args, raw[F_RETRY]);
    }
    campaigns_put_text(&args, "name", name);
    campaigns_put_text(&args, "segment", segment);
    campaigns_put_text(&args, "queue", queue);
    campaigns_put_text(&args, "channel", channel);
    campaigns_put_text(&args, "at", c->at);
    campaigns_put_text(&args, "cron", c->cron);
    campaigns_put_text(&args, "timezone", c->timezone);
    buf_putc(&args, '}');
    tenant_task_start(&c->task, buf_span(&args));
    buf_free(&args);
}

// "now", "entering", {"at": time} or {"cron": ..., "timezone": ...}.
static bool read_when(struct campaign_request *c, span raw)
{
    struct http_req *req = c->task.req;
    struct arena *a = http_req_arena(req);
    static const char *const names[] = {"at", "cron", "timezone", NULL};
    span word = js_type_of(raw) == JS_STRING ? js_text(raw, a) : SPAN_NONE, members[3] = {{0}};
    int64_t us;

    if (js_type_of(raw) == JS_OBJECT) {
        if (!members_read_object(req, raw, "when", names, members))
            return false;
        for (unsigned i = 0; i < countof(members); i++)
            if (members[i].ptr && js_type_of(members[i]) != JS_STRING) {
                http_reply_errf(req, QE_BAD_PARAM, "when.%s must be a string", names[i]);
                return false;
            } else if (members[i].ptr)
                members[i] = js_text(members[i], a);
        c->at = members[0];
        c->cron = members[1];
        c->timezone = members[2];
    }
    c->kind = span_eq(word, SPAN("now"))        ? "now"
              : span_eq(word, SPAN("entering")) ? "entering"
              : c->at.ptr && !c->cron.ptr       ? "at"
              : c->cron.ptr && !c->at.ptr       ? "cron"
                                                : NULL;
    if (c->kind == NULL)
        http_reply_errf(req, QE_BAD_PARAM,
                        "when must be \"now\", \"entering\", {\"at\": time} or {\"cron\": "
                        "expression, \"timezone\": zone}");
    else if (c->at.ptr && !moment_parse(c->at, &us))
        http_reply_errf(req, QE_BAD_PARAM, "when.at must be a time: \"2026-11-16T08:00:00Z\"");
    else
        return true;
    return false;
}

static bool read_channel(struct http_req *req, span raw, span *channel)
{
    static const char *const channels[] = {"email", "sms", "other"};

    *channel = raw.ptr == NULL                ? SPAN("email")
               : js_type_of(raw) == JS_STRING ? js_text(raw, http_req_arena(req))
                                              : SPAN_NONE;
    for (unsigned i = 0; i < countof(channels); i++)
        if (span_eq(*channel, span_of(channels[i])))
            return true;
    http_reply_errf(req, QE_BAD_PARAM, "channel must be email, sms or other");
    return false;
}

static bool read_template(struct http_req *req, span *raw)
{
    struct fault why;

    if (raw->ptr == NULL)
        *raw =
            SPAN("{\"tenant\":\"{{tenant}}\",\"campaign\":\"{{campaign}}\",\"run\":\"{{run}}\","
                 "\"customer\":\"{{customer}}\",\"email\":\"{{email}}\"}");
    if (raw->len > MAX_TEMPLATE)
        http_reply_errf(req, QE_BAD_PARAM, "template must be at most %d bytes long",
                        MAX_TEMPLATE);
    else if (template_check(*raw, &why) != 0)
        http_reply_fault(req, &why);
    else
        return true;
    return false;
}

// The key of the trigger of a campaign that runs once.
static void put_once_key(struct buf *out, span tenant, span id)
{
    trigger_put_name(out, "campaign", tenant, id);
    buf_put_lit(out, ":once");
}

static void on_made(struct tenant_task *t, int status, span body)
{
    struct campaign_request *c = t->owner;
    struct platform *p = http_req_app(t->req);
    struct arena *a = http_req_arena(t->req);
    struct buf key = {0}, payload = {0};

    if (status >= 300) {
        http_reply_json_span(t->req, status, body);
        return;
    }
    span id = member_of(body, "id", a);
    buf_put(&c->made, body);
    trigger_put_payload(&payload, "campaign", t->tenant, id);
    if (c->cron.ptr) {
        trigger_put_name(&key, "campaign", t->tenant, id);
        trigger_repeat(p, buf_span(&key), c->cron, c->timezone, t->tenant, buf_span(&payload),
                       on_triggered, c);
    } else if (span_eq(span_of(c->kind), SPAN("entering"))) {
        int64_t every_s; // of its subscription, else the default
        if (!js_int(member_of(body, "everySeconds", a), &every_s))
            every_s = WATCH_EVERY_S;
        segment_watch_start(p, t->tenant, member_of(body, "segmentId", a), every_s,
                            on_triggered, c);
    } else {
        put_once_key(&key, t->tenant, id);
        trigger_push(p, buf_span(&key), c->at, t->tenant, buf_span(&payload), on_triggered, c);
    }
    buf_free(&key);
    buf_free(&payload);
}

static void on_triggered(void *ctx, const struct queen_error *why)
{
    struct campaign_request *c = ctx;
    struct buf args = {0};

    if (why == NULL) {
        http_reply_json(c->task.req, 201, &c->made);
        return;
    }
    c->why = *why;
    c->undo = (struct tenant_task){.req = c->task.req,
                                   .tenant = c->task.tenant,
                                   .statement = &pg_stmt_tenant_delete_campaign,
                                   .done = on_campaign_deleted,
                                   .failed = on_delete_failed,
                                   .owner = c};
    buf_put_lit(&args, "{\"campaign\":");
    js_put_text(&args, member_of(buf_span(&c->made), "id", http_req_arena(c->task.req)));
    buf_putc(&args, '}');
    tenant_task_start(&c->undo, buf_span(&args));
    buf_free(&args);
    buf_free(&c->made);
}

// Writes the name of the recurring trigger that a deleted campaign leaves at the broker.
// Writes nothing if it has none or another campaign needs it.  body: the result of the
// deletion.
static void put_orphaned_trigger(struct buf *out, struct tenant_task *t, span body)
{
    struct arena *a = http_req_arena(t->req);
    span kind = member_of(body, "kind", a);

    if (span_eq(kind, SPAN("cron")))
        trigger_put_name(out, "campaign", t->tenant, member_of(body, "deleted", a));
    else if (span_eq(kind, SPAN("entering")) &&
             !span_eq(member_of(body, "watched", a), SPAN("true")))
        trigger_put_name(out, "segment", t->tenant, member_of(body, "segmentId", a));
}

// If the broker did not reply, it may have created the trigger.
static void on_campaign_deleted(struct tenant_task *t, int status, span body)
{
    struct campaign_request *c = t->owner;
    struct buf name = {0};

    if (status >= 300 && status != 404) {
        on_delete_failed(t, QE_PG_AWAY, &(struct fault){.text = "refused by the database"});
        return;
    }
    if (status < 300 && !trigger_is_refused(&c->why))
        put_orphaned_trigger(&name, t, body);
    if (name.len > 0)
        trigger_end(http_req_app(t->req), buf_span(&name), on_trigger_ended, c);
    else
        reply_not_triggered(c);
    buf_free(&name);
}

static void on_delete_failed(struct tenant_task *t, int status, const struct fault *why)
{
    struct campaign_request *c = t->owner;

    log_warn("campaign.remove_failed", "tenant=" SPAN_FMT " code=%s why=\"%s\"",
             SPAN_ARG(t->tenant), err_name(status), why->text);
    http_reply_errf(t->req, QE_PG_AWAY,
                    "the broker did not accept the trigger (%s), and the campaign could not be "
                    "removed; delete it",
                    c->why.text);
}

static void on_trigger_ended(void *ctx, const struct queen_error *why)
{
    if (why) // a trigger without a campaign or a segment does nothing
        log_warn("trigger.remove_failed", "why=\"%s\"", why->text);
    reply_not_triggered(ctx);
}

static void reply_not_triggered(struct campaign_request *c)
{
    http_reply_errf(c->task.req, trigger_is_refused(&c->why) ? QE_BAD_PARAM : QE_PG_AWAY,
                    "the broker did not accept the trigger: %s", c->why.text);
}

// ---- list, get, delete ----

static void start_of_one(struct http_req *req, const struct pg_statement *statement, bool all,
                         void (*done)(struct tenant_task *t, int status, span body))
{
    struct tenant_task *t = saved_task(req, statement);
    struct buf args = {0};

    if (t == NULL)
        return;
    t->done = done;
    buf_putc(&args, '{');
    if (all || tenant_task_put_path(req, &args, 1, "campaign")) {
        buf_putc(&args, '}');
        tenant_task_start(t, buf_span(&args));
    }
    buf_free(&args);
}

static void campaigns_list_handle(struct http_req *req)
{
    start_of_one(req, &pg_stmt_tenant_get_campaign, true, NULL);
}

static void campaigns_get_handle(struct http_req *req)
{
    start_of_one(req, &pg_stmt_tenant_get_campaign, false, NULL);
}

static void on_campaigns_deleted(struct tenant_task *t, int status, span body)
{
    struct buf name = {0};

    if (status < 300)
        put_orphaned_trigger(&name, t, body);
    if (name.len > 0)
        trigger_end(http_req_app(t->req), buf_span(&name), pending_reply_on_broker,
                    pending_reply_new(t, status, body));
    else // a trigger that fires later does nothing
        http_reply_json_span(t->req, status, body);
    buf_free(&name);
}

static void campaigns_delete_handle(struct http_req *req)
{
    if (members_read_none(req))
        start_of_one(req, &pg_stmt_tenant_delete_campaign, false, on_campaigns_deleted);
}

#define CAMPAIGNS "/api/v1/tenants/:tenant/campaigns"
const struct http_route platform_create_campaign = {.verb = HTTP_POST,
                                                    .path = CAMPAIGNS,
                                                    .access = ACCESS_READ_WRITE,
                                                    .target = TARGET_TENANT,
                                                    .need = MAY_CONFIGURE,
                                                    .op = "create_campaign",
                                                    .handle = create_handle};
const struct http_route platform_list_campaigns = {.verb = HTTP_GET,
                                                   .path = CAMPAIGNS,
                                                   .access = ACCESS_READ_ONLY,
                                                   .target = TARGET_TENANT,
                                                   .need = MAY_READ,
                                                   .op = "list_campaigns",
                                                   .handle = campaigns_list_handle};
const struct http_route platform_get_campaign = {.verb = HTTP_GET,
                                                 .path = CAMPAIGNS "/:campaign",
                                                 .access = ACCESS_READ_ONLY,
                                                 .target = TARGET_TENANT,
                                                 .need = MAY_READ,
                                                 .op = "get_campaign",
                                                 .handle = campaigns_get_handle};
const struct http_route platform_delete_campaign = {.verb = HTTP_DELETE,
                                                    .path = CAMPAIGNS "/:campaign",
                                                    .access = ACCESS_READ_WRITE,
                                                    .target = TARGET_TENANT,
                                                    .need = MAY_DELETE,
                                                    .op = "delete_campaign",
                                                    .handle = campaigns_delete_handle};
