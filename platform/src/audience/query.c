// query.c: runs a query for a segment on a tenant's database.
#include "audience/query.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

enum { DEADLINE_AFTER_MS = 2000 };

// The steps, in order.
static void on_query_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                            const struct fault *why);
static void look_at_models(struct audience_query *q);
static void on_models(struct pg_call *call, int status, const struct pg_reply *reply);
static int choose_path(struct audience_query *q, const struct pg_reply *reply);
static void query_run(struct audience_query *q, enum audience_path path);
static void run_mysql(struct audience_query *q);
static void on_query_rows(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_mysql_rows(struct my_call *call, int status, const struct my_reply *reply);
static void query_finish(struct audience_query *q, int status);

void audience_query(struct audience_query *q)
{
    q->want = (struct tenant_want){.got = on_query_tenant, .owner = q};
    q->started_us = clock_mono_us();
    tenant_get(q->pools, q->tenant, &q->want);
}

static void on_query_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                            const struct fault *why)
{
    struct audience_query *q = w->owner;

    if (status != 0) {
        q->fault = *why;
        query_finish(q, status);
        return;
    }
    q->ref = ref;
    q->kind = tenant_ref_kind(ref);
    q->identity = tenant_ref_identity(ref);
    if (q->kind == TENANT_PG)
        look_at_models(q);
    else
        run_mysql(q);
}

// ---- which path ----

static void look_at_models(struct audience_query *q)
{
    q->call = (struct pg_call){
        .statement = &pg_stmt_tenant_segment_models, .done = on_models, .owner = q};
    pg_pool_exec(tenant_ref_pg(q->ref), &q->call);
}

static void on_models(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct audience_query *q = call->owner;

    if (status == 0)
        status = choose_path(q, reply);
    else
        fault_set(&q->fault, status, "%s", pg_reply_message(reply));
    if (status != 0)
        query_finish(q, status);
    else
        query_run(q, q->source.path);
}

// The rows are the models, attributes first.
static int choose_path(struct audience_query *q, const struct pg_reply *reply)
{
    bool asks_models = q->facts.models[MODEL_ATTRIBUTES] || q->facts.models[MODEL_TRANSACTIONS];
    bool live = !q->facts.fallback_only, views = live, wants_live = true;
    int64_t stale_ms = 0, as_of_us = INT64_MAX;

    if (pg_reply_rows(reply) != MODEL_NONE)
        return fault_set(&q->fault, QE_PG_SHAPE, "the tenant's database has no read models");
    int64_t now_us = pg_reply_unix_us(reply, 0, TENANT_SEGMENT_MODELS_COL_NOW);
    for (unsigned m = 0; m < MODEL_NONE; m++) {
        if (!q->facts.models[m])
            continue;
        live &= pg_reply_bool(reply, m, TENANT_SEGMENT_MODELS_COL_LIVE);
        views &= pg_reply_bool(reply, m, TENANT_SEGMENT_MODELS_COL_VIEW);
        wants_live &=
            span_eq(pg_reply_bytes(reply, m, TENANT_SEGMENT_MODELS_COL_MODE), SPAN("live"));
        int64_t model_stale_ms = pg_reply_i64(reply, m, TENANT_SEGMENT_MODELS_COL_STALE_MS);
        int64_t as_of = model_stale_ms > 0
                            ? pg_reply_unix_us(reply, m, TENANT_SEGMENT_MODELS_COL_VIEW_AS_OF)
                            : now_us;
        stale_ms = model_stale_ms > stale_ms ? model_stale_ms : stale_ms;
        as_of_us = as_of < as_of_us ? as_of : as_of_us;
    }
    enum audience_path best = !asks_models                     ? PATH_FALLBACK // all customers
                              : live && (wants_live || !views) ? PATH_LIVE
                              : views                          ? PATH_VIEWS
                                                               : PATH_FALLBACK;
    enum audience_path path = q->choose ? q->source.path : best;
    if ((path == PATH_LIVE && !live) || (path == PATH_VIEWS && !views))
        return fault_set(
            &q->fault, QE_CONFLICT, "the path %s is unavailable: %s", audience_path_name(path),
            q->facts.fallback_only ? "no read model contains all attributes of the filter"
                                   : "it is not built yet");
    q->source.path = path;
    q->source.stale_ms = path == PATH_VIEWS ? stale_ms : 0;
    q->source.as_of_us = path == PATH_VIEWS && as_of_us != INT64_MAX ? as_of_us : now_us;
    return 0;
}

// ---- PostgreSQL ----

static int query_compose(struct audience_query *q, enum sql_dialect dialect,
                         enum audience_path path)
{
    compile_deinit(&q->sql);
    q->sql = (struct compiled){.dialect = dialect, .path = path};
    q->compose(q, &q->sql);
    buf_putc(&q->sql.text, '\0');
    if (q->sql.rc != 0 || q->sql.text.failed)
        return fault_set(&q->fault, QE_BAD_PARAM, "filter: has too many values: at most %d",
                         COMPILE_MAX_PARAMS);
    return 0;
}

// The server times out first, so that a slow segment does not cost the connection.
static unsigned query_deadline_ms(const struct audience_query *q)
{
    return q->timeout_ms > 0 ? q->timeout_ms + DEADLINE_AFTER_MS : 0;
}

static int set_timed_out(struct audience_query *q)
{
    return fault_set(&q->fault, QE_PG_RETRY,
                     "the segment took longer than %u ms on the path %s and was cancelled",
                     q->timeout_ms, audience_path_name(q->source.path));
}

static void query_run(struct audience_query *q, enum audience_path path)
{
    int rc = query_compose(q, SQL_PG, path);

    if (rc != 0) {
        query_finish(q, rc);
        return;
    }
    compile_bind(&q->sql, &q->params);
    q->statement = (struct pg_statement){
        .name = "", .text = q->sql.text.ptr, .index = PG_UNPREPARED, .returns = q->returns};
    q->call = (struct pg_call){.statement = &q->statement,
                               .params = &q->params,
                               .done = on_query_rows,
                               .owner = q,
                               .statement_timeout_ms = q->timeout_ms,
                               .deadline_ms = query_deadline_ms(q)};
    q->took_us = clock_mono_us();
    pg_pool_exec(tenant_ref_pg(q->ref), &q->call);
}

// A missing table or column: a model is being replaced by another version.
static bool is_swapped(const struct pg_reply *reply)
{
    const char *state = pg_reply_sqlstate(reply);

    return strcmp(state, "42P01") == 0 || strcmp(state, "42703") == 0;
}

static void on_query_rows(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct audience_query *q = call->owner;

    q->took_us = clock_mono_us() - q->took_us;
    if (status != 0 && is_swapped(reply) && q->source.path != PATH_FALLBACK && !q->choose) {
        log_info("segment.fallback", "tenant=" SPAN_FMT " why=\"%s\"", SPAN_ARG(q->tenant),
                 pg_reply_message(reply));
        q->source.path = PATH_FALLBACK;
        q->source.stale_ms = 0;
        query_run(q, PATH_FALLBACK);
        return;
    }
    if (status != 0 && strcmp(pg_reply_sqlstate(reply), "57014") == 0)
        status = set_timed_out(q);
    else if (status != 0)
        fault_set(&q->fault, status, "%s", pg_reply_message(reply));
    q->pg = reply;
    query_finish(q, status);
}

// ---- MySQL: the write model only ----

static void bind_mysql(const struct compiled *c, struct my_params *out)
{
    char ts[STR_TS_US];

    my_params_reset(out);
    for (unsigned i = 0; i < c->n_params; i++) {
        const struct sql_param *p = &c->params[i];
        struct buf text = {0};
        switch (p->kind) {
        case SQL_INT:
            my_param_i64(out, p->number);
            break;
        case SQL_TIME: // "2026-02-03T04:05:06.123456Z" without the letters
            str_format_ts_us(p->number, ts);
            ts[10] = ' ';
            my_param_text(out, (span){ts, sizeof ts - 1});
            break;
        case SQL_UUID:
            buf_put_uuid(&text, p->uuid);
            my_param_text(out, buf_span(&text));
            break;
        case SQL_JSON:
            js_put_text(&text, p->text);
            my_param_text(out, buf_span(&text));
            break;
        default:
            my_param_text(out, p->text);
        }
        buf_free(&text);
    }
}

static void run_mysql(struct audience_query *q)
{
    int rc = 0;

    if (q->no_mysql || (q->choose && q->source.path != PATH_FALLBACK))
        rc = fault_set(&q->fault, QE_NOT_SUPPORTED,
                       "not supported on MySQL: this needs read models");
    else if (q->facts.not_mysql)
        rc = fault_set(&q->fault, QE_NOT_SUPPORTED,
                       "one of the attributes (last_..., favourite_...) cannot be computed on "
                       "MySQL");
    else
        rc = query_compose(q, SQL_MYSQL, PATH_FALLBACK);
    if (rc != 0) {
        query_finish(q, rc);
        return;
    }
    q->source =
        (struct audience_source){.path = PATH_FALLBACK, .as_of_us = (int64_t)clock_wall_us()};
    bind_mysql(&q->sql, &q->my_params);
    q->my_statement = (struct my_statement){"", q->sql.text.ptr, PG_UNPREPARED};
    q->my_call = (struct my_call){.statement = &q->my_statement,
                                  .params = &q->my_params,
                                  .done = on_mysql_rows,
                                  .owner = q,
                                  .statement_timeout_ms = q->timeout_ms,
                                  .deadline_ms = query_deadline_ms(q)};
    q->took_us = clock_mono_us();
    my_pool_exec(tenant_ref_my(q->ref), &q->my_call);
}

static void on_mysql_rows(struct my_call *call, int status, const struct my_reply *reply)
{
    struct audience_query *q = call->owner;

    q->took_us = clock_mono_us() - q->took_us;
    if (status == QE_PG_RETRY && strcmp(my_reply_sqlstate(reply), "70100") == 0)
        status = set_timed_out(q);
    else if (status != 0)
        fault_set(&q->fault, status, "%s", my_reply_message(reply));
    q->my = reply;
    query_finish(q, status);
}

// ---- finish ----

static void query_finish(struct audience_query *q, int status)
{
    struct tenant_ref *ref = q->ref;

    if (status != 0 && q->fault.text[0] == '\0')
        fault_set(&q->fault, status, "%s", err_text(status));
    if (status != 0 && ref != NULL)
        tenant_ref_failed(ref, status);
    pg_params_free(&q->params);
    my_params_free(&q->my_params);
    compile_deinit(&q->sql);
    q->sql = (struct compiled){0};
    q->ref = NULL;
    if (status == 0)
        histogram_add(&q->stats->us[q->source.path], q->took_us);
    else
        counter_add(&q->stats->failed, 1);
    q->answered(q, status, &q->fault); // may free q
    if (ref != NULL)
        tenant_put(ref);
}

unsigned query_rows(const struct audience_query *q)
{
    return q->kind == TENANT_PG ? pg_reply_rows(q->pg) : my_reply_rows(q->my);
}

int64_t query_i64(const struct audience_query *q, unsigned row, unsigned col)
{
    return q->kind == TENANT_PG ? pg_reply_i64(q->pg, row, col) : my_reply_i64(q->my, row, col);
}

bool query_bool(const struct audience_query *q, unsigned row, unsigned col)
{
    return q->kind == TENANT_PG ? pg_reply_bool(q->pg, row, col)
                                : my_reply_i64(q->my, row, col) != 0;
}

span query_text(const struct audience_query *q, unsigned row, unsigned col)
{
    return q->kind == TENANT_PG ? pg_reply_bytes(q->pg, row, col)
                                : my_reply_text(q->my, row, col);
}
