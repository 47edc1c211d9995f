// Pushes: gather requests, cut them into segments, store, wake whoever waits.  Requests of
// items that have a time to be delivered at go on to schedule.c.  One that has both goes alone,
// and all of it is stored or nothing.
//
//      arrive ──► push_queue ──► load ──► cut ──► fill ──► on_stored ──► finish
//                     ▲                                        │
//                     └── duplicates taken out, lane renewed, ─┘
//                         connection lost, neighbour bad
#include "broker/push_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "pg/sql.gen.h"
#include "segment/codec.h"

enum {
    STORED,
    HAS_DUPLICATES,
    HELD_BACK,
    LANE_GONE,
    QUEUE_FULL,
    LANE_LIMITED,
    LANE_SEALED
}; // push_segments.sql
enum {
    MAX_BATCH_BYTES = 8 << 20,
    MAX_SCANNED = 2000, // requests looked at per batch, so that many blocked ones cost little
    MAX_TRIES = 20,
};

static void arrive(struct mailbox_item *item);
static struct push_flight *load(struct broker *b);
static bool is_blocked(struct broker *b, struct push_op *push);
static void add(struct broker *b, struct push_flight *f, struct push_op *push);
static void launch(struct broker *b, struct push_flight *f);
static void free_flight(struct push_flight *f);
static void on_stored(struct pg_call *pg, int status, const struct pg_reply *reply);
static int read_reply(struct broker *b, struct push_flight *f, const struct pg_reply *reply);
static void land(struct broker *b, struct push_flight *f, int status, const char *detail);

void broker_push(struct broker *b, struct push_op *push)
{
    op_begin(b, &push->op, OP_PUSH);
    op_go(b, house_home(b->house, push->items[0].queue), &push->op, arrive);
}

// Finds each item's lane by name.  Neighbours usually share it, so look back first.
static void arrive(struct mailbox_item *item)
{
    struct push_op *push = container_of(item, struct push_op, op.mail);
    struct broker *b = item->owner;
    const struct push_item *last = NULL;

    if (!op_admit(b, &push->op))
        return;
    // Then the lanes are asked for when it is known that the request goes to the database.
    bool troubled = pushes_are_troubled(b);
    b->n_held += troubled;
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
    if (push->replay) { // in front of those that are held for it
        push_again(b, push);
    } else {
        STAILQ_INSERT_TAIL(&b->push_queue, &push->op, link);
        b->n_push_requests++;
        b->n_push_items += push->n_pending;
    }
    broker_wake(b);
}

void push_again(struct broker *b, struct push_op *push)
{
    STAILQ_INSERT_HEAD(&b->push_queue, &push->op, link);
    b->n_push_requests++;
    b->n_push_items += push->n_pending;
}

void pushes_flush(struct broker *b)
{
    if (b->n_held > 0 || (pushes_are_troubled(b) && b->n_push_requests > 0))
        pushes_divert(b);
    for (;;) {
        struct op *oldest = STAILQ_FIRST(&b->push_queue);
        struct gate_queue q = {b->n_push_requests, b->n_push_items,
                               oldest ? oldest->since_us : 0};
        if (!oldest || !gate_is_open(&b->push_gate, q, clock_mono_us()))
            return;
        struct push_flight *f = load(b);
        if (f->n_ops == 0) { // all wait for a lane
            free_flight(f);
            return;
        }
        launch(b, f);
    }
}

// Takes requests in order.  One that cannot go yet blocks its lanes for those behind it, so
// that no request overtakes another in a lane.
static struct push_flight *load(struct broker *b)
{
    struct push_flight *f = mem_new(struct push_flight);
    struct op_list stay = STAILQ_HEAD_INITIALIZER(stay);
    struct op *op;
    unsigned scanned = 0;

    STAILQ_INIT(&f->ops);
    b->push_pass++;
    while ((op = STAILQ_FIRST(&b->push_queue)) && scanned++ < MAX_SCANNED) {
        struct push_op *push = container_of(op, struct push_op, op);
        if (f->n_ops == b->conf.push.max_requests ||
            (f->n_ops > 0 && (f->n_items + push->n_pending > b->conf.push.max_items ||
                              f->n_bytes >= MAX_BATCH_BYTES)))
            break;
        STAILQ_REMOVE_HEAD(&b->push_queue, link);
        if (is_blocked(b, push) || (op->alone && f->n_ops > 0)) {
            for (unsigned i = 0; i < push->n_items; i++)
                push->items[i].lane->blocked_pass = b->push_pass;
            STAILQ_INSERT_TAIL(&stay, op, link);
            continue;
        }
        if (push->n_pending == 0) { // only for later
            b->n_push_requests--;
            schedule_add(b, push);
            continue;
        }
        add(b, f, push);
        if (op->alone)
            break;
    }
    STAILQ_CONCAT(&stay, &b->push_queue);
    STAILQ_CONCAT(&b->push_queue, &stay);
    return f;
}

static bool is_blocked(struct broker *b, struct push_op *push)
{
    if (push->held)
        return true;
    for (unsigned i = 0; i < push->n_items; i++) {
        const struct lane *lane = push->items[i].lane;
        if (lane->num == 0 || lane->pushing || lane->blocked_pass == b->push_pass)
            return true;
    }
    return false;
}

static void add(struct broker *b, struct push_flight *f, struct push_op *push)
{
    STAILQ_INSERT_TAIL(&f->ops, &push->op, link);
    f->n_ops++;
    f->n_items += push->n_pending;
    f->whole = push->op.whole;
    b->n_push_requests--;
    b->n_push_items -= push->n_pending;
    if (push->n_later > 0) // it is alone
        f->later = mem_new_array(struct push_item *, push->n_later);
    for (unsigned i = 0; i < push->n_items; i++) {
        struct push_item *it = &push->items[i];
        f->n_bytes += it->payload.len;
        if (it->status == PUSH_PENDING)
            segs_add(&f->segs, it);
        else if (it->status == PUSH_LATER)
            f->later[f->n_later++] = it;
    }
}

static void launch(struct broker *b, struct push_flight *f)
{
    bool mixed = f->n_later > 0;
    struct call *c = call_new(b,
                              mixed                ? &pg_stmt_push_mixed
                              : f->segs.correlated ? &pg_stmt_push_correlated
                                                   : &pg_stmt_push,
                              f);

    segs_cut(&f->segs, f->n_items);
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
    gate_left(&b->push_gate);
    histogram_add(&b->stats.batch_requests[OP_PUSH], f->n_ops);
    histogram_add(&b->stats.batch_items[OP_PUSH], f->n_items + f->n_later);
    f->call = c;
    TAILQ_INSERT_TAIL(&b->push_flights, f, out);
    call_send(c, on_stored);
}

static void free_flight(struct push_flight *f)
{
    segs_free(&f->segs);
    free(f->later);
    free(f);
}

// ---- the answer ----

static void on_stored(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct push_flight *f = c->what;
    uint64_t now = clock_mono_us();

    gate_landed(&b->push_gate, f->n_ops, now - c->left_us, now);
    histogram_add(&b->stats.batch_us[OP_PUSH], now - c->left_us);
    TAILQ_REMOVE(&b->push_flights, f, out);
    if (f->given_up) {
        free_flight(f);
        call_free(c);
        broker_wake(b);
        return;
    }
    if (status == 0)
        status = read_reply(b, f, reply);
    else
        log_debug("push.failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
    land(b, f, status, status == 0 ? "" : pg_reply_message(reply));
    free_flight(f);
    call_free(c);
    broker_wake(b);
}

static void read_refusal(struct broker *b, struct push_flight *f, struct seg *s,
                         const struct pg_reply *reply, unsigned row)
{
    switch (pg_reply_i16(reply, row, PUSH_COL_STATUS)) {
    case HAS_DUPLICATES: {
        unsigned pos = (unsigned)pg_reply_i32(reply, row, PUSH_COL_POS);
        if (pos >= s->count || pg_reply_is_null(reply, row, PUSH_COL_DUP_ID))
            break;
        struct push_item *it = seg_item(s, pos);
        // Our own id, sent again because the first answer was lost, is no duplicate.
        it->status = it->op->op.unknown && !it->txid.ptr ? PUSH_QUEUED : PUSH_DUPLICATE;
        memcpy(it->message_id, pg_reply_uuid(reply, row, PUSH_COL_DUP_ID), 16);
        memcpy(it->partition_id, s->lane_id, 16);
        counter_add(&b->stats.duplicates, 1);
        // Perhaps stored by an earlier try whose answer was lost: nobody was told of it.
        s->untold = s->untold || it->op->op.unknown || it->op->replay;
        break;
    }
    case LANE_GONE:
        seg_lane_gone(b, s);
        lane_resolve(b, s->lane);
        break;
    case QUEUE_FULL: // only whole requests are told so: the first is the only one
        fault_set(&STAILQ_FIRST(&f->ops)->why, QE_QUEUE_FULL, "queue \"%.*s\" is full",
                  (int)s->lane->queue->name_len, s->lane->queue->name);
        break;
    case LANE_LIMITED:
        s->lane->limited = true;
        for (struct push_item *it = s->first; it; it = it->next)
            it->op->op.alone = it->op->op.whole = true;
        break;
    case LANE_SEALED:
        queue_sealed(s->lane->queue);
        break;
    default: // held back: goes again
        break;
    }
}

static int read_reply(struct broker *b, struct push_flight *f, const struct pg_reply *reply)
{
    unsigned n_rows = pg_reply_rows(reply), seg = 0;
    bool *refused = mem_new_array(bool, f->segs.n);
    int rc = 0;

    for (unsigned row = 0; row < n_rows; row++) {
        if (pg_reply_i16(reply, row, PUSH_COL_STATUS) == STORED ||
            mixed_is_later(f, reply, row))
            continue;
        unsigned i = (unsigned)pg_reply_i32(reply, row, PUSH_COL_SEG) - 1;
        if (i >= f->segs.n) {
            rc = QE_PG_SHAPE;
            break;
        }
        refused[i] = true;
        read_refusal(b, f, &f->segs.at[i], reply, row);
    }
    if (f->n_later > 0 && !mixed_read(b, f, reply)) {
        free(refused);
        return rc;
    }
    // Stored ones come in the order they were sent.
    for (unsigned row = 0; row < n_rows && rc == 0; row++) {
        if (pg_reply_i16(reply, row, PUSH_COL_STATUS) != STORED ||
            mixed_is_later(f, reply, row))
            continue;
        while (seg < f->segs.n && refused[seg])
            seg++;
        struct seg *s = &f->segs.at[seg];
        if (seg == f->segs.n || s->num != pg_reply_i64(reply, row, PUSH_COL_LANE)) {
            rc = QE_PG_SHAPE;
            break;
        }
        if (s->lane->num == s->num)
            s->lane->last_seq = pg_reply_i64(reply, row, PUSH_COL_FIRST);
        seg_stored(s, pg_reply_unix_us(reply, row, PUSH_COL_CREATED));
        seg++;
    }
    free(refused);
    return rc;
}

// Items that were the same as an earlier one share its fate.
static void resolve_repeated(struct push_op *push)
{
    for (unsigned i = 0; i < push->n_items; i++) {
        struct push_item *it = &push->items[i];
        if (it->status != PUSH_PENDING || !it->same || it->same->status == PUSH_PENDING)
            continue;
        it->status = PUSH_DUPLICATE;
        memcpy(it->message_id, it->same->message_id, 16);
        memcpy(it->partition_id, it->same->partition_id, 16);
    }
}

// The lanes may be forgotten again; nothing of the request may be touched after this.
void push_finish(struct broker *b, struct push_op *push, int status)
{
    for (unsigned i = 0; i < push->n_items; i++)
        push->items[i].lane->pins--;
    op_finish(b, &push->op, status);
}

static bool goes_again(struct push_op *push, int status)
{
    if (push->op.why.code != 0 || push->op.tries++ >= MAX_TRIES)
        return false;
    return status == 0 || is_worth_retry(status);
}

// How many items are in that state yet; those that were and are not any more are counted as
// done.
static unsigned still(struct broker *b, const struct push_op *push, enum push_status state,
                      unsigned before)
{
    unsigned n = 0;

    for (unsigned i = 0; i < push->n_items; i++)
        n += push->items[i].status == state;
    counter_add(&b->stats.items[OP_PUSH], before - n);
    return n;
}

static void land(struct broker *b, struct push_flight *f, int status, const char *detail)
{
    struct op_list again = STAILQ_HEAD_INITIALIZER(again);
    // One bad request spoiled the call for all: send each by itself, so that only the guilty
    // fails.
    bool scatter = (status == QE_PG_DATA || status == QE_PG_FAILED) && f->n_ops > 1;

    for (unsigned i = 0; i < f->segs.n; i++)
        f->segs.at[i].lane->pushing = false;
    // Before any of them is finished: the item that another repeats may go with its request.
    struct op *op;
    STAILQ_FOREACH (op, &f->ops, link)
        resolve_repeated(container_of(op, struct push_op, op));

    while ((op = STAILQ_FIRST(&f->ops))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&f->ops, link);
        push->n_pending = still(b, push, PUSH_PENDING, push->n_pending);
        if (push->n_later > 0)
            push->n_later = still(b, push, PUSH_LATER, push->n_later);
        op->alone = op->alone || scatter;
        op->unknown = op->unknown || status == QE_PG_GONE;
        if (push->n_pending == 0) {
            queue_tally(b, push->items[0].lane->queue, true)->push_requests++;
            if (push->n_later > 0)
                schedule_add(b, push);
            else
                push_finish(b, push, 0);
        } else if (scatter || goes_again(push, status)) {
            counter_add(&b->stats.retried, 1);
            STAILQ_INSERT_TAIL(&again, op, link);
            b->n_push_requests++;
            b->n_push_items += push->n_pending;
        } else if (push_may_divert(b, push, status)) {
            push_divert(b, push);
        } else {
            int code = op->why.code != 0 ? op->why.code : status != 0 ? status : QE_INTERNAL;
            if (op->why.code == 0)
                fault_set(&op->why, code, "%s%s%s", err_text(code), *detail ? ": " : "",
                          detail);
            push_finish(b, push, code);
        }
    }
    // In front, or they would be overtaken.
    STAILQ_CONCAT(&again, &b->push_queue);
    STAILQ_CONCAT(&b->push_queue, &again);

    struct lane *told = NULL;
    for (unsigned i = 0; i < f->segs.n; i++) {
        const struct seg *s = &f->segs.at[i];
        if (s->stored)
            queue_tally(b, s->lane->queue, true)->push_messages += s->count;
        else if (!s->untold && status != QE_PG_GONE) // which may have been stored
            continue;
        if (s->lane != told) {
            told = s->lane;
            news_lane(b, told);
        }
    }
    feed_active(b);
}

void pushes_fail_unresolved(struct broker *b, int status)
{
    struct op_list keep = STAILQ_HEAD_INITIALIZER(keep);
    struct op *op;

    while ((op = STAILQ_FIRST(&b->push_queue))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&b->push_queue, link);
        bool waits = false;
        for (unsigned i = 0; i < push->n_items && !waits; i++)
            waits = lane_is_missing(push->items[i].lane, status);
        if (!waits) {
            STAILQ_INSERT_TAIL(&keep, op, link);
            continue;
        }
        b->n_push_requests--;
        b->n_push_items -= push->n_pending;
        if (push_may_divert(b, push, status)) {
            push_divert(b, push);
            continue;
        }
        fault_set(&op->why, status, "%s", err_text(status));
        push_finish(b, push, status);
    }
    STAILQ_CONCAT(&b->push_queue, &keep);
}
