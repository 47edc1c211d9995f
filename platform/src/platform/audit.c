// The audit log: stores records (auth/audit.h) in the control database, removes old ones, and
// shows them.
//
//      GET /api/v1/audit   newest first
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/moment.h"
#include "base/str.h"
#include "http/prom_text.h"
#include "platform/platform_int.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

enum { TRIM_MS = 600 * 1000 };

struct record_call {
    struct pg_call call;
    struct pg_params params;
    struct audit *audit;
};

struct audit_list { // in the request's arena
    struct http_req *req;
    struct pg_call call;
    struct pg_params params;
};

static void on_recorded(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_audit_listed(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_trim_due(uv_timer_t *timer);
static void on_trimmed(struct pg_call *call, int status, const struct pg_reply *reply);

bool platform_store_audit(void *ctx, struct audit *a, struct pg_params *params)
{
    struct platform *p = ctx;

    if (!p->control)
        return false;
    struct record_call *c = mem_new(struct record_call);
    c->audit = a;
    c->params = *params;
    c->call = (struct pg_call){.statement = &pg_stmt_platform_record_audit,
                               .params = &c->params,
                               .done = on_recorded,
                               .owner = c};
    pg_pool_exec(p->control, &c->call);
    return true;
}

static void on_recorded(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct record_call *c = call->owner;
    struct audit *audit = c->audit;

    if (status != 0)
        log_warn("audit.store_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    pg_params_free(&c->params);
    free(c);
    audit_stored(audit, status);
}

// ---- the list ----

// False: answered with 400.
static bool check_param(struct http_req *req, const char *name, span value)
{
    bool is_time = strcmp(name, "from") == 0 || strcmp(name, "to") == 0;
    uint64_t n;
    int64_t us;

    if (memchr(value.ptr, '\0', value.len) || !str_is_utf8(value))
        http_reply_errf(req, QE_BAD_PARAM, "%s must be UTF-8 text without NUL", name);
    else if (is_time && !moment_parse(value, &us))
        http_reply_errf(req, QE_BAD_PARAM, "%s must be a timestamp", name);
    else if ((strcmp(name, "limit") == 0 || strcmp(name, "before") == 0) &&
             (!str_parse_u64(value, &n) || n > INT64_MAX))
        http_reply_errf(req, QE_BAD_PARAM, "%s must be a whole number", name);
    else if (strcmp(name, "result") == 0 && !span_eq(value, SPAN("ok")) &&
             !span_eq(value, SPAN("failed")) && !span_eq(value, SPAN("denied")))
        http_reply_errf(req, QE_BAD_PARAM, "result must be ok, failed or denied");
    else
        return true;
    return false;
}

static void audit_list_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct audit_list *l = arena_new(http_req_arena(req), struct audit_list);
    struct buf args = {0};

    buf_putc(&args, '{');
    for (const char *const *name = http_req_route(req)->query; *name; name++) {
        span value = http_req_query(req, span_of(*name));
        if (!value.ptr)
            continue;
        if (!check_param(req, *name, value)) {
            buf_free(&args);
            return;
        }
        if (args.len > 1)
            buf_putc(&args, ',');
        js_put_text(&args, span_of(*name));
        buf_putc(&args, ':');
        js_put_text(&args, value);
    }
    buf_putc(&args, '}');
    l->req = req;
    pg_param_text(&l->params, buf_span(&args));
    buf_free(&args);
    l->call = (struct pg_call){.statement = &pg_stmt_platform_list_audit,
                               .params = &l->params,
                               .done = on_audit_listed,
                               .owner = l};
    pg_pool_exec(p->control, &l->call);
}

static void on_audit_listed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct audit_list *l = call->owner;

    pg_params_free(&l->params);
    if (status != 0)
        http_reply_err(l->req, status);
    else
        http_reply_json_span(l->req, 200,
                             pg_reply_bytes(reply, 0, PLATFORM_LIST_AUDIT_COL_BODY));
}

static const char *const audit_query[] = {"subject", "address", "operation", "target", "result",
                                          "from",    "to",      "limit",     "before", NULL};
const struct http_route platform_list_audit = {.verb = HTTP_GET,
                                               .path = "/api/v1/audit",
                                               .access = ACCESS_ADMIN,
                                               .op = "list_audit",
                                               .query = audit_query,
                                               .handle = audit_list_handle};

// ---- old records ----

static void audit_part_start(struct platform *p)
{
    uv_timer_init(&p->loop, &p->audit_trim);
    p->audit_trim.data = p;
    uv_timer_start(&p->audit_trim, on_trim_due, 1000, TRIM_MS);
}

static void on_trim_due(uv_timer_t *timer)
{
    struct platform *p = timer->data;
    struct record_call *c = mem_new(struct record_call);

    pg_param_i32(&c->params, p->conf->audit_retention_days);
    c->call = (struct pg_call){.statement = &pg_stmt_platform_trim_audit,
                               .params = &c->params,
                               .done = on_trimmed,
                               .owner = c};
    pg_pool_exec(p->control, &c->call);
}

static void on_trimmed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct record_call *c = call->owner;

    if (status != 0)
        log_warn("audit.trim_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    pg_params_free(&c->params);
    free(c);
}

static void on_trim_closed(uv_handle_t *handle) { platform_part_stopped(handle->data); }

static void audit_part_stop(struct platform *p)
{
    uv_close((uv_handle_t *)&p->audit_trim, on_trim_closed);
}

static void audit_part_expose(struct platform *p, struct buf *out)
{
    prom_family(out, "queen_platform_audit_records_total", "counter",
                "records of the audit log that were stored, and that could not be stored");
    prom_u64(out, "queen_platform_audit_records_total", "result=\"stored\"",
             counter_get(&p->audit_stats.stored));
    prom_u64(out, "queen_platform_audit_records_total", "result=\"lost\"",
             counter_get(&p->audit_stats.lost));
}

const struct platform_part platform_audit_part = {.name = "audit",
                                                  .start = audit_part_start,
                                                  .stop = audit_part_stop,
                                                  .expose = audit_part_expose};
