// Chores in the database that any broker may do: rotation, over-age messages, unused
// partitions, deletions that take several steps.
//
// They run one after the other at the first broker of a process.  Sweeps go in steps, each a
// short transaction, until nothing is due; brokers of other processes may be at it as well and
// take other lanes.
#include "broker/broker_int.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "db/sql.gen.h"

// The slot of consumer versions is changed when it has grown this large, and the old one
// emptied no sooner than this long after.
enum { ROTATE_EVERY_MS = 10000, ROTATE_MIN_AGE_S = 30, ROTATE_BYTES = 32 << 20 };
// How often a broker looks for deletions that have steps left.
enum { FORGET_EVERY_MS = 5000 };
// The most that one step reads or removes.
enum { SWEEP_LANES = 50, TIDY_AT_ONCE = 200, CONSUMERS_AT_ONCE = 2000 };

static void on_chores_due(struct due *d);
static void rotate_slots(struct broker *b);
static void on_rotated(struct pg_call *pg, int status, const struct pg_reply *reply);
static void sweep_lanes(struct broker *b);
static void on_swept(struct pg_call *pg, int status, const struct pg_reply *reply);
static void forget_deleted(struct broker *b);
static void on_forgotten(struct pg_call *pg, int status, const struct pg_reply *reply);
static void remove_unused(struct broker *b);
static void on_tidied(struct pg_call *pg, int status, const struct pg_reply *reply);
static void forget_consumers(struct broker *b);
static void on_consumers_forgotten(struct pg_call *pg, int status,
                                   const struct pg_reply *reply);

static uint64_t interval_ms(const struct broker *b, enum chore which)
{
    return which == CHORE_ROTATE   ? ROTATE_EVERY_MS
           : which == CHORE_FORGET ? FORGET_EVERY_MS
           : which == CHORE_EVICT  ? b->conf.evict.interval_ms
                                   : b->conf.retain.interval_ms;
}

static void wait_for_next(struct broker *b)
{
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < CHORES; i++)
        if (b->chore_us[i] < next)
            next = b->chore_us[i];
    due_set(&b->due, &b->chores_due, next, on_chores_due);
}

// Spread, so that several brokers do not all come at once.
static void again_later(struct broker *b, enum chore which)
{
    uint64_t us = interval_ms(b, which) * 1000;
    uint64_t spread = us / 4 < 500000 ? us / 4 : 500000;

    b->chore_us[which] = clock_mono_us() + us + id_random_u64() % (spread + 1);
}

void chores_start(struct broker *b)
{
    if (b->index != 0)
        return;
    for (unsigned i = 0; i < CHORES; i++)
        again_later(b, i);
    wait_for_next(b);
}

// One after the other: each comes back here when it is through.
static void on_chores_due(struct due *d)
{
    struct broker *b = container_of(d, struct broker, chores_due);
    uint64_t now = clock_mono_us();

    for (unsigned i = 0; i < CHORES; i++) {
        if (b->chore_us[i] > now)
            continue;
        again_later(b, i);
        if (!broker_is_up(b) || b->closing)
            continue;
        if (i == CHORE_ROTATE) {
            rotate_slots(b);
        } else if (i == CHORE_FORGET) {
            forget_deleted(b);
        } else {
            b->pass = (struct sweep_pass){.evict = i == CHORE_EVICT};
            sweep_lanes(b);
        }
        return;
    }
    wait_for_next(b);
}

static void rotate_slots(struct broker *b)
{
    struct call *c = call_new(b, &pg_stmt_rotate, NULL);

    pg_param_i32(&c->params, ROTATE_MIN_AGE_S);
    pg_param_i64(&c->params, ROTATE_BYTES);
    call_send(c, on_rotated);
}

static void on_rotated(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    counter_add(&b->stats.chores_failed[BROKER_ROTATION], status != 0);
    if (status != 0)
        log_warn("chores.rotate_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    else if (pg_reply_rows(reply) > 0)
        log_debug("chores.rotated", "did=" SPAN_FMT,
                  SPAN_ARG(pg_reply_bytes(reply, 0, ROTATE_COL_ROTATE)));
    call_free(c);
    wait_for_next(b);
}

// Deleting a large queue takes several steps.  The chore continues deletions that were
// abandoned.
static void forget_deleted(struct broker *b)
{
    call_send(call_new(b, &pg_stmt_forget_deleted, NULL), on_forgotten);
}

static void on_forgotten(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    bool more = status == 0 && pg_reply_rows(reply) > 0 &&
                pg_reply_bool(reply, 0, FORGET_DELETED_COL_MORE);

    counter_add(&b->stats.chores_failed[BROKER_DELETION], status != 0);
    if (status != 0)
        log_warn("chores.forget_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    call_free(c);
    if (more && !b->closing && broker_is_up(b))
        forget_deleted(b);
    else
        wait_for_next(b);
}

static void sweep_lanes(struct broker *b)
{
    const struct sweep_conf *conf = b->pass.evict ? &b->conf.evict : &b->conf.retain;
    struct call *c = call_new(b, &pg_stmt_sweep, NULL);

    pg_param_bool(&c->params, b->pass.evict);
    pg_param_i32(&c->params, (int32_t)conf->max_segments);
    pg_param_i32(&c->params, SWEEP_LANES);
    pg_param_i64(&c->params, b->pass.after_us);
    pg_param_i64(&c->params, b->pass.after_lane);
    pg_param_i64(&c->params, conf->interval_ms);
    call_send(c, on_swept);
}

// Logs when removal begins to wait for vacuum, and when it continues.
static void note_stuck(struct broker *b, uint64_t rows)
{
    uint64_t before =
        atomic_exchange_explicit(&b->stats.stuck_rows, rows, memory_order_relaxed);

    if (rows > 0 && before == 0)
        log_warn(
            "retention.paused",
            "rows=%llu detail=\"vacuum cannot reclaim removed rows: a transaction, slot or "
            "standby holds xmin (queen doctor --pg)\"",
            (unsigned long long)rows);
    else if (rows == 0 && before > 0)
        log_info("retention.resumed", "detail=\"over-age messages are removed again\"");
}

static void on_swept(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    bool more = false;

    counter_add(&b->stats.chores_failed[BROKER_RETENTION], status != 0);
    if (status != 0)
        log_warn("chores.sweep_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        if (pg_reply_is_null(reply, row, SWEEP_COL_QUEUE_NAME)) {
            b->pass.after_us = pg_reply_i64(reply, row, SWEEP_COL_AFTER_US);
            b->pass.after_lane = pg_reply_i64(reply, row, SWEEP_COL_AFTER_LANE);
            more = pg_reply_bool(reply, row, SWEEP_COL_MORE);
            note_stuck(b, pg_reply_is_null(reply, row, SWEEP_COL_TYPE)
                              ? 0
                              : (uint64_t)pg_reply_i64(reply, row, SWEEP_COL_REMOVED));
            continue;
        }
        int64_t n = pg_reply_i64(reply, row, SWEEP_COL_REMOVED);
        counter_add(&b->stats.expired, (uint64_t)n);
        log_info("messages.removed", "queue=\"" SPAN_FMT "\" why=" SPAN_FMT " count=%lld",
                 SPAN_ARG(pg_reply_bytes(reply, row, SWEEP_COL_QUEUE_NAME)),
                 SPAN_ARG(pg_reply_bytes(reply, row, SWEEP_COL_TYPE)), (long long)n);
    }
    call_free(c);
    if (more && !b->closing && broker_is_up(b))
        sweep_lanes(b);
    else if (!b->pass.evict && status == 0 && !b->closing)
        remove_unused(b);
    else
        wait_for_next(b);
}

static void remove_unused(struct broker *b)
{
    struct call *c = call_new(b, &pg_stmt_tidy, NULL);

    pg_param_i32(&c->params, (int32_t)b->conf.idle_partition_days);
    pg_param_i32(&c->params, (int32_t)b->conf.history_days);
    pg_param_i32(&c->params, TIDY_AT_ONCE);
    pg_param_i32(&c->params, (int32_t)b->conf.attempts_days);
    pg_param_i32(&c->params, (int32_t)b->conf.audit_days);
    call_send(c, on_tidied);
}

static void on_tidied(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    bool more = false;

    counter_add(&b->stats.chores_failed[BROKER_CLEANUP], status != 0);
    if (status != 0)
        log_warn("chores.tidy_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        if (!pg_reply_is_null(reply, row, TIDY_COL_MORE))
            more = more || pg_reply_bool(reply, row, TIDY_COL_MORE);
        else
            log_info("partitions.removed", "queue=\"" SPAN_FMT "\" count=%lld",
                     SPAN_ARG(pg_reply_bytes(reply, row, TIDY_COL_QUEUE_NAME)),
                     (long long)pg_reply_i64(reply, row, TIDY_COL_REMOVED));
    }
    call_free(c);
    if (more && !b->closing && broker_is_up(b))
        remove_unused(b);
    else if (status == 0 && !b->closing && broker_is_up(b))
        forget_consumers(b);
    else
        wait_for_next(b);
}

// One step of a walk through all consumers that begins again when it is at the end.
static void forget_consumers(struct broker *b)
{
    struct call *c = call_new(b, &pg_stmt_forget_consumers, NULL);

    pg_param_i64(&c->params, b->consumers_walked);
    pg_param_i32(&c->params, (int32_t)b->conf.idle_partition_days);
    pg_param_i32(&c->params, CONSUMERS_AT_ONCE);
    call_send(c, on_consumers_forgotten);
}

static void on_consumers_forgotten(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    if (status == 0 && pg_reply_rows(reply) != 1)
        status = call_unexpected(c, "not one row");
    counter_add(&b->stats.chores_failed[BROKER_CLEANUP], status != 0);
    if (status != 0) {
        log_warn("chores.forget_consumers_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    } else {
        b->consumers_walked = pg_reply_i64(reply, 0, FORGET_CONSUMERS_COL_NEXT);
        if (pg_reply_i64(reply, 0, FORGET_CONSUMERS_COL_REMOVED) > 0)
            log_info("consumers.removed", "count=%lld",
                     (long long)pg_reply_i64(reply, 0, FORGET_CONSUMERS_COL_REMOVED));
    }
    call_free(c);
    wait_for_next(b);
}
