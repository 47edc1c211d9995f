// Endpoints for read models.
//
//       GET  /api/v1/read-models                      state of all tenants
//       GET  /api/v1/tenants/:tenant/read-models      models of one tenant, from its database
//       PUT  /api/v1/tenants/:tenant/read-models      {"mode": "live" | "views" | "default"}
//       POST /api/v1/tenants/:tenant/read-models/refresh    as soon as a process has time
#include "base/arena.h"
#include "platform/members.h"
#include "platform/page.h"
#include "platform/platform_int.h"
#include "platform/settings.h"
#include "readmodel/readmodel.h"
#include "tenant/sql.gen.h"
#include "json/scan.h"
#include "json/write.h"

// In the request's arena, from its call to its reply.
struct model_op {
    struct http_req *req;
    struct platform *p;
    span tenant;
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_call call;
    struct pg_params params;
};

static void refresh_list_handle(struct http_req *req);
static void on_refresh_listed(struct pg_call *call, int status, const struct pg_reply *reply);
static void refresh_show_handle(struct http_req *req);
static void on_pool(struct tenant_want *w, int status, struct tenant_ref *ref,
                    const struct fault *why);
static void on_refresh_shown(struct pg_call *call, int status, const struct pg_reply *reply);
static void mode_handle(struct http_req *req);
static void refresh_handle(struct http_req *req);
static void on_wanted(struct pg_call *call, int status, const struct pg_reply *reply);

// ---- list ----

static struct model_op *refresh_op_new(struct http_req *req)
{
    struct model_op *op = arena_new(http_req_arena(req), struct model_op);

    op->req = req;
    op->p = http_req_app(req);
    return op;
}

static bool op_tenant(struct model_op *op)
{
    if (http_req_param(op->req, 0, &op->tenant))
        return true;
    http_reply_err(op->req, QE_TENANT_UNKNOWN);
    return false;
}

static void refresh_run_call(struct model_op *op, struct pg_pool *pool,
                             const struct pg_statement *statement, pg_done_cb done)
{
    op->call = (struct pg_call){
        .statement = statement, .params = &op->params, .done = done, .owner = op};
    pg_pool_exec(pool, &op->call);
}

static void refresh_list_handle(struct http_req *req)
{
    static const char *const sorts[] = {"name", "behind", NULL};
    struct model_op *op = refresh_op_new(req);

    pg_param_text(&op->params, settings_read_model_mode(op->p->conf));
    if (!page_put(req, sorts, &op->params)) {
        pg_params_free(&op->params);
        return;
    }
    refresh_run_call(op, op->p->control, &pg_stmt_platform_list_read_models, on_refresh_listed);
}

static void on_refresh_listed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct model_op *op = call->owner;
    struct buf out = {0};

    pg_params_free(&op->params);
    if (status != 0) {
        http_reply_err(op->req, status);
        return;
    }
    buf_printf(&out, "{\"default\":\"" SPAN_FMT "\",\"total\":%lld,\"readModels\":",
               SPAN_ARG(settings_read_model_mode(op->p->conf)),
               (long long)pg_reply_i64(reply, 0, PLATFORM_LIST_READ_MODELS_COL_TOTAL));
    buf_put(&out, pg_reply_bytes(reply, 0, PLATFORM_LIST_READ_MODELS_COL_BODY));
    buf_putc(&out, '}');
    http_reply_json(op->req, 200, &out);
}

// ---- one tenant ----

static void refresh_show_handle(struct http_req *req)
{
    struct model_op *op = refresh_op_new(req);

    if (!op_tenant(op))
        return;
    op->want = (struct tenant_want){.got = on_pool, .owner = op};
    tenant_get(op->p->pools, op->tenant, &op->want);
}

static void on_pool(struct tenant_want *w, int status, struct tenant_ref *ref,
                    const struct fault *why)
{
    struct model_op *op = w->owner;

    if (status != 0) {
        platform_reply_failed(op->req, status, why);
        return;
    }
    if (tenant_ref_kind(ref) != TENANT_PG) { // segments of MySQL tenants use the write model
        tenant_put(ref);
        http_reply_json_span(op->req, 200, SPAN("{\"models\":[],\"unknownColumns\":[]}"));
        return;
    }
    op->ref = ref;
    refresh_run_call(op, tenant_ref_pg(ref), &pg_stmt_tenant_read_models_json,
                     on_refresh_shown);
}

static void on_refresh_shown(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct model_op *op = call->owner;

    pg_params_free(&op->params);
    if (status == 0 && pg_reply_rows(reply) != 1)
        status = QE_PG_SHAPE;
    if (status != 0) {
        tenant_ref_failed(op->ref, status);
        http_reply_errf(op->req, status, "tenant " SPAN_FMT ": %s", SPAN_ARG(op->tenant),
                        err_text(status));
    } else {
        http_reply_json_span(op->req, 200,
                             pg_reply_bytes(reply, 0, TENANT_READ_MODELS_JSON_COL_BODY));
    }
    tenant_put(op->ref);
}

// ---- change and refresh ----

// Reads the optional string member `name` of the body.  Returns false after replying that the
// body is invalid.
static bool read_member(struct http_req *req, const char *name, span *value)
{
    const char *names[] = {name, NULL};
    span raw = SPAN_NONE;

    *value = SPAN_NONE;
    if (http_req_body(req).len == 0)
        return true;
    if (!members_read(req, names, &raw))
        return false;
    if (raw.ptr && js_type_of(raw) != JS_STRING) {
        http_reply_errf(req, QE_BAD_PARAM, "%s must be a string", name);
        return false;
    }
    if (raw.ptr)
        *value = js_text(raw, http_req_arena(req));
    return true;
}

static void put_text_or_null(struct pg_params *params, span text)
{
    if (text.ptr)
        pg_param_text(params, text);
    else
        pg_param_null(params, PG_TEXT);
}

static void refresh_want(struct model_op *op, span model, span mode)
{
    pg_param_text(&op->params, op->tenant);
    put_text_or_null(&op->params, model);
    put_text_or_null(&op->params, mode);
    refresh_run_call(op, op->p->control, &pg_stmt_platform_want_visit, on_wanted);
}

static void mode_handle(struct http_req *req)
{
    struct model_op *op = refresh_op_new(req);
    span mode;

    if (!op_tenant(op) || !read_member(req, "mode", &mode))
        return;
    if (span_eq(mode, SPAN("live")) || span_eq(mode, SPAN("views")) ||
        span_eq(mode, SPAN("default")))
        refresh_want(op, SPAN_NONE, mode);
    else
        http_reply_errf(req, QE_BAD_PARAM, "mode must be live, views or default");
}

static void refresh_handle(struct http_req *req)
{
    struct model_op *op = refresh_op_new(req);
    enum model model;
    span name;

    if (!op_tenant(op) || !read_member(req, "model", &name))
        return;
    if (!name.ptr || model_parse(name, &model))
        refresh_want(op, name, SPAN_NONE);
    else
        http_reply_errf(req, QE_BAD_PARAM,
                        "model must be customer_attributes or customer_transactions");
}

static void on_wanted(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct model_op *op = call->owner;
    struct buf out = {0};

    pg_params_free(&op->params);
    if (status != 0) {
        http_reply_err(op->req, status);
        return;
    }
    if (pg_reply_i32(reply, 0, PLATFORM_WANT_VISIT_COL_WANTED) == 0) {
        http_reply_errf(op->req, QE_TENANT_UNKNOWN,
                        "tenant " SPAN_FMT " does not exist or has no read models",
                        SPAN_ARG(op->tenant));
        return;
    }
    if (op->p->readmodel)
        readmodel_poll(op->p->readmodel);
    buf_put_lit(&out, "{\"tenant\":");
    js_put_text(&out, op->tenant);
    buf_put_lit(&out, ",\"wantedAt\":");
    pg_reply_put_json(reply, 0, PLATFORM_WANT_VISIT_COL_NOW, &out);
    buf_putc(&out, '}');
    http_reply_json(op->req, 202, &out);
}

static const char *const list_params[] = {PAGE_PARAMS, NULL};

const struct http_route platform_read_model_list = {
    .verb = HTTP_GET,
    .path = "/api/v1/read-models",
    .access = ACCESS_READ_ONLY,
    .query = list_params,
    .op = "read_model_list",
    .handle = refresh_list_handle,
};
const struct http_route platform_read_model_show = {
    .verb = HTTP_GET,
    .path = "/api/v1/tenants/:tenant/read-models",
    .access = ACCESS_READ_ONLY,
    .target = TARGET_TENANT,
    .need = MAY_READ,
    .op = "read_model_show",
    .handle = refresh_show_handle,
};
const struct http_route platform_read_model_mode = {
    .verb = HTTP_PUT,
    .path = "/api/v1/tenants/:tenant/read-models",
    .access = ACCESS_ADMIN,
    .op = "read_model_mode",
    .handle = mode_handle,
};
const struct http_route platform_read_model_refresh = {
    .verb = HTTP_POST,
    .path = "/api/v1/tenants/:tenant/read-models/refresh",
    .access = ACCESS_READ_WRITE,
    .target = TARGET_TENANT,
    .need = MAY_CONFIGURE,
    .op = "read_model_refresh",
    .handle = refresh_handle,
};
