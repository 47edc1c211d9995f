// /api/v1/tenants: the tenant directory: list, show, add, change, remove.
//
//       add:    reserve the name ──► create, migrate and claim the database
//                         ──► (one that was another tenant's: claim it if that is gone)
//                         ──► (a database that was a tenant's: its recurring triggers)
//                         ──► ready, 201
//                                └ failed ──► release the name, error
//       change: update the row ──► pools of the old row drain, new ones use the new row
//       remove: mark the row ──► remove the recurring triggers ──► drop the database
#include <stdlib.h>

#include "base/log.h"
#include "platform/members.h"
#include "platform/page.h"
#include "platform/platform_int.h"
#include "platform/settings.h"
#include "platform/tenant_body.h"
#include "platform/tenant_triggers.h"
#include "tenant/provision.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

// In the request's arena, from its call to its reply.
struct tenant_op {
    struct http_req *req;
    struct platform *p;
    span name;
    struct pg_call call;
    struct pg_params params;
    struct tenant_row row; // of the tenant that is being added; strings are in the arena
    struct provision provision;
    const char *directory; // its identity
    bool drop;
};

static void tenants_list_handle(struct http_req *req);
static void tenants_show_handle(struct http_req *req);
static void add_handle(struct http_req *req);
static void on_name_taken(struct pg_call *call, int status, const struct pg_reply *reply);
static void provision_tenant(struct tenant_op *op, const char *instead_of);
static void on_provisioned(struct provision *v);
static void find_owner(struct tenant_op *op);
static void on_owner_found(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_restored(void *ctx, const struct fault *why);
static void set_ready(struct tenant_op *op);
static void on_added(struct pg_call *call, int status, const struct pg_reply *reply);
static void give_back(struct tenant_op *op);
static void on_given_back(struct pg_call *call, int status, const struct pg_reply *reply);
static void change_handle(struct http_req *req);
static void on_tenants_changed(struct pg_call *call, int status, const struct pg_reply *reply);
static void remove_handle(struct http_req *req);
static void on_removed(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_triggers_removed(void *ctx, const struct fault *why);
static void on_tenants_dropped(struct provision *v);

// ---- calls to the control database ----

static struct tenant_op *tenants_op_new(struct http_req *req)
{
    struct tenant_op *op = arena_new(http_req_arena(req), struct tenant_op);

    op->req = req;
    op->p = http_req_app(req);
    return op;
}

// Reads the tenant of the path.  Returns false after replying with an error.
static bool op_name(struct tenant_op *op)
{
    if (http_req_param(op->req, 0, &op->name) && tenant_is_name(op->name))
        return true;
    http_reply_errf(op->req, QE_TENANT_UNKNOWN, "there is no such tenant");
    return false;
}

static void tenants_run_on_control(struct tenant_op *op, const struct pg_statement *statement,
                                   pg_done_cb done)
{
    op->call = (struct pg_call){
        .statement = statement, .params = &op->params, .done = done, .owner = op};
    pg_pool_exec(op->p->control, &op->call);
}

static char *text_in(struct arena *a, span text)
{
    char *copy = arena_alloc(a, text.len + 1);

    memcpy(copy, text.ptr, text.len);
    return copy;
}

static void put_cstr(struct pg_params *params, const char *text)
{
    if (text)
        pg_param_text(params, span_of(text));
    else
        pg_param_null(params, PG_TEXT);
}

// The first step of every callback.  Returns false after replying that the database failed.
static bool op_answered(struct tenant_op *op, int status, const struct pg_reply *reply)
{
    pg_params_free(&op->params);
    if (status == 0)
        return true;
    log_warn("tenant.request_failed", "op=%s code=%s error=\"%s\"", http_req_route(op->req)->op,
             err_name(status), pg_reply_message(reply));
    http_reply_err(op->req, status);
    return false;
}

static void reply_row(struct tenant_op *op, int http, const struct pg_reply *reply)
{
    if (pg_reply_rows(reply) == 0)
        http_reply_errf(op->req, QE_TENANT_UNKNOWN,
                        "tenant " SPAN_FMT ": there is no such tenant", SPAN_ARG(op->name));
    else
        http_reply_json_span(op->req, http,
                             pg_reply_bytes(reply, 0, PLATFORM_TENANT_BODY_COL_BODY));
}

// ---- list, show ----

static void on_tenants_listed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;
    struct buf out = {0};

    if (!op_answered(op, status, reply))
        return;
    buf_printf(&out, "{\"latestVersion\":%u,\"total\":%lld,\"troubled\":%lld,\"behind\":",
               pg_schema_tenant.n_migrations,
               (long long)pg_reply_i64(reply, 0, PLATFORM_TENANT_LIST_COL_TOTAL),
               (long long)pg_reply_i64(reply, 0, PLATFORM_TENANT_LIST_COL_TROUBLED));
    buf_put(&out, pg_reply_bytes(reply, 0, PLATFORM_TENANT_LIST_COL_BEHIND));
    buf_put_lit(&out, ",\"tenants\":");
    buf_put(&out, pg_reply_bytes(reply, 0, PLATFORM_TENANT_LIST_COL_BODY));
    buf_putc(&out, '}');
    http_reply_json(op->req, 200, &out);
}

static void tenants_list_handle(struct http_req *req)
{
    static const char *const sorts[] = {"name", "trouble", "behind", NULL};
    struct tenant_op *op = tenants_op_new(req);

    if (!page_put(req, sorts, &op->params)) {
        pg_params_free(&op->params);
        return;
    }
    pg_param_text(&op->params, settings_read_model_mode(op->p->conf));
    tenants_run_on_control(op, &pg_stmt_platform_tenant_list, on_tenants_listed);
}

static void on_tenants_shown(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;

    if (op_answered(op, status, reply))
        reply_row(op, 200, reply);
}

static void tenants_show_handle(struct http_req *req)
{
    struct tenant_op *op = tenants_op_new(req);

    if (!op_name(op))
        return;
    pg_param_text(&op->params, op->name);
    tenants_run_on_control(op, &pg_stmt_platform_tenant_show, on_tenants_shown);
}

// ---- add ----

static int read_tenant_body(struct tenant_op *op, struct tenant_body *b, struct fault *f)
{
    struct tenant_auth auth = settings_tenant_auth(op->p->conf);
    int rc = tenant_body_read(http_req_body(op->req), http_req_arena(op->req), b, f);

    return rc != 0 ? rc : credential_check(&auth, b->credential, f);
}

static void add_handle(struct http_req *req)
{
    struct tenant_op *op = tenants_op_new(req);
    struct arena *a = http_req_arena(req);
    struct tenant_body b;
    struct fault f;

    if (read_tenant_body(op, &b, &f) != 0) {
        http_reply_fault(req, &f);
        return;
    }
    if (!tenant_is_name(b.name)) {
        http_reply_errf(req, QE_BAD_PARAM,
                        "name must be 1 to %d lower-case letters, digits, - and _, and begin "
                        "with a letter or digit",
                        TENANT_NAME_MAX);
        return;
    }
    if (!b.url && b.has_credential) {
        http_reply_errf(req, QE_BAD_PARAM, "password and credential require a url");
        return;
    }
    op->name = b.name;
    struct buf db = {0};
    buf_printf(&db, "tenant_" SPAN_FMT, SPAN_ARG(b.name));
    op->row = (struct tenant_row){.kind = b.kind, .made = !b.url, .revision = 1};
    memcpy(op->row.name, b.name.ptr, b.name.len);
    op->row.url = b.url ? text_in(a, span_of(b.url)) : NULL;
    op->row.database = b.url ? text_in(a, span_of(b.database)) : text_in(a, buf_span(&db));
    op->row.credential = b.credential ? text_in(a, span_of(b.credential)) : NULL;
    buf_free(&db);

    pg_param_text(&op->params, op->name);
    pg_param_text(&op->params, b.kind == TENANT_MYSQL ? SPAN("mysql") : SPAN("postgresql"));
    put_cstr(&op->params, op->row.url);
    put_cstr(&op->params, op->row.database);
    put_cstr(&op->params, op->row.credential);
    tenants_run_on_control(op, &pg_stmt_platform_tenant_add, on_name_taken);
}

static void on_name_taken(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;

    if (!op_answered(op, status, reply))
        return;
    span outcome = pg_reply_bytes(reply, 0, PLATFORM_TENANT_ADD_COL_ADDED);
    if (span_eq(outcome, SPAN("database"))) {
        http_reply_errf(op->req, QE_CONFLICT, "url: the database is that of another tenant");
        return;
    }
    if (!span_eq(outcome, SPAN("added"))) {
        http_reply_errf(op->req, QE_CONFLICT, "tenant " SPAN_FMT " already exists",
                        SPAN_ARG(op->name));
        return;
    }
    op->directory = text_in(http_req_arena(op->req),
                            pg_reply_bytes(reply, 0, PLATFORM_TENANT_ADD_COL_DIRECTORY));
    provision_tenant(op, "");
}

static void provision_tenant(struct tenant_op *op, const char *instead_of)
{
    struct tenant_auth auth = settings_tenant_auth(op->p->conf);

    op->provision = (struct provision){.done = on_provisioned,
                                       .owner = op,
                                       .directory = op->directory,
                                       .instead_of = instead_of};
    provision_start(&op->provision, &op->p->loop, op->p->database, &auth, &op->row,
                    PROVISION_MIGRATE);
}

static void on_provisioned(struct provision *v)
{
    struct tenant_op *op = v->owner;

    if (v->status != 0) {
        if (v->taken_by[0] != '\0' && v->instead_of[0] == '\0')
            find_owner(op);
        else
            give_back(op);
        return;
    }
    tenant_changed(op->p->pools, op->name); // another tenant of this name may have existed
    if (v->has_triggers)
        tenant_triggers_restore(op->p, op->name, on_restored, op);
    else
        set_ready(op);
}

// Whether the tenant that has the database still exists.  The name comes from that database.
static void find_owner(struct tenant_op *op)
{
    if (!tenant_is_name(span_of(op->provision.taken_by))) {
        give_back(op);
        return;
    }
    pg_param_text(&op->params, span_of(op->provision.taken_by));
    tenants_run_on_control(op, &pg_stmt_platform_tenant_show, on_owner_found);
}

static void on_owner_found(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;

    pg_params_free(&op->params);
    if (status != 0 || pg_reply_rows(reply) > 0)
        give_back(op);
    else
        provision_tenant(op, text_in(http_req_arena(op->req), span_of(op->provision.taken_by)));
}

static void on_restored(void *ctx, const struct fault *why)
{
    struct tenant_op *op = ctx;

    if (!why) {
        set_ready(op);
        return;
    }
    op->provision.status = why->code;
    op->provision.why = *why;
    give_back(op);
}

static void set_ready(struct tenant_op *op)
{
    const struct provision *v = &op->provision;

    log_info("tenant.added", "tenant=%s version=%u ms=%llu", op->row.name, v->version,
             (unsigned long long)v->us / 1000);
    pg_param_text(&op->params, op->name);
    pg_param_i32(&op->params, (int32_t)v->version);
    pg_param_null(&op->params, PG_TEXT);
    tenants_run_on_control(op, &pg_stmt_platform_tenant_migrated, on_added);
}

static void on_added(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;

    if (op_answered(op, status, reply))
        reply_row(op, 201, reply);
}

static void give_back(struct tenant_op *op)
{
    log_warn("tenant.add_failed", "tenant=%s error=\"%s\"", op->row.name,
             op->provision.why.text);
    pg_param_text(&op->params, op->name);
    pg_param_bool(&op->params, false);
    tenants_run_on_control(op, &pg_stmt_platform_tenant_remove, on_given_back);
}

static void on_given_back(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;
    const struct provision *v = &op->provision;

    pg_params_free(&op->params);
    tenant_changed(op->p->pools, op->name);
    if (status != 0) // the reservation expires after two minutes
        log_warn("tenant.release_failed", "tenant=%s error=\"%s\"", op->row.name,
                 pg_reply_message(reply));
    http_reply_errf(op->req, v->status == QE_PG_AWAY ? QE_TENANT_DOWN : v->status,
                    "tenant %s: %s", op->row.name, v->why.text);
}

// ---- change ----

static void change_handle(struct http_req *req)
{
    struct tenant_op *op = tenants_op_new(req);
    struct tenant_body b;
    struct fault f;

    if (!op_name(op))
        return;
    if (read_tenant_body(op, &b, &f) != 0) {
        http_reply_fault(req, &f);
        return;
    }
    if (b.name.ptr && !span_eq(b.name, op->name)) {
        http_reply_errf(req, QE_BAD_PARAM, "name cannot be changed");
        return;
    }
    if (!b.url && !b.has_credential) {
        http_reply_errf(req, QE_BAD_PARAM,
                        "nothing to change: url, password or credential must be given");
        return;
    }
    pg_param_text(&op->params, op->name);
    put_cstr(&op->params, b.url);
    pg_param_bool(&op->params, b.has_credential);
    put_cstr(&op->params, b.credential);
    put_cstr(&op->params, b.database);
    pg_param_text(&op->params, b.kind == TENANT_MYSQL ? SPAN("mysql") : SPAN("postgresql"));
    tenants_run_on_control(op, &pg_stmt_platform_tenant_rotate, on_tenants_changed);
}

static void on_tenants_changed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;

    if (!op_answered(op, status, reply))
        return;
    span outcome = pg_reply_bytes(reply, 0, PLATFORM_TENANT_ROTATE_COL_OUTCOME);
    if (span_eq(outcome, SPAN("made"))) {
        http_reply_errf(op->req, QE_CONFLICT,
                        "tenant " SPAN_FMT
                        " is in a database that the platform created: it has "
                        "neither an address nor a password",
                        SPAN_ARG(op->name));
    } else if (span_eq(outcome, SPAN("kind"))) {
        http_reply_errf(op->req, QE_CONFLICT,
                        "url must be the address of the same kind of database");
    } else if (span_eq(outcome, SPAN("database"))) {
        http_reply_errf(op->req, QE_CONFLICT, "url: the database is that of another tenant");
    } else if (span_eq(outcome, SPAN("unknown"))) {
        http_reply_errf(op->req, QE_TENANT_UNKNOWN,
                        "tenant " SPAN_FMT ": there is no such tenant", SPAN_ARG(op->name));
    } else {
        log_info("tenant.changed", "tenant=" SPAN_FMT, SPAN_ARG(op->name));
        tenant_changed(op->p->pools, op->name);
        http_reply_json_span(op->req, 200,
                             pg_reply_bytes(reply, 0, PLATFORM_TENANT_ROTATE_COL_BODY));
    }
}

// ---- remove ----

static void remove_handle(struct http_req *req)
{
    struct tenant_op *op = tenants_op_new(req);

    span drop = http_req_query(req, SPAN("drop"));

    if (!op_name(op) || !members_read_none(req))
        return;
    op->drop = span_eq(drop, SPAN("true")) || span_eq(drop, SPAN("1"));
    if (drop.ptr && !op->drop && !span_eq(drop, SPAN("false")) && !span_eq(drop, SPAN("0"))) {
        http_reply_errf(req, QE_BAD_PARAM, "drop must be true or false");
        return;
    }
    pg_param_text(&op->params, op->name);
    pg_param_bool(&op->params, op->drop);
    tenants_run_on_control(op, &pg_stmt_platform_tenant_remove, on_removed);
}

static void reply_removed(struct tenant_op *op)
{
    struct buf out = {0};

    buf_put_lit(&out, "{\"tenant\":");
    js_put_text(&out, op->name);
    buf_printf(&out, ",\"removed\":true,\"dropped\":%s}", op->drop ? "true" : "false");
    http_reply_json(op->req, 200, &out);
}

static void on_removed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_op *op = call->owner;

    if (!op_answered(op, status, reply))
        return;
    span outcome = pg_reply_bytes(reply, 0, PLATFORM_TENANT_REMOVE_COL_OUTCOME);
    if (span_eq(outcome, SPAN("unknown"))) {
        http_reply_errf(op->req, QE_TENANT_UNKNOWN,
                        "tenant " SPAN_FMT ": there is no such tenant", SPAN_ARG(op->name));
        return;
    }
    if (span_eq(outcome, SPAN("adopted"))) {
        http_reply_errf(op->req, QE_CONFLICT,
                        "tenant " SPAN_FMT
                        " was adopted: the platform drops only databases that it created",
                        SPAN_ARG(op->name));
        return;
    }
    log_info("tenant.removed", "tenant=" SPAN_FMT " drop=%s", SPAN_ARG(op->name),
             op->drop ? "true" : "false");
    tenant_changed(op->p->pools, op->name);
    memcpy(op->row.name, op->name.ptr, op->name.len);
    span db = pg_reply_bytes(reply, 0, PLATFORM_TENANT_REMOVE_COL_DATABASE);
    op->row.database = text_in(http_req_arena(op->req), db);
    tenant_triggers_end(op->p, op->name, on_triggers_removed, op);
}

// A trigger that stays does nothing (triggers.c).
static void on_triggers_removed(void *ctx, const struct fault *why)
{
    struct tenant_op *op = ctx;

    if (why)
        log_warn("trigger.remove_failed", "tenant=%s why=\"%s\"", op->row.name, why->text);
    if (!op->drop) {
        reply_removed(op);
        return;
    }
    struct tenant_auth auth = settings_tenant_auth(op->p->conf);
    op->provision = (struct provision){.done = on_tenants_dropped, .owner = op};
    provision_start(&op->provision, &op->p->loop, op->p->database, &auth, &op->row,
                    PROVISION_DROP);
}

static void on_tenants_dropped(struct provision *v)
{
    struct tenant_op *op = v->owner;

    if (v->status == 0)
        reply_removed(op);
    else
        http_reply_errf(op->req, v->status,
                        "tenant %s was removed, but its database could not be dropped: %s",
                        op->row.name, v->why.text);
}

static const char *const list_params[] = {PAGE_PARAMS, NULL};

const struct http_route platform_tenant_list = {
    .verb = HTTP_GET,
    .path = "/api/v1/tenants",
    .access = ACCESS_READ_ONLY,
    .op = "tenant_list",
    .handle = tenants_list_handle,
    .query = list_params,
};
const struct http_route platform_tenant_add = {
    .verb = HTTP_POST,
    .path = "/api/v1/tenants",
    .access = ACCESS_ADMIN,
    .op = "tenant_add",
    .handle = add_handle,
};
const struct http_route platform_tenant_show = {
    .verb = HTTP_GET,
    .path = "/api/v1/tenants/:tenant",
    .access = ACCESS_READ_ONLY,
    .target = TARGET_TENANT,
    .need = MAY_READ,
    .op = "tenant_show",
    .handle = tenants_show_handle,
};
const struct http_route platform_tenant_change = {
    .verb = HTTP_PATCH,
    .path = "/api/v1/tenants/:tenant",
    .access = ACCESS_ADMIN,
    .op = "tenant_change",
    .handle = change_handle,
};
static const char *const remove_params[] = {"drop", NULL};

const struct http_route platform_tenant_remove = {.verb = HTTP_DELETE,
                                                  .path = "/api/v1/tenants/:tenant",
                                                  .access = ACCESS_ADMIN,
                                                  .op = "tenant_remove",
                                                  .handle = remove_handle,
                                                  .query = remove_params,
                                                  .unknown = UNKNOWN_OR_EMPTY_REFUSED};
