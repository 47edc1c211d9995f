// Transactions: pushes and acks, each transaction one call, all or nothing.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/schedule/schedule_int.h"
#include "broker/segments/segs.h"
#include "broker/settle/ack_int.h"
#include "broker/settle/dead_letters.h"
#include "db/sql.gen.h"

enum { MAX_TRIES = 20 };

// A transaction in flight.
struct tx_flight {
    struct tx_op *tx;
    struct segs segs;
    struct push_item **later; // those that are delivered later
    unsigned n_later;
    struct ack_group *groups;
    struct ack_group **group_list;
    unsigned n_groups;
};

static void tx_arrive(struct mailbox_item *item);
static void tx_launch(struct broker *b, struct tx_op *tx);
static void on_transaction_done(struct pg_call *pg, int status, const struct pg_reply *reply);
static const char *tx_find_fault(const struct tx_flight *f, const struct pg_reply *reply);
static void notify_tx_lanes(struct broker *b, struct tx_flight *f);
static bool transaction_read_reply(struct broker *b, struct tx_flight *f,
                                   const struct pg_reply *reply);
static void transaction_read_failure(struct tx_flight *f, const struct pg_reply *reply,
                                     unsigned row);

static void tx_complete(struct op *op)
{
    struct tx_op *tx = container_of(op, struct tx_op, op);

    tx->done(tx, op->status);
}

void broker_transaction(struct broker *b, struct tx_op *tx)
{
    op_begin(b, &tx->op, OP_TRANSACTION, tx_complete);
    tx->committed = false;
    tx->failed_item = tx->failed_entry = -1;
    tx->error = SPAN_NONE;
    op_go(b, tx->n_items > 0 ? house_home(b->house, tx->items[0].queue) : b, &tx->op,
          tx_arrive);
}

static void tx_arrive(struct mailbox_item *item)
{
    struct tx_op *tx = container_of(item, struct tx_op, op.mail);
    struct broker *b = item->owner;

    if (!op_admit(b, &tx->op))
        return;
    for (unsigned i = 0; i < tx->n_items; i++) {
        struct push_item *it = &tx->items[i];
        it->lane = lane_get(b, queue_get(b, it->queue), it->partition);
        it->lane->pins++;
        it->status = PUSH_PENDING;
        it->op = NULL;
        lane_resolve(b, it->lane);
    }
    STAILQ_INSERT_TAIL(&b->ops[OP_TRANSACTION].queue, &tx->op, link);
    b->ops[OP_TRANSACTION].n_requests++;
    broker_wake(b);
}

// See lane_is_missing().
static bool transaction_is_resolved(const struct tx_op *tx, int status)
{
    for (unsigned i = 0; i < tx->n_items; i++)
        if (lane_is_missing(tx->items[i].lane, status))
            return false;
    return true;
}

void transactions_flush(struct broker *b)
{
    struct op_list stay = STAILQ_HEAD_INITIALIZER(stay);
    struct op *op;

    while (b->ops[OP_TRANSACTION].gate.n_flights < b->conf.tx.max_flights &&
           (op = STAILQ_FIRST(&b->ops[OP_TRANSACTION].queue))) {
        struct tx_op *tx = container_of(op, struct tx_op, op);
        STAILQ_REMOVE_HEAD(&b->ops[OP_TRANSACTION].queue, link);
        struct lane *locked = lanes_find_locked(tx->items, tx->n_items);
        if (locked) {
            b->ops[OP_TRANSACTION].n_requests--;
            lane_park(b, locked, op, &b->ops[OP_TRANSACTION].queue);
        } else if (lanes_are_known(b, tx->items, tx->n_items)) {
            b->ops[OP_TRANSACTION].n_requests--;
            tx_launch(b, tx);
        } else {
            STAILQ_INSERT_TAIL(&stay, op, link);
        }
    }
    STAILQ_CONCAT(&stay, &b->ops[OP_TRANSACTION].queue);
    STAILQ_CONCAT(&b->ops[OP_TRANSACTION].queue, &stay);
}

void transactions_fail_unresolved(struct broker *b, const struct fault *why)
{
    struct op_list keep = STAILQ_HEAD_INITIALIZER(keep);
    struct op *op;

    while ((op = STAILQ_FIRST(&b->ops[OP_TRANSACTION].queue))) {
        struct tx_op *tx = container_of(op, struct tx_op, op);
        STAILQ_REMOVE_HEAD(&b->ops[OP_TRANSACTION].queue, link);
        if (transaction_is_resolved(tx, why->code)) {
            STAILQ_INSERT_TAIL(&keep, op, link);
            continue;
        }
        b->ops[OP_TRANSACTION].n_requests--;
        op->why = *why;
        transaction_finish(b, tx, why->code);
    }
    STAILQ_CONCAT(&b->ops[OP_TRANSACTION].queue, &keep);
}

// ---- there ----

static void tx_free_flight(struct tx_flight *f)
{
    segs_free(&f->segs);
    free(f->group_list);
    free(f->later);
    free(f);
}

static void tx_launch(struct broker *b, struct tx_op *tx)
{
    struct tx_flight *f = mem_new(struct tx_flight);

    f->tx = tx;
    f->later = mem_new_array(struct push_item *, tx->n_items > 0 ? tx->n_items : 1);
    for (unsigned i = 0; i < tx->n_items; i++) {
        tx->items[i].same = NULL;
        if (tx->items[i].when == PUSH_NOW)
            segs_add(&f->segs, &tx->items[i]);
        else
            f->later[f->n_later++] = &tx->items[i];
    }
    segs_cut(&f->segs, tx->n_items > 0 ? tx->n_items : 1);
    for (unsigned i = 0; i < tx->n_items; i++)
        if (tx->items[i].same) { // twice in one transaction: no need to send it
            tx->failed_item = (int)i;
            tx->error = SPAN("duplicate transaction id");
            tx_free_flight(f);
            transaction_finish(b, tx, 0);
            return;
        }
    f->groups = ack_groups_make(tx->arena, tx->entries, tx->n_entries, tx->entry_groups, true,
                                &f->n_groups);
    for (unsigned i = 0; i < tx->n_entries; i++)
        if (tx->entries[i].bad_partition) {
            tx->failed_entry = (int)i;
            tx->error = SPAN("Message not found");
            tx_free_flight(f);
            transaction_finish(b, tx, 0);
            return;
        }
    f->group_list = mem_new_array(struct ack_group *, f->n_groups > 0 ? f->n_groups : 1);
    for (unsigned i = 0; i < f->n_groups; i++)
        f->group_list[i] = &f->groups[i];

    struct call *c =
        call_new(b, f->n_later > 0 ? &pg_stmt_transact_scheduled : &pg_stmt_transact, f);
    pg_param_i32(&c->params, b->house->origin);
    segs_fill(&f->segs, &c->params);
    ack_groups_fill(&c->params, f->group_list, f->n_groups);
    ack_groups_fill_more(&c->params, f->group_list, f->n_groups);
    pg_begin_array(&c->params, PG_UUID);
    for (unsigned i = 0; i < tx->n_required; i++) {
        uint8_t key[16];
        (void)key_of_text(tx->required[i], key);
        pg_put_uuid(&c->params, key);
    }
    pg_end_array(&c->params);
    if (f->n_later > 0)
        schedule_fill(b, f->later, f->n_later, &c->params);
    gate_left(&b->ops[OP_TRANSACTION].gate);
    histogram_add(&b->stats.batch_requests[OP_TRANSACTION], 1);
    histogram_add(&b->stats.batch_items[OP_TRANSACTION], tx->n_items + tx->n_entries);
    call_send(c, on_transaction_done);
}

// ---- and back ----

static void on_transaction_done(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct tx_flight *f = c->what;
    struct tx_op *tx = f->tx;
    uint64_t now = clock_mono_us();
    bool again = false;

    gate_landed(&b->ops[OP_TRANSACTION].gate, 1, now - c->left_us, now);
    histogram_add(&b->stats.batch_us[OP_TRANSACTION], now - c->left_us);
    const char *fault = status == 0 ? tx_find_fault(f, reply) : NULL;
    if (fault)
        status = call_unexpected(c, fault);
    if (status == 0)
        again = transaction_read_reply(b, f, reply) && tx->op.tries++ < MAX_TRIES;
    else if (status == QE_PG_RETRY) // rolled back for certain; a lost connection is not
        again = tx->op.tries++ < MAX_TRIES;
    else if (status == QE_PG_GONE || fault)
        notify_tx_lanes(b, f); // it may have committed: waiting pops check
    bool locked = status != 0 && pg_reply_is_locked(reply);
    if (again && locked)
        items_suspect(b, tx->items, tx->n_items);
    else if (tx->op.waited)
        op_try_next(b);
    tx->op.waited = false;
    // No lane explains it, or not any more: another transaction has locked a consumer.
    if (again && locked && (tx->n_items == 0 || tx->op.tries > 2) &&
        op_try_later(b, &tx->op, &b->ops[OP_TRANSACTION].queue)) {
        tx->op.tries = tx->op.tries > 2 ? 2 : tx->op.tries;
    } else if (again) {
        for (unsigned i = 0; i < tx->n_items; i++)
            lane_resolve(b, tx->items[i].lane);
        STAILQ_INSERT_HEAD(&b->ops[OP_TRANSACTION].queue, &tx->op, link);
        b->ops[OP_TRANSACTION].n_requests++;
    } else {
        if (status != 0)
            pg_reply_fault(&tx->op.why, status, reply);
        transaction_finish(b, tx, status);
    }
    tx_free_flight(f);
    call_free(c);
    broker_wake(b);
}

static int index_of_entry(const struct tx_op *tx, const struct ack_group *g, int pos)
{
    const struct ack_entry *e = g->first;

    while (pos-- > 0 && e)
        e = e->next;
    return e ? (int)(e - tx->entries) : 0;
}

// tx_find_fault() has seen that there is one.
static struct push_item *later_of(const struct tx_flight *f, const struct pg_reply *reply,
                                  unsigned row)
{
    return f->later[(unsigned)pg_reply_i32(reply, row, TRANSACT_COL_SEG) - 1];
}

static bool transaction_is_sound(const struct tx_flight *f, const struct pg_reply *reply,
                                 unsigned row)
{
    unsigned seg = (unsigned)pg_reply_i32(reply, row, TRANSACT_COL_SEG) - 1;
    unsigned group = (unsigned)pg_reply_i32(reply, row, TRANSACT_COL_ACK) - 1;

    switch (pg_reply_i16(reply, row, TRANSACT_COL_KIND)) {
    case TX_PUSHED:
        return !pg_reply_is_null(reply, row, TRANSACT_COL_CREATED_AT);
    case TX_ACKED:
        return group < f->n_groups &&
               ack_row_is_sound(&f->groups[group], reply, row, TRANSACT_COL_ACK);
    case TX_FAILED:
        return true;
    case TX_SCHEDULED:
        return seg < f->n_later && pg_reply_uuid(reply, row, TRANSACT_SCHEDULED_COL_DUP_ID) &&
               !pg_reply_is_null(reply, row, TRANSACT_COL_CREATED_AT);
    case TX_NOT_SCHEDULED:
        return seg < f->n_later;
    default:
        return false;
    }
}

// Returns what is wrong with the rows, or NULL.  If nothing failed, each segment was stored.
static const char *tx_find_fault(const struct tx_flight *f, const struct pg_reply *reply)
{
    unsigned n_pushed = 0;
    bool failed = false;

    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        int16_t kind = pg_reply_i16(reply, row, TRANSACT_COL_KIND);
        if (!transaction_is_sound(f, reply, row))
            return "a row about something that was not sent";
        if (kind == TX_PUSHED &&
            (n_pushed == f->segs.n ||
             pg_reply_i64(reply, row, TRANSACT_COL_LANE) != f->segs.at[n_pushed].num))
            return "segments in another order";
        n_pushed += kind == TX_PUSHED;
        failed = failed || kind == TX_FAILED || kind == TX_NOT_SCHEDULED;
    }
    return failed || n_pushed == f->segs.n ? NULL : "fewer segments than were sent";
}

static void read_scheduled(struct broker *b, struct push_item *it, const struct pg_reply *reply,
                           unsigned row)
{
    it->status = PUSH_SCHEDULED;
    it->due_us = pg_reply_unix_us(reply, row, TRANSACT_COL_CREATED_AT);
    memcpy(it->message_id, pg_reply_uuid(reply, row, TRANSACT_SCHEDULED_COL_DUP_ID), 16);
    if (it->producer.ptr && stored_is_counted(b))
        stored_add(b, it->producer, it->lane->num, it->due_us, item_bytes(it));
    timer_expect(b->house, pg_reply_i64(reply, row, TRANSACT_SCHEDULED_COL_WAIT_US));
}

// A row of kind TX_NOT_SCHEDULED; true: the same again will do.
static bool read_not_scheduled(struct broker *b, struct tx_flight *f,
                               const struct pg_reply *reply, unsigned row)
{
    struct push_item *it = later_of(f, reply, row);

    switch (pg_reply_i16(reply, row, TRANSACT_COL_STATUS)) {
    case SCHEDULED_LANE_GONE:
        lane_forget_num(b, it->lane);
        return true;
    case SCHEDULED_LANE_SEALED:
        queue_sealed(it->lane->queue);
        return true;
    default:
        transaction_read_failure(f, reply, row);
        return false;
    }
}

static void transaction_read_failure(struct tx_flight *f, const struct pg_reply *reply,
                                     unsigned row)
{
    struct tx_op *tx = f->tx;
    int item = -1, entry = -1;

    if (tx->error.ptr) // report the first failure
        return;
    if (pg_reply_i16(reply, row, TRANSACT_COL_KIND) == TX_NOT_SCHEDULED) {
        item = (int)(later_of(f, reply, row) - tx->items);
    } else if (!pg_reply_is_null(reply, row, TRANSACT_COL_SEG)) {
        unsigned seg = (unsigned)pg_reply_i32(reply, row, TRANSACT_COL_SEG) - 1;
        unsigned pos = pg_reply_is_null(reply, row, TRANSACT_COL_POS)
                           ? 0
                           : (unsigned)pg_reply_i32(reply, row, TRANSACT_COL_POS);
        if (seg < f->segs.n && pos < f->segs.at[seg].count)
            item = (int)(seg_item(&f->segs.at[seg], pos) - tx->items);
    } else if (!pg_reply_is_null(reply, row, TRANSACT_COL_ACK)) {
        unsigned g = (unsigned)pg_reply_i32(reply, row, TRANSACT_COL_ACK) - 1;
        if (g < f->n_groups)
            entry = index_of_entry(
                tx, &f->groups[g],
                pg_reply_is_null(reply, row, TRANSACT_COL_ACK + ACK_COL_ENTRY)
                    ? 0
                    : pg_reply_i32(reply, row, TRANSACT_COL_ACK + ACK_COL_ENTRY));
    }
    tx->failed_item = item;
    tx->failed_entry = entry;
    tx->error = arena_copy(tx->arena, pg_reply_bytes(reply, row, TRANSACT_COL_ERROR));
}

static void notify_tx_lanes(struct broker *b, struct tx_flight *f)
{
    for (unsigned i = 0; i < f->segs.n; i++)
        notify_lane(b, f->segs.at[i].lane);
}

// true: the same again will do, after a lane was found gone or sealed.
static bool transaction_read_reply(struct broker *b, struct tx_flight *f,
                                   const struct pg_reply *reply)
{
    struct tx_op *tx = f->tx;
    unsigned seg = 0;
    bool failed = false, again = false;

    for (unsigned row = 0; row < pg_reply_rows(reply); row++)
        failed = failed || pg_reply_i16(reply, row, TRANSACT_COL_KIND) == TX_FAILED ||
                 pg_reply_i16(reply, row, TRANSACT_COL_KIND) == TX_NOT_SCHEDULED;
    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        switch (pg_reply_i16(reply, row, TRANSACT_COL_KIND)) {
        case TX_PUSHED:
            seg_stored(&f->segs.at[seg++],
                       pg_reply_unix_us(reply, row, TRANSACT_COL_CREATED_AT));
            break;
        case TX_ACKED:
            if (!failed)
                ack_group_read(b, &f->groups[pg_reply_i32(reply, row, TRANSACT_COL_ACK) - 1],
                               reply, row, TRANSACT_COL_ACK);
            break;
        case TX_SCHEDULED:
            if (!failed)
                read_scheduled(b, later_of(f, reply, row), reply, row);
            break;
        case TX_NOT_SCHEDULED:
            again = read_not_scheduled(b, f, reply, row) || again;
            break;
        default: {
            int why = pg_reply_is_null(reply, row, TRANSACT_COL_SEG)
                          ? 0
                          : pg_reply_i16(reply, row, TRANSACT_COL_STATUS);
            if (why == SEG_LANE_GONE || why == SEG_LANE_SEALED) {
                unsigned i = (unsigned)pg_reply_i32(reply, row, TRANSACT_COL_SEG) - 1;
                if (i < f->segs.n && why == SEG_LANE_GONE)
                    seg_lane_gone(b, &f->segs.at[i]);
                else if (i < f->segs.n)
                    queue_sealed(f->segs.at[i].lane->queue);
                again = true;
            } else {
                transaction_read_failure(f, reply, row);
            }
        }
        }
    }
    tx->committed = !failed;
    if (failed)
        return again && !tx->error.ptr;
    for (unsigned i = 0; i < f->segs.n; i++)
        queue_tally(b, f->segs.at[i].lane->queue, true)->push_messages += f->segs.at[i].count;
    notify_tx_lanes(b, f);
    struct queue *q = f->segs.n > 0     ? f->segs.at[0].lane->queue
                      : f->n_groups > 0 ? f->groups[0].counted
                                        : NULL;
    if (q)
        queue_tally(b, q, true)->transactions++;
    counter_add(&b->stats.scheduled, f->n_later);
    feed_active(b);
    return false;
}

void transaction_finish(struct broker *b, struct tx_op *tx, int status)
{
    for (unsigned i = 0; i < tx->n_items; i++)
        tx->items[i].lane->pins--;
    if (status == 0 && tx->committed) {
        counter_add(&b->stats.items[OP_TRANSACTION], tx->n_items + tx->n_entries);
        dead_letters_of(b, tx->entries, tx->n_entries, tx->entry_groups, true);
    }
    op_finish(b, &tx->op, status);
}
