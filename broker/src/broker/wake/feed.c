// The change feed: lanes that other sessions have pushed to or released since the last poll.
//
// A pop that finds no messages polls the feed once before it parks, so that it sees every
// commit of other brokers and SQL sessions.  While pops are parked the feed is polled
// regularly.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

static void feed_query(struct broker *b);
static void on_poll(struct due *d);
static void on_changes(struct pg_call *pg, int status, const struct pg_reply *reply);
static void feed_learn(struct broker *b, const struct pg_reply *reply, unsigned row);
static void learn_group(struct broker *b, span queue, span name);

void feed_look(struct broker *b, struct pop_op *pop)
{
    TAILQ_INSERT_TAIL(&b->feed_waiting, pop, seat);
    broker_wake(b);
}

void feed_flush(struct broker *b)
{
    if (!b->feed_flying && !TAILQ_EMPTY(&b->feed_waiting))
        feed_query(b);
}

static void feed_query(struct broker *b)
{
    TAILQ_CONCAT(&b->feed_flying_pops, &b->feed_waiting, seat);
    b->feed_flying = true;
    b->feed_again = false;
    b->feed_asked_us = clock_mono_us();
    b->feed_flags_version = atomic_load(&b->house->flags_version);
    struct call *c = call_new(b, &pg_stmt_changes, NULL);
    if (b->feed_seen)
        pg_param_text(&c->params, span_of(b->feed_seen));
    else
        pg_param_null(&c->params, PG_TEXT);
    pg_param_i32(&c->params, b->house->origin);
    pg_param_i64(&c->params, timer_from_us(b->house));
    call_send(c, on_changes);
}

// 100 ms for the first tries, then ever more seldom: see the settings.
static uint64_t interval_us(const struct broker *b)
{
    double ms = b->conf.poll_initial_ms;

    for (unsigned i = b->conf.poll_threshold; i < b->feed_misses && ms < b->conf.poll_max_ms;
         i++)
        ms *= b->conf.poll_multiplier;
    return (uint64_t)((ms < b->conf.poll_max_ms ? ms : b->conf.poll_max_ms) * 1000);
}

// After a pop has parked: start again with short intervals.
void feed_rearm(struct broker *b)
{
    b->feed_misses = 0;
    if (!due_is_set(&b->feed_due) || b->feed_due.at_us > clock_mono_us() + interval_us(b))
        due_set(&b->due, &b->feed_due, clock_mono_us() + interval_us(b), on_poll);
}

void feed_active(struct broker *b)
{
    if (b->feed_misses == 0)
        return;
    b->feed_misses = 0;
    if (due_is_set(&b->feed_due))
        due_set(&b->due, &b->feed_due, clock_mono_us() + interval_us(b), on_poll);
}

void feed_poll_now(struct broker *b)
{
    b->feed_misses = 0;
    if (b->n_parked > 0)
        due_set(&b->due, &b->feed_due, clock_mono_us(), on_poll);
    broker_wake(b);
}

void feed_prompt(struct broker *b, span queue)
{
    const struct queue *q = queue_find(b, queue);

    if (b->n_parked == 0 || b->closing || ((!q || !q->groups) && LIST_EMPTY(&b->selectors)))
        return; // no pop here waits for it
    if (b->feed_flying)
        b->feed_again = true;
    else
        feed_query(b);
}

static void on_poll(struct due *d)
{
    struct broker *b = container_of(d, struct broker, feed_due);

    if (b->n_parked == 0 || b->closing)
        return; // the next one to park starts it again
    if (b->feed_misses < 32)
        b->feed_misses++;
    if (!b->feed_flying)
        feed_query(b);
    due_set(&b->due, &b->feed_due, clock_mono_us() + interval_us(b), on_poll);
}

static const struct lane_cols lane_cols = {CHANGES_COL_LANE, CHANGES_COL_LANE_ID,
                                           CHANGES_COL_LANE_NAME, CHANGES_COL_PARTITION_NAME,
                                           CHANGES_COL_ONLY_GROUP};

// The row of the look itself, news of groups, or a partition with a change.
static bool changes_are_sound(const struct pg_reply *reply, unsigned row)
{
    if (pg_reply_is_null(reply, row, CHANGES_COL_LANE))
        return !pg_reply_is_null(reply, row, CHANGES_COL_SNAPSHOT);
    return pg_reply_i64(reply, row, CHANGES_COL_LANE) == 0 ||
           (lane_is_in_row(reply, row, lane_cols) &&
            !pg_reply_is_null(reply, row, CHANGES_COL_QUEUE_NAME));
}

static void on_changes(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct pop_list pops = TAILQ_HEAD_INITIALIZER(pops);
    struct pop_op *pop;
    bool missed = false;

    b->feed_flying = false;
    TAILQ_CONCAT(&pops, &b->feed_flying_pops, seat);
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++)
        if (!changes_are_sound(reply, row))
            status = call_unexpected(c, "a change without a partition, or no snapshot");
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        if (pg_reply_is_null(reply, row, CHANGES_COL_LANE)) {
            span seen = pg_reply_bytes(reply, row, CHANGES_COL_SNAPSHOT);
            free(b->feed_seen);
            b->feed_seen = mem_strndup(seen.ptr, seen.len);
            int64_t emptied = pg_reply_is_null(reply, row, CHANGES_COL_EMPTIED)
                                  ? b->feed_emptied
                                  : pg_reply_i64(reply, row, CHANGES_COL_EMPTIED);
            // Rows may have been removed unread, so changes may have been missed.
            missed = b->feed_ready && emptied != b->feed_emptied;
            b->feed_emptied = emptied;
            b->feed_ready = true;
            if (!pg_reply_is_null(reply, row, CHANGES_COL_FLAGS))
                maintenance_read(b, (unsigned)pg_reply_i32(reply, row, CHANGES_COL_FLAGS),
                                 b->feed_flags_version);
            if (!pg_reply_is_null(reply, row, CHANGES_COL_WAIT_US))
                timer_expect_feed(b->house, pg_reply_i64(reply, row, CHANGES_COL_WAIT_US));
        } else {
            b->feed_misses = 0;
            feed_learn(b, reply, row);
        }
    }
    if (missed)
        groups_forget(b);
    counter_add(&b->stats.feed_reads, 1);
    counter_add(&b->stats.feed_failed, status != 0);
    if (status != 0) {
        call_failed(c, status, reply);
        log_debug("feed.failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
    }
    if (status == QE_PG_RETRY && !pg->sent) // another server: from its beginning
        TAILQ_CONCAT(&b->feed_waiting, &pops, seat);
    while ((pop = TAILQ_FIRST(&pops))) {
        TAILQ_REMOVE(&pops, pop, seat);
        if (status != 0)
            fault_set(&pop->op.why, status, "%s", err_text(status));
        pop_handle(b, pop, status == 0 ? POP_ON_CHANGES : POP_ON_CHANGES_LOST, status);
    }
    if (missed || (status == 0 && b->feed_missed)) {
        b->feed_missed = false;
        pops_place_again(b, missed);
    }
    if (b->feed_again && status == 0 && !b->closing)
        feed_query(b);
    call_free(c);
    broker_wake(b);
}

// See queen.notify_group: an empty name means all.
static void learn_group(struct broker *b, span queue, span name)
{
    struct queue *q, *next_q;
    struct group *g, *next_g;

    HASH_ITER (hh, b->queues, q, next_q) {
        if (queue.len > 0 && !span_eq(queue, (span){q->name, q->name_len}))
            continue;
        HASH_ITER (hh, q->groups, g, next_g)
            if (name.len == 0 || span_eq(name, (span){g->name, g->name_len}))
                group_changed(b, g);
    }
}

static void feed_learn(struct broker *b, const struct pg_reply *reply, unsigned row)
{
    struct queue *q = queue_find(b, pg_reply_bytes(reply, row, CHANGES_COL_QUEUE_NAME));

    if (pg_reply_i64(reply, row, CHANGES_COL_LANE) == 0) {
        learn_group(b, pg_reply_bytes(reply, row, CHANGES_COL_QUEUE_NAME),
                    pg_reply_bytes(reply, row, CHANGES_COL_LANE_NAME));
        return;
    }
    if (!q || !q->groups)
        return; // no group here reads this queue
    struct lane *lane = lane_of_row(b, q, reply, row, lane_cols);
    // A lane recorded as leased may be free, or its queue may have been configured again:
    // check.
    struct consumer *c, *next;
    for (c = LIST_FIRST(&lane->consumers); c; c = next) {
        next = LIST_NEXT(c, of_lane);
        if (c->state == LEASED || c->state == TIMED)
            consumer_ready(b, c, false);
        if (c->lane->work) // an acknowledgement elsewhere, perhaps
            consumer_has_room(b, c);
    }
    lane_ready(b, lane);
}

void feed_forget(struct broker *b)
{
    feed_deinit(b);
    b->feed_ready = false;
}

void feed_deinit(struct broker *b)
{
    free(b->feed_seen);
    b->feed_seen = NULL;
}
