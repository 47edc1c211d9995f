// A database that takes requests and does not answer: stopped, cut off, or on a disk that
// hangs.
//
// There is no error for it.  When calls are in flight and none was answered for a while, each
// of them may just be slow, or wait for a lock.  Then a small statement decides, on a
// connection of its own if all others are busy.  If it is not answered either, pushes go to the
// file buffer and their clients are answered; new pushes follow them.  The sent pushes may
// still be stored later: the replay recognises them by their transaction ids.  Calls time out
// much sooner than usual, so that acknowledgements are answered (503).  The same statement,
// every second, finds out when it is over.
#include "broker/push/push_int.h"

#include "base/clock.h"
#include "base/log.h"
#include "db/sql.gen.h"

enum {
    SILENCE_US = 1500 * 1000,
    DOUBT_US = 750 * 1000,  // then it is probed
    ANSWER_US = 500 * 1000, // by then a probe is answered by a database that is well
    LOOK_US = 250 * 1000,
    PROBE_US = 1000 * 1000,
    PROBE_MS = 2000,    // without an answer by then, its connection is no good
    GIVEN_UP_MS = 5000, // likewise every other call, counted from when it left
};

static void on_watchdog_look(struct due *d);
static void give_up(struct broker *b, struct push_flight *f);
static void probe_pg(struct broker *b);
static void on_probed(struct pg_call *pg, int status, const struct pg_reply *reply);

static void look_again(struct broker *b)
{
    due_set(&b->due, &b->watchdog_due, clock_mono_us() + LOOK_US, on_watchdog_look);
}

void pg_watchdog_start(struct broker *b)
{
    if (!due_is_set(&b->watchdog_due))
        look_again(b);
}

// Since when the oldest push waits for the database: in flight, or for its lane.  0: none does.
static uint64_t waits_since(const struct broker *b)
{
    const struct push_flight *f = TAILQ_FIRST(&b->push_flights);
    const struct op *op = STAILQ_FIRST(&b->ops[OP_PUSH].queue);

    return f ? f->call->left_us : op ? op->since_us : 0;
}

static void watchdog_begin(struct broker *b, uint64_t now)
{
    log_warn("pg.stalled", "ms=%d what=\"pushes go to the file buffer\"", SILENCE_US / 1000);
    b->stalled_us = now;
    pg_pool_hurry(b->pg, GIVEN_UP_MS);
}

static void pg_recovered(struct broker *b)
{
    log_warn("pg.recovered", "silent_ms=%llu",
             (unsigned long long)((clock_mono_us() - b->stalled_us) / 1000));
    b->stalled_us = 0;
    pg_pool_hurry(b->pg, 0);
    replay_kick(b->house);
    broker_wake(b);
}

static bool is_silent(const struct broker *b, uint64_t now, uint64_t us)
{
    uint64_t since = pg_pool_silent_since_us(b->pg);

    return since != 0 && now - since >= us;
}

static void on_watchdog_look(struct due *d)
{
    struct broker *b = container_of(d, struct broker, watchdog_due);
    struct push_flight *f, *next;
    uint64_t now = clock_mono_us(), since = waits_since(b);

    if (b->closing || (since == 0 && b->stalled_us == 0 && pg_pool_silent_since_us(b->pg) == 0))
        return; // the next call starts it again
    if (b->stalled_us != 0 && pg_pool_heard_us(b->pg) > b->stalled_us)
        pg_recovered(b);
    if (b->stalled_us == 0 && is_silent(b, now, DOUBT_US))
        probe_pg(b);
    // When no push waits, the probe is given its time: see on_probed().
    if (b->stalled_us == 0 && is_silent(b, now, SILENCE_US) && since != 0 &&
        now - since >= SILENCE_US && b->probing && now - b->probed_us >= ANSWER_US)
        watchdog_begin(b, now);
    if (b->stalled_us != 0) {
        for (f = TAILQ_FIRST(&b->push_flights); f && b->house->spool; f = next) {
            next = TAILQ_NEXT(f, out);
            if (!f->given_up && now - f->call->left_us >= SILENCE_US)
                give_up(b, f);
        }
        probe_pg(b);
        broker_wake(b); // what waits to leave is diverted
    }
    look_again(b);
}

// Its segments are forgotten with it: the lanes may have other business when the answer comes.
static void give_up(struct broker *b, struct push_flight *f)
{
    struct op *op;

    f->given_up = true;
    for (unsigned i = 0; i < f->segs.n; i++) {
        f->segs.at[i].lane->pushing = false;
        lane_unpark(b, f->segs.at[i].lane);
    }
    segs_free(&f->segs);
    while ((op = STAILQ_FIRST(&f->ops))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&f->ops, link);
        push_landed(b, push);
        op->unknown = true;
        if (push->replay) // is in the buffer already, and goes again when this is over
            push_again(b, push);
        else
            push_divert(b, push);
    }
}

// ---- is it over? ----

static void probe_pg(struct broker *b)
{
    uint64_t now = clock_mono_us();

    if (b->probing || now - b->probed_us < PROBE_US)
        return;
    b->probing = true;
    b->probed_us = now;
    struct call *c = call_new(b, &pg_stmt_maintenance, NULL);
    c->pg.deadline_ms = PROBE_MS;
    c->pg.urgent = true;
    call_send(c, on_probed);
}

static void on_probed(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    (void)reply;
    b->probing = false;
    call_free(c);
    if (status == 0 && b->stalled_us != 0)
        pg_recovered(b);
    else if (status != 0 && b->stalled_us == 0 && !b->closing &&
             is_silent(b, clock_mono_us(), SILENCE_US) &&
             !pg_pool_is_full(b->pg)) // full: maybe all of them are just slow
        watchdog_begin(b, clock_mono_us());
}
