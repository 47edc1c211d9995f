// The statistics pass. When it is due, the first process that calls does it
// (queen.stats_chore).
#include "broker/broker_int.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "db/sql.gen.h"

static void on_stats_due(struct due *d);
static void on_stats_counted(struct pg_call *pg, int status, const struct pg_reply *reply);

static void stats_again(struct broker *b, uint64_t ms)
{
    due_set(&b->due, &b->stats_due, clock_mono_us() + ms * 1000, on_stats_due);
}

static uint64_t stats_interval_ms(const struct broker *b)
{
    // Spread, so that several processes do not all come at once.
    return b->conf.stats_ms + id_random_u64() % (b->conf.stats_ms / 10 + 1);
}

// A pass counts a bounded number of partitions. While some are left, passes take a fifth of the
// time.
static uint64_t stats_pause_ms(const struct broker *b)
{
    uint64_t took_ms = (clock_mono_us() - b->stats_begun_us) / 1000;
    uint64_t pause_ms = 50 + 4 * took_ms;

    return pause_ms < b->conf.stats_ms ? pause_ms : b->conf.stats_ms;
}

void stats_start(struct broker *b)
{
    if (b->index == 0 && b->conf.stats_ms > 0)
        stats_again(b, stats_interval_ms(b));
}

static void on_stats_due(struct due *d)
{
    struct broker *b = container_of(d, struct broker, stats_due);

    if (!broker_is_up(b) || b->closing) {
        stats_again(b, stats_interval_ms(b));
        return;
    }
    b->stats_begun_us = clock_mono_us();
    struct call *c = call_new(b, &pg_stmt_stats_chore, NULL);
    pg_param_i32(&c->params, (int32_t)b->conf.stats_ms);
    pg_param_i32(&c->params, (int32_t)b->conf.stats_reconcile_ms);
    pg_param_i32(&c->params, (int32_t)b->conf.stats_history_days);
    call_send(c, on_stats_counted);
}

static void on_stats_counted(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    bool more = false;

    counter_add(&b->stats.chores_failed[BROKER_STATISTICS], status != 0);
    if (status != 0)
        log_warn("chores.stats_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    else if (pg_reply_rows(reply) > 0) {
        log_debug("chores.stats_counted", "lanes=%d",
                  pg_reply_i32(reply, 0, STATS_CHORE_COL_LANES));
        more = pg_reply_bool(reply, 0, STATS_CHORE_COL_MORE);
    }
    call_free(c);
    stats_again(b, more ? stats_pause_ms(b) : stats_interval_ms(b));
}
