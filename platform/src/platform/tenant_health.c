// GET /api/v1/tenants/:tenant/health: checks the tenant's database through its pool, like all
// other work for it.
#include "base/clock.h"
#include "platform/platform_int.h"
#include "tenant/my_pool.h"
#include "tenant/row.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

struct health_check { // in the request's arena
    struct http_req *req;
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_call pg;
    struct my_call my;
    uint64_t asked_us, got_us;
};

// In the order they run.
static void on_tenant_health_got(struct tenant_want *w, int status, struct tenant_ref *ref,
                                 const struct fault *why);
static void on_pg(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_my(struct my_call *call, int status, const struct my_reply *reply);
static void reply_health(struct health_check *l, int status, const char *message);

static void tenant_health_health_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct health_check *l = arena_new(http_req_arena(req), struct health_check);
    span name;

    l->req = req;
    l->want = (struct tenant_want){.got = on_tenant_health_got, .owner = l};
    l->asked_us = clock_mono_us();
    if (http_req_param(req, 0, &name))
        tenant_get(p->pools, name, &l->want);
    else
        http_reply_err(req, QE_TENANT_UNKNOWN);
}

static void on_tenant_health_got(struct tenant_want *w, int status, struct tenant_ref *ref,
                                 const struct fault *why)
{
    struct health_check *l = w->owner;

    if (status != 0) {
        platform_reply_failed(l->req, status, why);
        return;
    }
    l->ref = ref;
    l->got_us = clock_mono_us();
    l->pg = (struct pg_call){.statement = &pg_stmt_tenant_ping, .done = on_pg, .owner = l};
    l->my = (struct my_call){.statement = &my_stmt_tenant_ping, .done = on_my, .owner = l};
    if (tenant_ref_kind(ref) == TENANT_PG)
        pg_pool_exec(tenant_ref_pg(ref), &l->pg);
    else
        my_pool_exec(tenant_ref_my(ref), &l->my);
}

static void on_pg(struct pg_call *call, int status, const struct pg_reply *reply)
{
    reply_health(call->owner, status, pg_reply_message(reply));
}

static void on_my(struct my_call *call, int status, const struct my_reply *reply)
{
    reply_health(call->owner, status, my_reply_message(reply));
}

static void reply_health(struct health_check *l, int status, const char *message)
{
    span name = tenant_ref_name(l->ref);
    struct buf out = {0};

    if (status == 0) {
        buf_put_lit(&out, "{\"tenant\":");
        js_put_text(&out, name);
        buf_printf(&out, ",\"status\":\"up\",\"getMs\":%.3f,\"answerMs\":%.3f}",
                   (double)(l->got_us - l->asked_us) / 1e3,
                   (double)(clock_mono_us() - l->got_us) / 1e3);
        http_reply_json(l->req, 200, &out);
    } else {
        tenant_ref_failed(l->ref, status);
        http_reply_errf(l->req, status, "tenant " SPAN_FMT ": %s", SPAN_ARG(name), message);
    }
    tenant_put(l->ref);
}

const struct http_route platform_tenant_health = {
    .verb = HTTP_GET,
    .path = "/api/v1/tenants/:tenant/health",
    .access = ACCESS_READ_ONLY,
    .target = TARGET_TENANT,
    .need = MAY_READ,
    .op = "tenant_health",
    .handle = tenant_health_health_handle,
};
