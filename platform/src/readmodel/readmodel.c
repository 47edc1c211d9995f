// readmodel.c: polls the agenda and starts visits.
//
// A poll is a sequence of small statements on the control database: report changes, enrol new
// tenants, renew our claims, read the agenda.  It reads only models with work.
#include "readmodel/readmodel.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "readmodel/readmodel_int.h"
#include "tenant/sql.gen.h"

// In the order they run.
static void on_readmodel_tick(uv_timer_t *tick);
static void report_changes(struct readmodel *rm);
static void on_changes_reported(struct pg_call *call, int status, const struct pg_reply *reply);
static void enrol_tenants(struct readmodel *rm);
static void on_enrolled(struct pg_call *call, int status, const struct pg_reply *reply);
static void renew_claims(struct readmodel *rm);
static void on_renewed(struct pg_call *call, int status, const struct pg_reply *reply);
static void read_agenda(struct readmodel *rm);
static void on_agenda(struct pg_call *call, int status, const struct pg_reply *reply);
static void poll_done(struct readmodel *rm);
static void close_if_idle(struct readmodel *rm);

struct readmodel *readmodel_open(uv_loop_t *loop, struct pg_pool *control,
                                 struct tenant_pools *tenants,
                                 const struct readmodel_conf *conf)
{
    struct readmodel *rm = mem_new(struct readmodel);

    rm->loop = loop;
    rm->control = control;
    rm->tenants = tenants;
    rm->conf = *conf;
    rm->who = mem_strndup(conf->who, strlen(conf->who));
    rm->call.owner = rm;
    TAILQ_INIT(&rm->visits);
    uv_timer_init(loop, &rm->tick);
    rm->tick.data = rm;
    uv_timer_start(&rm->tick, on_readmodel_tick, 0, conf->poll_ms);
    return rm;
}

void readmodel_changed(struct readmodel *rm, span tenant)
{
    changed_tenants_add(&rm->pending, tenant);
}

const struct model_stats *readmodel_stats(const struct readmodel *rm) { return &rm->stats; }

void readmodel_poll(struct readmodel *rm)
{
    if (rm->polling)
        rm->poll_again = true;
    else if (!rm->closing)
        uv_timer_start(&rm->tick, on_readmodel_tick, 0, rm->conf.poll_ms);
}

static void on_readmodel_tick(uv_timer_t *tick)
{
    struct readmodel *rm = tick->data;

    if (rm->polling) // the control database is slow; the poll in progress is enough
        return;
    rm->polling = true;
    report_changes(rm);
}

static void readmodel_run_on_control(struct readmodel *rm, const struct pg_statement *statement,
                                     pg_done_cb done)
{
    rm->call.statement = statement;
    rm->call.params = &rm->params;
    rm->call.done = done;
    pg_pool_exec(rm->control, &rm->call);
}

static void report_changes(struct readmodel *rm)
{
    if (rm->pending.n == 0) {
        enrol_tenants(rm);
        return;
    }
    changed_tenants_move(&rm->reporting, &rm->pending);
    pg_params_reset(&rm->params);
    changed_tenants_put(&rm->reporting, &rm->params);
    readmodel_run_on_control(rm, &pg_stmt_platform_note_changes, on_changes_reported);
}

static void on_changes_reported(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct readmodel *rm = call->owner;

    if (status != 0) {
        log_warn("readmodel.notify_failed", "tenants=%u why=\"%s\"", rm->reporting.n,
                 pg_reply_message(reply));
        changed_tenants_move(&rm->pending, &rm->reporting); // retry with the next poll
        poll_done(rm);
        return;
    }
    counter_add(&rm->stats.changes_reported,
                (uint64_t)pg_reply_i32(reply, 0, PLATFORM_NOTE_CHANGES_COL_NOTED));
    changed_tenants_deinit(&rm->reporting);
    enrol_tenants(rm);
}

static void enrol_tenants(struct readmodel *rm)
{
    pg_params_reset(&rm->params);
    pg_param_bool(&rm->params, !rm->enrolled); // first all tenants, then only new ones
    readmodel_run_on_control(rm, &pg_stmt_platform_enrol_read_models, on_enrolled);
}

static void on_enrolled(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct readmodel *rm = call->owner;

    (void)reply;
    if (status != 0) {
        poll_done(rm);
        return;
    }
    rm->enrolled = true;
    renew_claims(rm);
}

static void renew_claims(struct readmodel *rm)
{
    uint64_t now_ms = uv_now(rm->loop);

    if (TAILQ_EMPTY(&rm->visits) || now_ms - rm->renewed_ms < rm->conf.lease_ms / 4) {
        read_agenda(rm);
        return;
    }
    rm->renewed_ms = now_ms;
    pg_params_reset(&rm->params);
    pg_param_text(&rm->params, span_of(rm->who));
    pg_param_i32(&rm->params, (int32_t)rm->conf.lease_ms);
    readmodel_run_on_control(rm, &pg_stmt_platform_renew_visits, on_renewed);
}

static void on_renewed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct readmodel *rm = call->owner;

    (void)reply;
    if (status != 0)
        poll_done(rm);
    else
        read_agenda(rm);
}

static void read_agenda(struct readmodel *rm)
{
    if (rm->closing) {
        poll_done(rm);
        return;
    }
    pg_params_reset(&rm->params);
    pg_param_text(&rm->params, span_of(rm->conf.bulk.zone));
    readmodel_run_on_control(rm, &pg_stmt_platform_read_model_agenda, on_agenda);
}

// A time in the future was written before the clock was set back: treat it as now.
static int64_t time_at(const struct pg_reply *reply, unsigned row, unsigned col, int64_t now_us,
                       int64_t ahead_us)
{
    if (pg_reply_is_null(reply, row, col))
        return POLICY_NEVER;
    int64_t v = pg_reply_i64(reply, row, col);
    return v <= now_us + ahead_us ? v : now_us;
}

struct due {
    int64_t at_us;
    struct visit_order order;
};

// Returns false if the model is not due.
static bool read_item(struct readmodel *rm, const struct pg_reply *reply, unsigned row,
                      int64_t now_us, bool bulk, struct due *due)
{
    span mode = pg_reply_bytes(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_MODE);
    struct policy_item item = {
        .live = mode.ptr ? span_eq(mode, SPAN("live")) : rm->conf.live,
        .wanted_us = time_at(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_WANTED_US, now_us, 0),
        .first_change_us =
            time_at(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_FIRST_CHANGE_US, now_us, 0),
        .last_change_us =
            time_at(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_LAST_CHANGE_US, now_us, 0),
        .visited_us = time_at(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_VISITED_US, now_us, 0),
        .retry_us = time_at(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_RETRY_US, now_us,
                            POLICY_LAST_RETRY_US),
        .claimed_until_us = time_at(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_CLAIMED_UNTIL_US,
                                    now_us, rm->conf.lease_ms * INT64_C(1000)),
    };
    span tenant = pg_reply_bytes(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_TENANT);

    if (!model_parse(pg_reply_bytes(reply, row, PLATFORM_READ_MODEL_AGENDA_COL_MODEL),
                     &item.model) ||
        tenant.len >= MODEL_STATS_NAME_MAX)
        return false;
    struct model_stat *stat = model_stats_get(&rm->stats, tenant, item.model);
    stat->live = item.live;
    if (!item.live && item.first_change_us != POLICY_NEVER)
        stat->stale_us = now_us - item.first_change_us;
    due->at_us = policy_due_us(&rm->conf.policy, &item, bulk);
    due->order = (struct visit_order){.tenant = tenant,
                                      .model = item.model,
                                      .live = item.live,
                                      .wanted = item.wanted_us != POLICY_NEVER,
                                      .failures = (unsigned)pg_reply_i32(
                                          reply, row, PLATFORM_READ_MODEL_AGENDA_COL_FAILURES)};
    return due->at_us <= now_us && !visit_exists(rm, tenant, item.model);
}

static int compare_due(const void *a, const void *b)
{
    int64_t x = ((const struct due *)a)->at_us, y = ((const struct due *)b)->at_us;

    return (x > y) - (x < y);
}

static void on_agenda(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct readmodel *rm = call->owner;
    unsigned n = status == 0 ? pg_reply_rows(reply) : 0, n_due = 0;

    if (status == QE_PG_DATA && !rm->zone_is_bad) {
        rm->zone_is_bad = true;
        log_error("readmodel.zone_invalid", "setting=PLATFORM_BULK_WINDOW why=\"%s\"",
                  pg_reply_message(reply));
    }
    if (n == 0) {
        poll_done(rm);
        return;
    }
    struct due *due = mem_new_array(struct due, n);
    int64_t now_us = pg_reply_i64(reply, 0, PLATFORM_READ_MODEL_AGENDA_COL_NOW_US);
    bool bulk = bulk_window_has(&rm->conf.bulk,
                                pg_reply_i32(reply, 0, PLATFORM_READ_MODEL_AGENDA_COL_MINUTE));
    for (struct model_stat *each = rm->stats.each; each; each = each->hh.next)
        each->stale_us = 0; // set again below for models on the agenda
    for (unsigned row = 1; row < n; row++)
        n_due += read_item(rm, reply, row, now_us, bulk, &due[n_due]);
    qsort(due, n_due, sizeof(*due), compare_due);
    rm->is_crowded = false;
    for (unsigned i = 0; i < n_due && !rm->closing; i++)
        // The claim counts tenants exactly.  This check only avoids most futile claims.
        if (rm->n_visits < rm->conf.at_once || visit_has_tenant(rm, due[i].order.tenant))
            visit_start(rm, &due[i].order);
        else
            rm->is_crowded = true;
    rm->stats.n_visiting = rm->n_visits;
    free(due);
    poll_done(rm);
}

static void poll_done(struct readmodel *rm)
{
    bool again = rm->poll_again;

    if (rm->closing && rm->pending.n > 0 && !rm->has_last_report) {
        rm->has_last_report = true;
        report_changes(rm);
        return;
    }
    rm->polling = rm->poll_again = false;
    if (rm->closing)
        close_if_idle(rm); // may free it
    else if (again)
        uv_timer_start(&rm->tick, on_readmodel_tick, 0, rm->conf.poll_ms);
}

void readmodel_visit_ended(struct readmodel *rm, bool freed)
{
    rm->stats.n_visiting = rm->n_visits;
    if (rm->closing)
        close_if_idle(rm);
    else if (freed)
        readmodel_poll(rm);
    // A refused claim would be refused again: other processes have all places, or the model.
}

// ---- close ----

static void on_readmodel_tick_closed(uv_handle_t *tick)
{
    struct readmodel *rm = tick->data;

    rm->tick_closed = true;
    close_if_idle(rm);
}

void readmodel_close(struct readmodel *rm, void (*closed)(void *ctx), void *ctx)
{
    rm->closing = true;
    rm->closed = closed;
    rm->closed_ctx = ctx;
    visit_cancel_all(rm);
    if (!rm->polling) { // report the changes known only to this process
        rm->polling = true;
        report_changes(rm);
    }
    uv_close((uv_handle_t *)&rm->tick, on_readmodel_tick_closed);
}

static void close_if_idle(struct readmodel *rm)
{
    if (!rm->tick_closed || rm->polling || rm->n_visits > 0)
        return;
    void (*closed)(void *) = rm->closed;
    void *ctx = rm->closed_ctx;
    changed_tenants_deinit(&rm->pending);
    changed_tenants_deinit(&rm->reporting);
    model_stats_deinit(&rm->stats);
    pg_params_free(&rm->params);
    free(rm->who);
    free(rm);
    closed(ctx);
}
