// tenant_task.c: one call of a function in a tenant's database.
#include "platform/tenant_task.h"

#include "base/clock.h"
#include "base/str.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

static void on_task_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                           const struct fault *why);
static void on_task_answer(struct pg_call *call, int status, const struct pg_reply *reply);

void tenant_task_start(struct tenant_task *t, span args)
{
    struct platform *p = http_req_app(t->req);

    pg_param_text(&t->params, args);
    t->want = (struct tenant_want){.got = on_task_tenant, .owner = t};
    tenant_get(p->pools, t->tenant, &t->want);
}

static void task_failed(struct tenant_task *t, int status, const struct fault *why)
{
    if (t->failed)
        t->failed(t, status, why);
    else
        platform_reply_failed(t->req, status, why);
}

static void on_task_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                           const struct fault *why)
{
    struct tenant_task *t = w->owner;

    if (status == 0 && tenant_ref_kind(ref) == TENANT_PG) {
        t->ref = ref;
        t->call = (struct pg_call){.statement = t->statement,
                                   .params = &t->params,
                                   .done = on_task_answer,
                                   .owner = t};
        pg_pool_exec(tenant_ref_pg(ref), &t->call);
        return;
    }
    pg_params_free(&t->params);
    if (status != 0) {
        task_failed(t, status, why);
    } else {
        tenant_put(ref);
        http_reply_errf(t->req, QE_NOT_SUPPORTED,
                        "saved segments and campaigns are not supported on MySQL");
    }
}

static bool is_http_status(int32_t n) { return n >= 200 && n < 600; }

static void on_task_answer(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_task *t = call->owner;
    struct tenant_ref *ref = t->ref;

    pg_params_free(&t->params);
    if (status != 0) {
        struct fault why;
        fault_set(&why, status, "%s", pg_reply_message(reply));
        tenant_ref_failed(ref, status);
        task_failed(t, status, &why);
    } else if (pg_reply_rows(reply) == 0 ||
               !is_http_status(pg_reply_i32(reply, 0, TENANT_ANSWER_COL_STATUS))) {
        http_reply_err(t->req, QE_PG_SHAPE);
    } else if (t->done) {
        t->done(t, pg_reply_i32(reply, 0, TENANT_ANSWER_COL_STATUS),
                pg_reply_bytes(reply, 0, TENANT_ANSWER_COL_BODY));
    } else {
        http_reply_json_span(t->req, pg_reply_i32(reply, 0, TENANT_ANSWER_COL_STATUS),
                             pg_reply_bytes(reply, 0, TENANT_ANSWER_COL_BODY));
    }
    tenant_put(ref);
}

static void task_put_member(struct buf *out, const char *name, span value)
{
    if (out->len > 0 && out->ptr[out->len - 1] != '{')
        buf_putc(out, ',');
    js_put_text(out, span_of(name));
    buf_putc(out, ':');
    js_put_text(out, value);
}

bool tenant_task_put_path(struct http_req *req, struct buf *out, unsigned i, const char *name)
{
    span value;

    if (!http_req_param(req, i, &value) || memchr(value.ptr, '\0', value.len)) {
        http_reply_errf(req, QE_BAD_PARAM, "%s in the path is malformed", name);
        return false;
    }
    task_put_member(out, name, value);
    return true;
}

void tenant_task_put_query(struct http_req *req, struct buf *out, const char *name)
{
    span value = http_req_query(req, span_of(name));

    if (value.len > 0 && str_is_utf8(value) && !memchr(value.ptr, '\0', value.len))
        task_put_member(out, name, value);
}

bool tenant_task_put_count(struct http_req *req, struct buf *out, const char *name,
                           int64_t most)
{
    span value = http_req_query(req, span_of(name));
    int64_t n;

    if (value.len == 0)
        return true;
    if (!str_parse_i64(value, &n) || n < 1 || n > most) {
        http_reply_errf(req, QE_BAD_PARAM, "%s must be a whole number from 1 to %lld", name,
                        (long long)most);
        return false;
    }
    task_put_member(out, name, value);
    return true;
}
