// POST /api/v1/tenants/migrate: migrates the schemas of all tenants, several at once, and
// reports the results.
//
//       rows of the directory ──► up to migrate_parallel at once ──► each recorded ──► report
#include <stdlib.h>

#include "base/log.h"
#include "platform/members.h"
#include "platform/platform_int.h"
#include "platform/settings.h"
#include "tenant/directory.h"
#include "tenant/provision.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

struct run;

struct one { // a tenant of the run
    struct run *run;
    struct tenant_row row;
    struct provision provision;
    struct pg_call call;
    struct pg_params params;
};

struct run { // in the request's arena
    struct http_req *req;
    struct platform *p;
    struct pg_call call;
    struct one *ones;
    unsigned n, next, n_done, n_migrated, n_failed;
    struct buf report;
};

// In the order they run.
static void on_migrate_rows(struct pg_call *call, int status, const struct pg_reply *reply);
static void start_next(struct run *r);
static void on_migrated(struct provision *v);
static void on_migrate_noted(struct pg_call *call, int status, const struct pg_reply *reply);
static void reply_report(struct run *r);

static void migrate_handle(struct http_req *req)
{
    struct run *r = arena_new(http_req_arena(req), struct run);

    if (!members_read_none(req))
        return;
    r->req = req;
    r->p = http_req_app(req);
    r->call = (struct pg_call){
        .statement = &pg_stmt_platform_tenant_rows, .done = on_migrate_rows, .owner = r};
    pg_pool_exec(r->p->control, &r->call);
}

static void on_migrate_rows(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct run *r = call->owner;

    if (status != 0) {
        http_reply_err(r->req, status);
        return;
    }
    r->n = pg_reply_rows(reply);
    r->ones = arena_new_array(http_req_arena(r->req), struct one, r->n + 1);
    for (unsigned i = 0; i < r->n; i++)
        r->ones[i].row = directory_row(reply, i);
    if (r->n == 0)
        reply_report(r);
    for (int i = 0; i < r->p->conf->migrate_parallel; i++)
        start_next(r);
}

static void start_next(struct run *r)
{
    if (r->next == r->n)
        return;
    struct one *o = &r->ones[r->next++];
    o->run = r;
    struct tenant_auth auth = settings_tenant_auth(r->p->conf);
    o->provision = (struct provision){.done = on_migrated, .owner = o};
    provision_start(&o->provision, &r->p->loop, r->p->database, &auth, &o->row,
                    PROVISION_MIGRATE);
}

static void on_migrated(struct provision *v)
{
    struct one *o = v->owner;

    if (v->status != 0)
        log_warn("tenant.migrate_failed", "tenant=%s error=\"%s\"", o->row.name, v->why.text);
    pg_param_text(&o->params, span_of(o->row.name));
    if (v->status == 0) {
        pg_param_i32(&o->params, (int32_t)v->version);
        pg_param_null(&o->params, PG_TEXT);
    } else {
        pg_param_null(&o->params, PG_INT4);
        pg_param_text(&o->params, span_of(v->why.text));
    }
    o->call = (struct pg_call){.statement = &pg_stmt_platform_tenant_migrated,
                               .params = &o->params,
                               .done = on_migrate_noted,
                               .owner = o};
    pg_pool_exec(o->run->p->control, &o->call);
}

static void put_one(struct run *r, const struct one *o)
{
    const struct provision *v = &o->provision;
    bool changed = v->n_migrations + v->n_objects > 0;

    buf_printf(&r->report, "%s{\"tenant\":", r->report.len > 0 ? "," : "");
    js_put_text(&r->report, span_of(o->row.name));
    buf_printf(&r->report, ",\"status\":\"%s\",\"migrations\":%u,\"objects\":%u,\"ms\":%llu",
               v->status != 0 ? "failed"
               : changed      ? "migrated"
                              : "current",
               v->n_migrations, v->n_objects, (unsigned long long)v->us / 1000);
    buf_put_lit(&r->report, ",\"error\":");
    js_put_text_or_null(&r->report, v->status != 0 ? span_of(v->why.text) : SPAN_NONE);
    buf_putc(&r->report, '}');
    r->n_failed += v->status != 0;
    r->n_migrated += v->status == 0 && changed;
}

static void on_migrate_noted(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct one *o = call->owner;
    struct run *r = o->run;

    if (status != 0)
        log_warn("tenant.record_failed", "tenant=%s error=\"%s\"", o->row.name,
                 pg_reply_message(reply));
    pg_params_free(&o->params);
    put_one(r, o);
    tenant_row_deinit(&o->row);
    if (++r->n_done == r->n)
        reply_report(r);
    else
        start_next(r);
}

static void reply_report(struct run *r)
{
    struct buf out = {0};

    buf_printf(&out,
               "{\"version\":%u,\"migrated\":%u,\"failed\":%u,\"current\":%u,\"tenants\":[",
               pg_schema_tenant.n_migrations, r->n_migrated, r->n_failed,
               r->n - r->n_migrated - r->n_failed);
    buf_put(&out, buf_span(&r->report));
    buf_put_lit(&out, "]}");
    buf_free(&r->report);
    http_reply_json(r->req, 200, &out);
}

const struct http_route platform_tenant_migrate = {
    .verb = HTTP_POST,
    .path = "/api/v1/tenants/migrate",
    .access = ACCESS_ADMIN,
    .op = "tenant_migrate",
    .handle = migrate_handle,
};
