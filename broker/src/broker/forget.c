// Drops everything that was cached from another server (pg/pool.h).
//
// The current server may lack commits of the previous one. Numbers of lanes and consumers may
// have been reused, cursors and leases may be older, and the change feed may be behind the
// cached position. Names stay: every object is resolved by name at its next use.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/log.h"
#include "db/sql.gen.h"

// Calls with numbers or positions, which are valid on one server only. Other calls carry names,
// ids or leases, which are never reused.
static const struct pg_statement *const of_server[] = {
    &pg_stmt_push,         &pg_stmt_push_correlated, &pg_stmt_push_mixed,
    &pg_stmt_schedule,     &pg_stmt_transact,        &pg_stmt_transact_scheduled,
    &pg_stmt_claim,        &pg_stmt_claim_careful,   &pg_stmt_ensure_consumers,
    &pg_stmt_changes,      &pg_stmt_stream_cycle,    &pg_stmt_fire_scheduled,
    &pg_stmt_locked_lanes, &pg_stmt_set_aside,       &pg_stmt_claim_work,
    &pg_stmt_push_claim,   &pg_stmt_count_stored,
};

bool is_of_server(const struct pg_statement *statement)
{
    for (unsigned i = 0; i < countof(of_server); i++)
        if (of_server[i] == statement)
            return true;
    return false;
}

static void forget_lanes(struct broker *b)
{
    struct lane *lane, *next;
    struct consumer *c;

    for (lane = TAILQ_FIRST(&b->recent_lanes); lane; lane = next) {
        next = TAILQ_NEXT(lane, recent); // a pop that is seated again moves it to the end
        // Those with a claim under way stay until it ends, and it must not go out with the
        // number.
        LIST_FOREACH (c, &lane->consumers, of_lane)
            if (c->state == CLAIMING || c->asking)
                consumer_forget_num(b, c);
        lane_forget_num(b, lane);
    }
}

static void forget_groups(struct broker *b)
{
    struct queue *q, *next_q;
    struct group *g, *next_g;

    HASH_ITER (hh, b->queues, q, next_q)
        HASH_ITER (hh, q->groups, g, next_g)
            group_forget(g); // a discovery in flight was sent to the previous server
}

void broker_forget(void *ctx)
{
    struct broker *b = ctx;

    log_warn("pg.new_server",
             "worker=%u lanes=%u note=\"cached positions of the previous server are dropped\"",
             b->index, b->n_lanes);
    // First: pops that lose their place look into the feed before anything else.
    feed_forget(b);
    forget_lanes(b);
    forget_groups(b);
    atomic_fetch_add_explicit(&b->house->n_changes, 1, memory_order_relaxed);
    stored_forget(b);
    if (b->index == 0)
        timer_forget(b->house);
    pops_place_again(b, true);
    selectors_place_again(b);
    broker_wake(b);
}
