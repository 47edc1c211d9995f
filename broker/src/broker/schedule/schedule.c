// Items that are to be delivered later: from their push into queen.scheduled.  Requests that
// mix them with others take the way of those (push.c).
//
//      schedule_add ──► schedule_queue ──► schedule_launch ──► on_scheduled ──► push_finish
//                             ▲                            │
//                             └── a lane was renewed, the ──┘
//                                 connection lost
//
// One call is out at a time; what comes meanwhile goes with the next.  When the database is
// away they go to the file buffer like the rest of their push (buffer.c).
#include "broker/schedule/schedule_int.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/segments/segs.h"
#include "db/sql.gen.h"

static const struct schedule_cols cols = {SCHEDULE_COL_STATUS, SCHEDULE_COL_ID,
                                          SCHEDULE_COL_DUE_AT, SCHEDULE_COL_WAIT_US};
enum { MAX_ITEMS = 5000, MAX_BYTES = 8 << 20, MAX_TRIES = 20 };

struct flight {
    struct op_list ops;
    struct push_item **items;
    unsigned n_items, cap;
    size_t n_bytes;
};

static void schedule_launch(struct broker *b, struct flight *f);
static void on_scheduled(struct pg_call *pg, int status, const struct pg_reply *reply);
static void schedule_finish_items(struct broker *b, struct flight *f, int status,
                                  const struct fault *why);

void schedule_add(struct broker *b, struct push_op *push)
{
    push->op.tries = 0;
    STAILQ_INSERT_TAIL(&b->schedule_queue, &push->op, link);
    broker_wake(b);
}

// ---- there ----

// See lane_is_missing().
static bool schedule_is_resolved(const struct push_op *push, int status)
{
    for (unsigned i = 0; i < push->n_items; i++)
        if (push->items[i].status == PUSH_LATER && lane_is_missing(push->items[i].lane, status))
            return false;
    return true;
}

static bool schedule_may_go(struct broker *b, struct push_op *push)
{
    for (unsigned i = 0; i < push->n_items; i++)
        if (push->items[i].status == PUSH_LATER && !lane_is_known(b, push->items[i].lane))
            return false;
    return true;
}

static struct lane *find_locked(const struct push_op *push)
{
    for (unsigned i = 0; i < push->n_items; i++)
        if (push->items[i].status == PUSH_LATER && push->items[i].lane->locked)
            return push->items[i].lane;
    return NULL;
}

static void schedule_add_item(struct flight *f, struct push_op *push)
{
    STAILQ_INSERT_TAIL(&f->ops, &push->op, link);
    for (unsigned i = 0; i < push->n_items; i++) {
        struct push_item *it = &push->items[i];
        if (it->status != PUSH_LATER)
            continue;
        if (f->n_items == f->cap) {
            f->cap = f->cap > 0 ? f->cap * 2 : 64;
            f->items = mem_realloc(f->items, f->cap * sizeof *f->items);
        }
        f->items[f->n_items++] = it;
        f->n_bytes += it->payload.len;
    }
}

void schedules_flush(struct broker *b)
{
    struct op_list stay = STAILQ_HEAD_INITIALIZER(stay);
    struct op *op;

    if (b->scheduling || STAILQ_EMPTY(&b->schedule_queue))
        return;
    struct flight *f = mem_new(struct flight);
    STAILQ_INIT(&f->ops);
    while ((op = STAILQ_FIRST(&b->schedule_queue))) {
        struct push_op *push = container_of(op, struct push_op, op);
        bool full = f->n_items + push->n_later > MAX_ITEMS || f->n_bytes >= MAX_BYTES;
        if (f->n_items > 0 && (full || op->alone))
            break;
        STAILQ_REMOVE_HEAD(&b->schedule_queue, link);
        struct lane *locked = find_locked(push);
        if (locked)
            lane_park(b, locked, op, &b->schedule_queue);
        else if (schedule_may_go(b, push))
            schedule_add_item(f, push);
        else
            STAILQ_INSERT_TAIL(&stay, op, link);
        if (!locked && op->alone && f->n_items > 0)
            break;
    }
    STAILQ_CONCAT(&stay, &b->schedule_queue);
    STAILQ_CONCAT(&b->schedule_queue, &stay);
    if (f->n_items == 0) // all wait for a lane
        free(f);
    else
        schedule_launch(b, f);
}

#define FOR_ITEMS(type, put)                   \
    pg_begin_array(p, type);                   \
    for (unsigned i = 0; i < n; i++) {         \
        const struct push_item *it = items[i]; \
        put;                                   \
    }                                          \
    pg_end_array(p)

static void put_us(struct pg_params *p, const struct push_item *it, enum push_when when)
{
    if (it->when == when)
        pg_put_i64(p, it->when_us);
    else
        pg_put_null(p);
}

static void put_schedule_text(struct pg_params *p, span text)
{
    if (text.ptr)
        pg_put_text(p, text);
    else
        pg_put_null(p);
}

void schedule_fill(struct broker *b, struct push_item *const *items, unsigned n,
                   struct pg_params *p)
{
    int32_t *id_at = mem_new_array(int32_t, n > 0 ? n : 1);

    for (unsigned i = 0; i < n; i++) // as it is sent: the lane may be another when this is back
        memcpy(items[i]->partition_id, items[i]->lane->id, 16);
    if (!b->sealer && b->conf.must_seal)
        pg_param_null(p, PG_BOOL);
    else
        pg_param_bool(p, b->sealer == NULL);
    FOR_ITEMS(PG_INT8, pg_put_i64(p, it->lane->num));
    FOR_ITEMS(PG_UUID, pg_put_uuid(p, it->key));
    FOR_ITEMS(PG_INT8, put_us(p, it, PUSH_AT));
    FOR_ITEMS(PG_INT8, put_us(p, it, PUSH_AFTER));
    FOR_ITEMS(PG_TEXT, put_schedule_text(p, it->txid));
    FOR_ITEMS(PG_TEXT, put_schedule_text(p, it->correlation));
    pg_begin_array(p, PG_BYTEA);
    for (unsigned i = 0; i < n; i++) {
        size_t mark, at;
        struct buf *message = pg_open_element(p, &mark);
        message_put(message, items[i], &at);
        pg_close_element(p, mark);
        id_at[i] = (int32_t)at + 1; // bytes are counted from 1 there
    }
    pg_end_array(p);
    FOR_ITEMS(PG_INT4, ((void)it, pg_put_i32(p, id_at[i])));
    free(id_at);
}

static void schedule_launch(struct broker *b, struct flight *f)
{
    struct call *c = call_new(b, &pg_stmt_schedule, f);

    b->scheduling = true;
    pg_param_i32(&c->params, b->house->origin);
    schedule_fill(b, f->items, f->n_items, &c->params);
    call_send(c, on_scheduled);
}

// ---- and back ----

bool schedule_row_is_sound(const struct pg_reply *reply, unsigned row,
                           const struct schedule_cols *at)
{
    int16_t status = pg_reply_i16(reply, row, at->status);

    return status > SCHEDULED_DUPLICATE ||
           (pg_reply_uuid(reply, row, at->id) &&
            (status == SCHEDULED_DUPLICATE ||
             (status == SCHEDULED_WAITS && !pg_reply_is_null(reply, row, at->due))));
}

static void item_scheduled(struct broker *b, struct push_item *it, const struct pg_reply *reply,
                           unsigned row, const struct schedule_cols *at)
{
    memcpy(it->message_id, pg_reply_uuid(reply, row, at->id), 16);
    it->due_us = pg_reply_unix_us(reply, row, at->due);
    it->status = PUSH_SCHEDULED;
    if (it->producer.ptr && stored_is_counted(b))
        stored_add(b, it->producer, it->lane->num, it->due_us, item_bytes(it));
    counter_add(&b->stats.scheduled, 1);
}

void schedule_read_row(struct broker *b, struct push_item *it, const struct pg_reply *reply,
                       unsigned row, const struct schedule_cols *at)
{
    switch (pg_reply_i16(reply, row, at->status)) {
    case SCHEDULED_WAITS:
        item_scheduled(b, it, reply, row, at);
        break;
    case SCHEDULED_DUPLICATE:
        // Our own id, sent again because the first answer was lost, is no duplicate.
        if (it->op && it->op->op.unknown && !it->txid.ptr &&
            !pg_reply_is_null(reply, row, at->due)) {
            item_scheduled(b, it, reply, row, at);
            break;
        }
        it->status = PUSH_DUPLICATE;
        memcpy(it->message_id, pg_reply_uuid(reply, row, at->id), 16);
        counter_add(&b->stats.duplicates, 1);
        break;
    case SCHEDULED_LANE_GONE:
        lane_forget_num(b, it->lane);
        lane_resolve(b, it->lane);
        break;
    case SCHEDULED_LANE_SEALED:
        queue_sealed(it->lane->queue);
        break;
    case SCHEDULED_NO_KEY:
        if (it->op)
            fault_set(&it->op->op.why, QE_NO_KEY, "queue \"%.*s\": %s",
                      (int)it->lane->queue->name_len, it->lane->queue->name,
                      err_text(QE_NO_KEY));
        break;
    default: // goes again
        break;
    }
}

void schedule_expect_first(struct broker *b, const struct pg_reply *reply, unsigned col_wait_us)
{
    int64_t first = INT64_MAX;

    for (unsigned row = 0; row < pg_reply_rows(reply); row++)
        if (!pg_reply_is_null(reply, row, col_wait_us)) {
            int64_t wait = pg_reply_i64(reply, row, col_wait_us);
            first = wait < first ? wait : first;
        }
    if (first < INT64_MAX)
        timer_expect(b->house, first);
}

static void on_scheduled(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct flight *f = c->what;

    if (status == 0 && pg_reply_rows(reply) != f->n_items)
        status = call_unexpected(c, "another number of messages than was sent");
    for (unsigned row = 0; status == 0 && row < f->n_items; row++)
        if (pg_reply_i32(reply, row, SCHEDULE_COL_IDX) != (int32_t)row ||
            !schedule_row_is_sound(reply, row, &cols))
            status = call_unexpected(c, "messages in another order, or without their ids");
    for (unsigned row = 0; status == 0 && row < f->n_items; row++)
        schedule_read_row(b, f->items[row], reply, row, &cols);
    int code = status != 0 ? status : QE_INTERNAL; // 0: some items got no result
    struct fault why;
    if (status == 0 || status == QE_PG_SHAPE)
        fault_set(&why, code, "%s", err_text(code));
    else
        pg_reply_fault(&why, code, reply);
    if (status == 0)
        schedule_expect_first(b, reply, SCHEDULE_COL_WAIT_US);
    else
        log_debug("schedule.failed", "status=%s detail=\"%s\"", err_name(status), why.text);
    for (unsigned i = 0; status != 0 && pg_reply_is_locked(reply) && i < f->n_items; i++)
        lane_suspect(b, f->items[i]->lane);
    schedule_finish_items(b, f, status, &why);
    call_free(c);
    broker_wake(b);
}

static bool schedule_goes_again(struct push_op *push, int status, bool scatter)
{
    if (push->op.why.code != 0)
        return false;
    if (scatter)
        return true;
    return push->op.tries++ < MAX_TRIES && (status == 0 || is_worth_retry(status));
}

static void schedule_fail(struct broker *b, struct push_op *push, int status,
                          const struct fault *why)
{
    if (push_may_buffer(b, push, status)) {
        push_buffer(b, push);
        return;
    }
    if (push->op.why.code == 0)
        push->op.why = *why;
    push_finish(b, push, push->op.why.code);
}

static void schedule_finish_items(struct broker *b, struct flight *f, int status,
                                  const struct fault *why)
{
    struct op_list again = STAILQ_HEAD_INITIALIZER(again);
    struct op *op = STAILQ_FIRST(&f->ops);
    // One bad request spoiled the call for all: send each by itself.
    bool scatter = (status == QE_PG_DATA || status == QE_PG_FAILED) && STAILQ_NEXT(op, link);

    b->scheduling = false;
    while ((op = STAILQ_FIRST(&f->ops))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&f->ops, link);
        unsigned before = push->n_later;
        push->n_later = 0;
        for (unsigned i = 0; i < push->n_items; i++)
            push->n_later += push->items[i].status == PUSH_LATER;
        counter_add(&b->stats.items[OP_PUSH], before - push->n_later);
        op->alone = op->alone || scatter;
        op->unknown = op->unknown || status == QE_PG_GONE;
        if (push->n_later == 0)
            push_finish(b, push, 0);
        else if (schedule_goes_again(push, status, scatter))
            STAILQ_INSERT_TAIL(&again, op, link);
        else
            schedule_fail(b, push, status, why);
    }
    STAILQ_CONCAT(&again, &b->schedule_queue);
    STAILQ_CONCAT(&b->schedule_queue, &again);
    free(f->items);
    free(f);
}

void schedules_fail_unresolved(struct broker *b, const struct fault *why)
{
    struct op_list keep = STAILQ_HEAD_INITIALIZER(keep);
    struct op *op;

    while ((op = STAILQ_FIRST(&b->schedule_queue))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&b->schedule_queue, link);
        if (schedule_is_resolved(push, why->code))
            STAILQ_INSERT_TAIL(&keep, op, link);
        else
            schedule_fail(b, push, why->code, why);
    }
    STAILQ_CONCAT(&b->schedule_queue, &keep);
}
