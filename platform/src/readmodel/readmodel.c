// readmodel.c: looks at the agenda and sends visits out.
//
// A look is a chain of small statements on the control database: tell what changed, enrol new
// tenants, renew our claims, read the agenda.  All it reads is what has something to do.
#include "readmodel/readmodel.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "readmodel/readmodel_int.h"
#include "tenant/sql.gen.h"

// In the order they run.
static void on_tick(uv_timer_t *tick);
static void tell(struct readmodel *rm);
static void on_told(struct pg_call *call, int status, const struct pg_reply *reply);
static void enrol(struct readmodel *rm);
static void on_enrolled(struct pg_call *call, int status, const struct pg_reply *reply);
static void renew(struct readmodel *rm);
static void on_renewed(struct pg_call *call, int status, const struct pg_reply *reply);
static void read_agenda(struct readmodel *rm);
static void on_agenda(struct pg_call *call, int status, const struct pg_reply *reply);
static void looked(struct readmodel *rm);
static void try_finish(struct readmodel *rm);

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
    uv_timer_start(&rm->tick, on_tick, 0, conf->poll_ms);
    return rm;
}

void readmodel_note(struct readmodel *rm, span tenant) { notes_add(&rm->pending, tenant); }

const struct figures *readmodel_figures(const struct readmodel *rm) { return &rm->figures; }

void readmodel_look(struct readmodel *rm)
{
    if (rm->looking)
        rm->look_again = true;
    else if (!rm->closing)
        uv_timer_start(&rm->tick, on_tick, 0, rm->conf.poll_ms);
}

static void on_tick(uv_timer_t *tick)
{
    struct readmodel *rm = tick->data;

    if (rm->looking) // the control database is slow; the look under way will do
        return;
    rm->looking = true;
    tell(rm);
}

static void ask(struct readmodel *rm, const struct pg_statement *statement, pg_done_cb done)
{
    rm->call.statement = statement;
    rm->call.params = &rm->params;
    rm->call.done = done;
    pg_pool_exec(rm->control, &rm->call);
}

static void tell(struct readmodel *rm)
{
    if (rm->pending.n == 0) {
        enrol(rm);
        return;
    }
    notes_move(&rm->telling, &rm->pending);
    pg_params_reset(&rm->params);
    notes_put(&rm->telling, &rm->params);
    ask(rm, &pg_stmt_platform_note_changes, on_told);
}

static void on_told(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct readmodel *rm = call->owner;

    if (status != 0) {
        log_warn("readmodel.untold", "tenants=%u why=\"%s\"", rm->telling.n,
                 pg_reply_message(reply));
        notes_move(&rm->pending, &rm->telling); // with the next look
        looked(rm);
        return;
    }
    counter_add(&rm->figures.changes_told, (uint64_t)pg_reply_i32(reply, 0, 0));
    notes_deinit(&rm->telling);
    enrol(rm);
}

static void enrol(struct readmodel *rm)
{
    pg_params_reset(&rm->params);
    pg_param_bool(&rm->params, !rm->enrolled); // once all tenants, then the new ones
    ask(rm, &pg_stmt_platform_enrol_read_models, on_enrolled);
}

static void on_enrolled(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct readmodel *rm = call->owner;

    (void)reply;
    if (status != 0) {
        looked(rm);
        return;
    }
    rm->enrolled = true;
    renew(rm);
}

static void renew(struct readmodel *rm)
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
    ask(rm, &pg_stmt_platform_renew_visits, on_renewed);
}

static void on_renewed(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct readmodel *rm = call->owner;

    (void)reply;
    if (status != 0)
        looked(rm);
    else
        read_agenda(rm);
}

static void read_agenda(struct readmodel *rm)
{
    if (rm->closing) {
        looked(rm);
        return;
    }
    pg_params_reset(&rm->params);
    pg_param_text(&rm->params, span_of(rm->conf.bulk.zone));
    ask(rm, &pg_stmt_platform_read_model_agenda, on_agenda);
}

// A time later than it can be was written before the clock was set back: it counts as now.
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

// false: not now.
static bool read_item(struct readmodel *rm, const struct pg_reply *reply, unsigned row,
                      int64_t now_us, bool bulk, struct due *due)
{
    span mode = pg_reply_bytes(reply, row, 2);
    struct policy_item item = {
        .live = mode.ptr ? span_eq(mode, SPAN("live")) : rm->conf.live,
        .wanted_us = time_at(reply, row, 3, now_us, 0),
        .first_change_us = time_at(reply, row, 4, now_us, 0),
        .last_change_us = time_at(reply, row, 5, now_us, 0),
        .visited_us = time_at(reply, row, 6, now_us, 0),
        .retry_us = time_at(reply, row, 8, now_us, POLICY_LAST_RETRY_US),
        .claimed_until_us = time_at(reply, row, 9, now_us, rm->conf.lease_ms * INT64_C(1000)),
    };
    span tenant = pg_reply_bytes(reply, row, 0);

    if (!model_parse(pg_reply_bytes(reply, row, 1), &item.model) ||
        tenant.len >= FIGURES_NAME_MAX)
        return false;
    struct figure *figure = figures_of(&rm->figures, tenant, item.model);
    figure->live = item.live;
    if (!item.live && item.first_change_us != POLICY_NEVER)
        figure->stale_us = now_us - item.first_change_us;
    due->at_us = policy_due_us(&rm->conf.policy, &item, bulk);
    due->order = (struct visit_order){.tenant = tenant,
                                      .model = item.model,
                                      .live = item.live,
                                      .wanted = item.wanted_us != POLICY_NEVER,
                                      .failures = (unsigned)pg_reply_i32(reply, row, 10)};
    return due->at_us <= now_us && !visit_is_on(rm, tenant, item.model);
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
        log_error("readmodel.zone", "setting=PLATFORM_BULK_WINDOW why=\"%s\"",
                  pg_reply_message(reply));
    }
    if (n == 0) {
        looked(rm);
        return;
    }
    struct due *due = mem_new_array(struct due, n);
    int64_t now_us = pg_reply_i64(reply, 0, 11);
    bool bulk = bulk_window_has(&rm->conf.bulk, pg_reply_i32(reply, 0, 12));
    for (struct figure *each = rm->figures.each; each; each = each->hh.next)
        each->stale_us = 0; // those on the agenda are set again
    for (unsigned row = 1; row < n; row++)
        n_due += read_item(rm, reply, row, now_us, bulk, &due[n_due]);
    qsort(due, n_due, sizeof(*due), compare_due);
    for (unsigned i = 0; i < n_due && !rm->closing; i++)
        // The claim counts tenants exactly; here it is enough not to ask in vain too often.
        if (rm->n_visits < rm->conf.at_once || visit_has_tenant(rm, due[i].order.tenant))
            visit_start(rm, &due[i].order);
    rm->figures.n_visiting = rm->n_visits;
    free(due);
    looked(rm);
}

static void looked(struct readmodel *rm)
{
    bool again = rm->look_again;

    rm->looking = rm->look_again = false;
    if (rm->closing)
        try_finish(rm); // may free it
    else if (again)
        uv_timer_start(&rm->tick, on_tick, 0, rm->conf.poll_ms);
}

void readmodel_visit_ended(struct readmodel *rm)
{
    rm->figures.n_visiting = rm->n_visits;
    if (rm->closing)
        try_finish(rm);
    else
        readmodel_look(rm); // there is a place now
}

// ---- the end ----

static void on_tick_closed(uv_handle_t *tick)
{
    struct readmodel *rm = tick->data;

    rm->tick_closed = true;
    try_finish(rm);
}

void readmodel_close(struct readmodel *rm, void (*closed)(void *ctx), void *ctx)
{
    rm->closing = true;
    rm->closed = closed;
    rm->closed_ctx = ctx;
    visit_hurry(rm);
    if (!rm->looking) { // a last time: nobody else knows of the changes that were noted here
        rm->looking = true;
        tell(rm);
    }
    uv_close((uv_handle_t *)&rm->tick, on_tick_closed);
}

static void try_finish(struct readmodel *rm)
{
    if (!rm->tick_closed || rm->looking || rm->n_visits > 0)
        return;
    void (*closed)(void *) = rm->closed;
    void *ctx = rm->closed_ctx;
    notes_deinit(&rm->pending);
    notes_deinit(&rm->telling);
    figures_deinit(&rm->figures);
    pg_params_free(&rm->params);
    free(rm->who);
    free(rm);
    closed(ctx);
}
