// Pushes: gather requests, cut them into segments, store them, wake waiting pops.  Requests of
// items that have a time to be delivered at go on to schedule.c.  One that has both goes alone,
// and all of it is stored or nothing.
//
//      push_arrive ──► push_queue ──► push_load ──► cut ──► fill ──► on_stored ──► push_result
//                     ▲                                        │
//                     └── duplicates taken out, lane renewed, ─┘
//                         connection lost, neighbour bad
//
// This is the way there; the way back is push_result.c.
#include "broker/push/push_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "db/sql.gen.h"

enum {
    MAX_BATCH_BYTES = 8 << 20,
    MAX_SCANNED = 2000, // requests that must stay, per batch, so that many of them cost little
    // A larger batch shows so much load that claims gather by themselves: a pop that is served
    // a moment later gets more messages, which costs less per message.
    MAX_HAND_OVER = 16,
};
// PARK: it waits at a lane (locked.c).
enum passage { PASSAGE_GO, PASSAGE_STAY, PASSAGE_PARK };

static void push_arrive(struct mailbox_item *item);
static struct push_flight *push_load(struct broker *b);
static bool push_is_open(const struct push_item *it);
static enum passage passage_of(struct broker *b, struct push_op *push, struct lane **at);
static void push_add(struct broker *b, struct push_flight *f, struct push_op *push);
static void push_launch(struct broker *b, struct push_flight *f);
static void push_free_flight(struct push_flight *f);
static void on_stored(struct pg_call *pg, int status, const struct pg_reply *reply);

static void push_complete(struct op *op)
{
    struct push_op *push = container_of(op, struct push_op, op);

    push->done(push, op->status);
}

void broker_push(struct broker *b, struct push_op *push)
{
    op_begin(b, &push->op, OP_PUSH, push_complete);
    op_go(b, house_home(b->house, push->items[0].queue), &push->op, push_arrive);
}

// Finds each item's lane by name.  Neighbours usually share it, so look back first.
static void push_arrive(struct mailbox_item *item)
{
    struct push_op *push = container_of(item, struct push_op, op.mail);
    struct broker *b = item->owner;
    const struct push_item *last = NULL;

    if (!op_admit(b, &push->op))
        return;
    // Otherwise the lanes are resolved when the request goes to the database.
    bool troubled = pushes_may_need_buffer(b);
    b->n_replay_waits += troubled;
    push->n_later = 0;
    for (unsigned i = 0; i < push->n_items; i++) {
        struct push_item *it = &push->items[i];
        if (last && span_eq(it->queue, last->queue) && span_eq(it->partition, last->partition))
            it->lane = last->lane;
        else
            it->lane = lane_get(b, queue_get(b, it->queue), it->partition);
        last = it;
        it->status = it->when == PUSH_NOW ? PUSH_PENDING : PUSH_LATER;
        push->n_later += it->status == PUSH_LATER;
        it->op = push;
        it->lane->pins++;
        if (!troubled)
            lane_resolve(b, it->lane);
        if (it->lane->limited)
            push->op.alone = push->op.whole = true;
    }
    push->n_pending = push->n_items - push->n_later;
    if (push->n_later > 0 && push->n_pending > 0)
        push->op.alone = push->op.whole = true;
    if (push->replay) { // in front of those that wait for it
        push->op.arrival = 0;
        push_again(b, push);
    } else {
        STAILQ_INSERT_TAIL(&b->ops[OP_PUSH].queue, &push->op, link);
        b->ops[OP_PUSH].n_requests++;
        b->ops[OP_PUSH].n_items += push->n_pending;
    }
    broker_wake(b);
}

void push_again(struct broker *b, struct push_op *push)
{
    STAILQ_INSERT_HEAD(&b->ops[OP_PUSH].queue, &push->op, link);
    b->ops[OP_PUSH].n_requests++;
    b->ops[OP_PUSH].n_items += push->n_pending;
}

void pushes_flush(struct broker *b)
{
    if (b->unsorted)
        pushes_sort(b);
    if (b->n_replay_waits > 0 ||
        (pushes_may_need_buffer(b) && (b->ops[OP_PUSH].n_requests > 0 || b->n_parked_ops > 0)))
        pushes_buffer(b);
    for (;;) {
        struct op *oldest = STAILQ_FIRST(&b->ops[OP_PUSH].queue);
        struct gate_queue q = {b->ops[OP_PUSH].n_requests, b->ops[OP_PUSH].n_items,
                               oldest ? oldest->since_us : 0};
        if (!oldest || !gate_is_open(&b->ops[OP_PUSH].gate, q, clock_mono_us()))
            return;
        struct push_flight *f = push_load(b);
        if (f->n_ops == 0) { // all wait for a lane
            push_free_flight(f);
            return;
        }
        push_launch(b, f);
    }
}

// Takes requests in order.  One that cannot go yet blocks its lanes for those behind it, so
// that no request overtakes another in a lane.
static struct push_flight *push_load(struct broker *b)
{
    struct push_flight *f = mem_new(struct push_flight);
    struct op_list stay = STAILQ_HEAD_INITIALIZER(stay);
    struct op *op;
    unsigned scanned = 0;

    STAILQ_INIT(&f->ops);
    b->push_pass++;
    while ((op = STAILQ_FIRST(&b->ops[OP_PUSH].queue)) && scanned < MAX_SCANNED) {
        struct push_op *push = container_of(op, struct push_op, op);
        if (f->n_ops == b->conf.push.max_requests ||
            (f->n_ops > 0 && (f->n_items + push->n_pending > b->conf.push.max_items ||
                              f->n_bytes >= MAX_BATCH_BYTES)))
            break;
        STAILQ_REMOVE_HEAD(&b->ops[OP_PUSH].queue, link);
        struct lane *lane = NULL;
        enum passage passage = passage_of(b, push, &lane);
        if (passage == PASSAGE_PARK) {
            b->ops[OP_PUSH].n_requests--;
            b->ops[OP_PUSH].n_items -= push->n_pending;
            lane_park(b, lane, op, &b->ops[OP_PUSH].queue);
            continue;
        }
        if (passage == PASSAGE_STAY || (op->alone && f->n_ops > 0)) {
            for (unsigned i = 0; i < push->n_items; i++)
                if (push_is_open(&push->items[i]))
                    push->items[i].lane->blocked_pass = b->push_pass;
            STAILQ_INSERT_TAIL(&stay, op, link);
            scanned++;
            continue;
        }
        if (push->n_pending == 0) { // only for later
            b->ops[OP_PUSH].n_requests--;
            schedule_add(b, push);
            continue;
        }
        push_add(b, f, push);
        if (op->alone)
            break;
    }
    STAILQ_CONCAT(&stay, &b->ops[OP_PUSH].queue);
    STAILQ_CONCAT(&b->ops[OP_PUSH].queue, &stay);
    return f;
}

static bool push_is_open(const struct push_item *it)
{
    return it->status == PUSH_PENDING || it->status == PUSH_LATER;
}

// May a request leave now?  If not, and it is only one lane that keeps it, it waits at that
// lane. With several lanes it stays in the queue, where it keeps those behind it from
// overtaking.  A locked lane does not delay other lanes: segments that can be stored leave
// without it.  A request that must be whole waits at the locked lane, and may be overtaken in
// the others.
static enum passage passage_of(struct broker *b, struct push_op *push, struct lane **at)
{
    struct lane *first = NULL, *locked = NULL;
    bool several = false, busy = false, passed = push->waits_replay, any_free = false,
         unknown = false;

    for (unsigned i = 0; i < push->n_items && !passed; i++) {
        struct lane *lane = push->items[i].lane;
        if (!push_is_open(&push->items[i]))
            continue;
        several = several || (first && lane != first);
        first = first ? first : lane;
        if (lane->locked)
            locked = locked ? locked : lane;
        else if (!lane_is_known(b, lane))
            unknown = true; // not for long
        else if (lane->pushing)
            busy = true;
        else
            any_free = true;
        passed = lane->blocked_pass == b->push_pass;
    }
    if (passed)
        return PASSAGE_STAY;
    push->several = several;
    *at = locked ? locked : first;
    if (locked &&
        (!several || push->op.whole || push->n_pending == 0 || !(unknown || busy || any_free)))
        return PASSAGE_PARK;
    if (unknown || (busy && several))
        return PASSAGE_STAY;
    return busy ? PASSAGE_PARK : PASSAGE_GO;
}

static void push_add(struct broker *b, struct push_flight *f, struct push_op *push)
{
    STAILQ_INSERT_TAIL(&f->ops, &push->op, link);
    f->n_ops++;
    f->whole = push->op.whole;
    b->ops[OP_PUSH].n_requests--;
    b->ops[OP_PUSH].n_items -= push->n_pending;
    if (push->n_later > 0) // it is alone
        f->later = mem_new_array(struct push_item *, push->n_later);
    for (unsigned i = 0; i < push->n_items; i++) {
        struct push_item *it = &push->items[i];
        if (it->lane->locked) { // this part of the request waits
            it->behind = push_is_open(it);
            it->lane->n_behind += it->behind;
            push->has_behind = push->has_behind || it->behind;
            continue;
        }
        f->n_bytes += it->payload.len;
        if (it->status == PUSH_PENDING) {
            segs_add(&f->segs, it);
            f->n_items++;
        } else if (it->status == PUSH_LATER) {
            f->later[f->n_later++] = it;
        }
    }
}

static const struct pg_statement *push_statement(const struct push_flight *f)
{
    if (f->n_later > 0)
        return &pg_stmt_push_mixed;
    if (f->segs.correlated)
        return &pg_stmt_push_correlated;
    return f->claims ? &pg_stmt_push_claim : &pg_stmt_push;
}

static void push_launch(struct broker *b, struct push_flight *f)
{
    bool mixed = f->n_later > 0;

    segs_cut(&f->segs, f->n_items);
    if (!mixed && !f->segs.correlated && f->n_ops <= MAX_HAND_OVER)
        f->claims = hand_over_take(b, &f->segs);
    struct call *c = call_new(b, push_statement(f), f);
    for (unsigned i = 0; i < f->segs.n; i++)
        f->segs.at[i].lane->pushing = true;
    pg_param_i32(&c->params, b->house->origin);
    if (!mixed)
        pg_param_bool(&c->params, f->whole);
    segs_fill(&f->segs, &c->params);
    if (mixed || f->segs.correlated)
        segs_fill_correlated(&f->segs, &c->params);
    if (mixed)
        mixed_fill(b, f, &c->params);
    if (f->claims)
        hand_over_fill(&c->params, f->claims);
    gate_left(&b->ops[OP_PUSH].gate);
    histogram_add(&b->stats.batch_requests[OP_PUSH], f->n_ops);
    histogram_add(&b->stats.batch_items[OP_PUSH], f->n_items + f->n_later);
    f->call = c;
    TAILQ_INSERT_TAIL(&b->push_flights, f, out);
    call_send(c, on_stored);
}

static void push_free_flight(struct push_flight *f)
{
    segs_free(&f->segs);
    free(f->later);
    free(f);
}

void push_landed(struct broker *b, struct push_op *push)
{
    if (!push->has_behind)
        return;
    push->has_behind = false;
    for (unsigned i = 0; i < push->n_items; i++) {
        struct push_item *it = &push->items[i];
        if (it->behind)
            lane_part_landed(b, it->lane);
        it->behind = false;
    }
}

// ---- the answer ----

static void on_stored(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct push_flight *f = c->what;
    uint64_t now = clock_mono_us();

    gate_landed(&b->ops[OP_PUSH].gate, f->n_ops, now - c->left_us, now);
    histogram_add(&b->stats.batch_us[OP_PUSH], now - c->left_us);
    TAILQ_REMOVE(&b->push_flights, f, out);
    struct pg_reply *part = NULL;
    if (f->claims) {
        part = hand_over_end(c, f->claims, status, reply);
        if (status == 0 && !part)
            status = call_unexpected(c, "rows that are about no segment and no claim");
    }
    if (!f->given_up)
        push_result(b, f, status, part ? part : reply);
    hand_over_told(b);
    pg_reply_part_free(part);
    push_free_flight(f);
    call_free(c);
    broker_wake(b);
}

void pushes_fail_unresolved(struct broker *b, const struct fault *why)
{
    struct op_list keep = STAILQ_HEAD_INITIALIZER(keep);
    struct op_list divert = STAILQ_HEAD_INITIALIZER(divert);
    struct op *op;

    while ((op = STAILQ_FIRST(&b->ops[OP_PUSH].queue))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&b->ops[OP_PUSH].queue, link);
        bool waits = false;
        for (unsigned i = 0; i < push->n_items && !waits; i++)
            waits = lane_is_missing(push->items[i].lane, why->code);
        if (!waits) {
            STAILQ_INSERT_TAIL(&keep, op, link);
            continue;
        }
        b->ops[OP_PUSH].n_requests--;
        b->ops[OP_PUSH].n_items -= push->n_pending;
        if (push_may_buffer(b, push, why->code)) {
            STAILQ_INSERT_TAIL(&divert, op, link);
            continue;
        }
        op->why = *why;
        push_finish(b, push, why->code);
    }
    STAILQ_CONCAT(&b->ops[OP_PUSH].queue, &keep);
    while ((op = STAILQ_FIRST(&divert))) {
        STAILQ_REMOVE_HEAD(&divert, link);
        push_divert(b, container_of(op, struct push_op, op));
    }
}
