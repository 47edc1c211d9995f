// visit.c: maintains one model of one tenant.
//
// A visit first inspects the model and decides on a list of steps.  A step that is blocked by
// readers or writers is retried after a pause.  Filling a live table takes many statements:
// when other tenants wait, the visit ends after a while and is continued by another one.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "readmodel/readmodel_int.h"
#include "tenant/sql.gen.h"

enum {
    PAUSE_MS = 100, // between two attempts
    MAX_TRIES = 100,
    END_DEADLINE_MS = 5000,
};

// In the order in which they run.
enum todo {
    DROP_LIVE = 1 << 0,
    FILL_LIVE = 1 << 1,
    REFRESH = 1 << 2,
    SWAP = 1 << 3,
    CHECK_LIVE = 1 << 4,
};

struct visit {
    struct readmodel *rm;
    TAILQ_ENTRY(visit) link;
    char tenant[MODEL_STATS_NAME_MAX];
    enum model model;
    bool live, wanted, claimed, refreshed;
    bool again; // not complete
    uint64_t claimed_ms;
    unsigned failures;

    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_call call;
    struct pg_params params;
    uv_timer_t pause;
    unsigned todo, tries;
    uint64_t began_us;
    struct fault why; // code 0: no error
};

// In the order they run.
static void visit_claim(struct visit *v);
static void on_claimed(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_visit_tenant_ready(struct tenant_want *w, int status, struct tenant_ref *ref,
                                  const struct fault *why);
static void inspect_model(struct visit *v);
static void on_inspected(struct pg_call *call, int status, const struct pg_reply *reply);
static void visit_advance(struct visit *v);
static void on_visit_dropped(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_filled(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_refreshed(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_swapped(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_visit_checked(struct pg_call *call, int status, const struct pg_reply *reply);
static void retry_later(struct visit *v, const char *what);
static void on_pause(uv_timer_t *pause);
static void visit_fail(struct visit *v, int status, const char *what,
                       const struct pg_reply *reply);
static void on_visit_failure_recorded(struct pg_call *call, int status,
                                      const struct pg_reply *reply);
static void visit_finish(struct visit *v);
static void on_ended(struct pg_call *call, int status, const struct pg_reply *reply);
static void visit_close(struct visit *v);
static void on_pause_closed(uv_handle_t *pause);

void visit_start(struct readmodel *rm, const struct visit_order *order)
{
    struct visit *v = mem_new(struct visit);

    v->rm = rm;
    memcpy(v->tenant, order->tenant.ptr, order->tenant.len);
    v->model = order->model;
    v->live = order->live;
    v->wanted = order->wanted;
    v->failures = order->failures;
    uv_timer_init(rm->loop, &v->pause);
    v->pause.data = v->call.owner = v->want.owner = v;
    TAILQ_INSERT_TAIL(&rm->visits, v, link);
    rm->n_visits++;
    visit_claim(v);
}

static void visit_run_call(struct visit *v, struct pg_pool *pool,
                           const struct pg_statement *statement, pg_done_cb done,
                           unsigned limit_ms)
{
    v->call.statement = statement;
    v->call.params = &v->params;
    v->call.done = done;
    // The pool closes the connection a little after the server's own time limit.
    v->call.statement_timeout_ms = limit_ms;
    v->call.deadline_ms = limit_ms > 0 ? limit_ms + END_DEADLINE_MS : 0;
    pg_pool_exec(pool, &v->call);
}

// All statements for the tenant start with the model.
static void run_on_tenant(struct visit *v, const struct pg_statement *statement,
                          pg_done_cb done)
{
    visit_run_call(v, tenant_ref_pg(v->ref), statement, done, v->rm->conf.refresh_timeout_ms);
}

static void begin_params(struct visit *v)
{
    pg_params_reset(&v->params);
    pg_param_text(&v->params, model_name(v->model));
}

static void visit_claim(struct visit *v)
{
    pg_params_reset(&v->params);
    pg_param_text(&v->params, span_of(v->tenant));
    pg_param_text(&v->params, model_name(v->model));
    pg_param_text(&v->params, span_of(v->rm->who));
    pg_param_i32(&v->params, (int32_t)v->rm->conf.lease_ms);
    pg_param_i32(&v->params, (int32_t)v->rm->conf.at_once);
    visit_run_call(v, v->rm->control, &pg_stmt_platform_claim_visit, on_claimed, 0);
}

static void on_claimed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;

    if (status != 0 || !pg_reply_bool(reply, 0, PLATFORM_CLAIM_VISIT_COL_TAKEN)) {
        // Claimed by another process, or no free place: the agenda lists it again.
        v->rm->is_crowded = true;
        visit_close(v);
        return;
    }
    v->claimed = true;
    v->claimed_ms = uv_now(v->rm->loop);
    span abandoned_by = pg_reply_bytes(reply, 0, PLATFORM_CLAIM_VISIT_COL_ABANDONED_BY);
    if (abandoned_by.ptr) {
        counter_add(&v->rm->stats.abandoned, 1);
        log_warn("readmodel.abandoned", "tenant=%s model=" SPAN_FMT " by=" SPAN_FMT, v->tenant,
                 SPAN_ARG(model_name(v->model)), SPAN_ARG(abandoned_by));
    }
    counter_add(&v->rm->stats.visits, 1);
    v->want.got = on_visit_tenant_ready;
    tenant_get(v->rm->tenants, span_of(v->tenant), &v->want);
}

static void on_visit_tenant_ready(struct tenant_want *w, int status, struct tenant_ref *ref,
                                  const struct fault *why)
{
    struct visit *v = w->owner;

    if (status == 0 && tenant_ref_kind(ref) != TENANT_PG) {
        tenant_put(ref);
        status = fault_set(&v->why, QE_NOT_SUPPORTED, "read models are not supported on MySQL");
    } else if (status != 0) {
        fault_set(&v->why, status, "%s", why->text);
    }
    if (status != 0) {
        visit_finish(v);
        return;
    }
    v->ref = ref;
    inspect_model(v);
}

static void inspect_model(struct visit *v)
{
    begin_params(v);
    pg_param_text(&v->params, v->live ? SPAN("live") : SPAN("views"));
    run_on_tenant(v, &pg_stmt_tenant_visit_model, on_inspected);
}

// Logs write-model columns that no read model contains when they are first seen.
static void report_drift(struct visit *v, struct model_stat *stat, span unknown)
{
    unsigned n = unknown.len > 0;

    for (size_t i = 0; i < unknown.len; i++)
        n += unknown.ptr[i] == ',';
    if (n != stat->unknown_columns && n > 0)
        log_warn("readmodel.drift", "tenant=%s columns=\"" SPAN_FMT "\"", v->tenant,
                 SPAN_ARG(unknown));
    stat->unknown_columns = n;
}

static void on_inspected(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;
    struct readmodel *rm = v->rm;

    if (status != 0) {
        visit_fail(v, status, "cannot inspect the read model", reply);
        return;
    }
    bool live_ready = pg_reply_bool(reply, 0, TENANT_VISIT_MODEL_COL_LIVE_READY),
         live_there = pg_reply_bool(reply, 0, TENANT_VISIT_MODEL_COL_LIVE_THERE);
    bool view_ready = pg_reply_bool(reply, 0, TENANT_VISIT_MODEL_COL_VIEW_READY);
    int64_t age_ms = pg_reply_is_null(reply, 0, TENANT_VISIT_MODEL_COL_REFRESHED_MS_AGO)
                         ? INT64_MAX
                         : pg_reply_i64(reply, 0, TENANT_VISIT_MODEL_COL_REFRESHED_MS_AGO);
    struct model_stat *stat = model_stats_get(&rm->stats, span_of(v->tenant), v->model);

    stat->live = v->live;
    report_drift(v, stat, pg_reply_bytes(reply, 0, TENANT_VISIT_MODEL_COL_UNKNOWN_COLUMNS));
    if (v->live)
        v->todo |= CHECK_LIVE | (live_ready ? 0 : FILL_LIVE);
    else if (live_there)
        v->todo |= DROP_LIVE;
    if (!v->live || v->wanted || !view_ready || age_ms >= rm->conf.safety_us / 1000)
        v->todo |= REFRESH;
    visit_advance(v);
}

static void visit_advance(struct visit *v)
{
    const struct readmodel_conf *c = &v->rm->conf;

    if (v->rm->closing) {
        fault_set(&v->why, QE_STOPPING, "the platform is stopping");
        visit_finish(v);
        return;
    }
    begin_params(v);
    v->began_us = clock_mono_us();
    if (v->todo & DROP_LIVE) {
        run_on_tenant(v, &pg_stmt_tenant_drop_live, on_visit_dropped);
    } else if (v->todo & FILL_LIVE) {
        pg_param_i32(&v->params, (int32_t)c->fill_chunk);
        run_on_tenant(v, &pg_stmt_tenant_fill_live, on_filled);
    } else if (v->todo & REFRESH) {
        pg_param_text(&v->params, span_of(v->rm->who));
        pg_param_i32(&v->params, (int32_t)c->work_mem_mb);
        pg_param_bool(&v->params, false);
        run_on_tenant(v, &pg_stmt_tenant_refresh_view, on_refreshed);
    } else if (v->todo & SWAP) {
        run_on_tenant(v, &pg_stmt_tenant_swap_view, on_swapped);
    } else if (v->todo & CHECK_LIVE) {
        pg_param_i32(&v->params, (int32_t)c->sample);
        run_on_tenant(v, &pg_stmt_tenant_check_live, on_visit_checked);
    } else {
        visit_finish(v);
    }
}

static void step_done(struct visit *v, enum todo what)
{
    v->todo &= ~(unsigned)what;
    v->tries = 0;
    visit_advance(v);
}

static void on_visit_dropped(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;

    if (status != 0)
        visit_fail(v, status, "cannot drop the live table", reply);
    else if (!pg_reply_bool(reply, 0, TENANT_DROP_LIVE_COL_DONE))
        retry_later(v, "readers or writers still use the live table");
    else
        step_done(v, DROP_LIVE);
}

static void on_filled(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;

    if (status != 0) {
        visit_fail(v, status, "cannot fill the live table", reply);
        return;
    }
    span state = pg_reply_bytes(reply, 0, TENANT_FILL_LIVE_COL_STATE);
    if (span_eq(state, SPAN("busy"))) {
        retry_later(v, "the live table is busy");
        return;
    }
    if (span_eq(state, SPAN("ready"))) {
        log_info("readmodel.live_ready", "tenant=%s model=" SPAN_FMT, v->tenant,
                 SPAN_ARG(model_name(v->model)));
        step_done(v, FILL_LIVE);
        return;
    }
    counter_add(&v->rm->stats.filled, 1);
    v->tries = 0;
    v->again = v->rm->is_crowded && uv_now(v->rm->loop) - v->claimed_ms > v->rm->conf.lease_ms;
    if (v->again)
        visit_finish(v);
    else
        visit_advance(v);
}

static void on_refreshed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;
    struct model_stats *f = &v->rm->stats;

    if (status != 0) {
        visit_fail(v, status, "cannot refresh the view", reply);
        return;
    }
    span action = pg_reply_bytes(reply, 0, TENANT_REFRESH_VIEW_COL_ACTION);
    if (span_eq(action, SPAN("clean"))) {
        counter_add(&f->clean, 1);
        v->refreshed = true; // it is already current
        step_done(v, REFRESH);
        return;
    }
    if (span_eq(action, SPAN("busy"))) {
        counter_add(&f->busy, 1);
        retry_later(v, "another session refreshes the view");
        return;
    }
    struct model_stat *stat = model_stats_get(f, span_of(v->tenant), v->model);
    bool built = span_eq(action, SPAN("built"));
    stat->rows = pg_reply_i64(reply, 0, TENANT_REFRESH_VIEW_COL_ROWS);
    stat->refresh_ms = pg_reply_i32(reply, 0, TENANT_REFRESH_VIEW_COL_MS);
    histogram_add(&f->refresh_us[v->model], clock_mono_us() - v->began_us);
    counter_add(built ? &f->built : &f->refreshed, 1);
    log_debug("readmodel.refreshed",
              "tenant=%s model=" SPAN_FMT " built=%d rows=%" PRId64 " ms=%" PRId64, v->tenant,
              SPAN_ARG(model_name(v->model)), built, stat->rows, stat->refresh_ms);
    if (built)
        v->todo |= SWAP;
    else
        v->refreshed = true;
    step_done(v, REFRESH);
}

static void on_swapped(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;

    if (status != 0) {
        visit_fail(v, status, "cannot swap the view", reply);
    } else if (!pg_reply_bool(reply, 0, TENANT_SWAP_VIEW_COL_DONE)) {
        counter_add(&v->rm->stats.swap_retries, 1);
        retry_later(v, "readers still use the old view");
    } else {
        log_info("readmodel.built", "tenant=%s model=" SPAN_FMT, v->tenant,
                 SPAN_ARG(model_name(v->model)));
        v->refreshed = true;
        step_done(v, SWAP);
    }
}

static void on_visit_checked(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;
    struct model_stats *f = &v->rm->stats;

    if (status != 0) {
        visit_fail(v, status, "cannot compare the live table", reply);
        return;
    }
    int64_t differing = pg_reply_i64(reply, 0, TENANT_CHECK_LIVE_COL_DIFFERING);
    counter_add(&f->checked, (uint64_t)pg_reply_i64(reply, 0, TENANT_CHECK_LIVE_COL_CHECKED));
    counter_add(&f->differing, (uint64_t)differing);
    if (differing > 0)
        log_error("readmodel.mismatch",
                  "tenant=%s model=" SPAN_FMT " rows=%" PRId64 " repaired=%" PRId64, v->tenant,
                  SPAN_ARG(model_name(v->model)), differing, differing);
    step_done(v, CHECK_LIVE);
}

static void retry_later(struct visit *v, const char *what)
{
    if (v->rm->closing || ++v->tries > MAX_TRIES) {
        fault_set(&v->why, QE_BUSY, "%s", what);
        visit_finish(v);
        return;
    }
    uv_timer_start(&v->pause, on_pause, PAUSE_MS, 0);
}

static void on_pause(uv_timer_t *pause) { visit_advance(pause->data); }

// Records in the tenant's database why its view is not fresh, unless that database is
// unavailable.
static void visit_fail(struct visit *v, int status, const char *what,
                       const struct pg_reply *reply)
{
    const char *message = pg_reply_message(reply);

    fault_set(&v->why, status, "%s: %s", what, message[0] ? message : err_text(status));
    tenant_ref_failed(v->ref, status);
    if (status == QE_PG_GONE || status == QE_PG_AWAY || status == QE_STOPPING) {
        visit_finish(v);
        return;
    }
    begin_params(v);
    pg_param_text(&v->params, span_of(v->why.text));
    run_on_tenant(v, &pg_stmt_tenant_refresh_failed, on_visit_failure_recorded);
}

static void on_visit_failure_recorded(struct pg_call *call, int status,
                                      const struct pg_reply *reply)
{
    struct visit *v = call->owner;

    if (status != 0)
        log_warn("readmodel.record_failed", "tenant=%s why=\"%s\"", v->tenant,
                 pg_reply_message(reply));
    visit_finish(v);
}

static void visit_finish(struct visit *v)
{
    struct readmodel *rm = v->rm;

    if (v->ref)
        tenant_put(v->ref);
    v->ref = NULL;
    if (v->why.code != 0) {
        counter_add(&rm->stats.failed, 1);
        if (v->why.code != QE_STOPPING)
            log_warn("readmodel.failed", "tenant=%s model=" SPAN_FMT " why=\"%s\"", v->tenant,
                     SPAN_ARG(model_name(v->model)), v->why.text);
    }
    pg_params_reset(&v->params);
    pg_param_text(&v->params, span_of(v->tenant));
    pg_param_text(&v->params, model_name(v->model));
    pg_param_text(&v->params, span_of(rm->who));
    if (v->why.code != 0)
        pg_param_text(&v->params, span_of(v->why.text));
    else
        pg_param_null(&v->params, PG_TEXT);
    // A process that stops releases the work immediately.  After an incomplete visit the pause
    // is longer than the turn of the tenant's other model, so that its place becomes free.
    pg_param_i32(&v->params, v->why.code == QE_STOPPING ? 0
                             : v->again                 ? (int32_t)rm->conf.lease_ms * 2
                                        : (int32_t)(policy_retry_us(v->failures + 1) / 1000));
    pg_param_bool(&v->params, v->refreshed);
    pg_param_bool(&v->params, v->again);
    visit_run_call(v, rm->control, &pg_stmt_platform_end_visit, on_ended, END_DEADLINE_MS);
}

static void on_ended(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct visit *v = call->owner;

    if (status != 0) // the claim expires, and the model is visited again
        log_warn("readmodel.release_failed", "tenant=%s why=\"%s\"", v->tenant,
                 pg_reply_message(reply));
    visit_close(v);
}

static void visit_close(struct visit *v)
{
    TAILQ_REMOVE(&v->rm->visits, v, link);
    uv_close((uv_handle_t *)&v->pause, on_pause_closed);
}

static void on_pause_closed(uv_handle_t *pause)
{
    struct visit *v = pause->data;
    struct readmodel *rm = v->rm;
    bool freed = v->claimed;

    pg_params_free(&v->params);
    free(v);
    rm->n_visits--;
    readmodel_visit_ended(rm, freed);
}

bool visit_exists(const struct readmodel *rm, span tenant, enum model model)
{
    const struct visit *v;

    TAILQ_FOREACH (v, &rm->visits, link)
        if (v->model == model && span_eq(span_of(v->tenant), tenant))
            return true;
    return false;
}

bool visit_has_tenant(const struct readmodel *rm, span tenant)
{
    return visit_exists(rm, tenant, MODEL_ATTRIBUTES) ||
           visit_exists(rm, tenant, MODEL_TRANSACTIONS);
}

void visit_cancel_all(struct readmodel *rm)
{
    struct visit *v;

    // Only calls to tenants: the release in the control database is short.
    TAILQ_FOREACH (v, &rm->visits, link)
        if (v->ref)
            v->call.deadline_ms = 1;
}
