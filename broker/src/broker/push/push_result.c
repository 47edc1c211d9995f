// Results of pushes: reads the rows about the segments and finishes the requests.
//
//      push_result ──► push_read_reply ──► push_result_apply ──► push_finish, the queue again,
//      the file buffer
//
// The way there is push.c.
#include "broker/push/push_int.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

enum {
    MAX_TRIES = 20,
    // Duplicates of others keep a segment, and with it all requests in it, from being stored.
    // One that has waited for so many of them goes on by itself.
    ALONE_AFTER = 3,
};

// By itself, so that nothing of the request is stored.
static void push_no_key(struct seg *s)
{
    for (struct push_item *it = s->first; it; it = it->next) {
        struct op *op = &it->op->op;
        if (op->whole)
            fault_set(&op->why, QE_NO_KEY, "queue \"%.*s\": %s", (int)s->lane->queue->name_len,
                      s->lane->queue->name, err_text(QE_NO_KEY));
        op->alone = op->whole = true;
    }
}

static int push_read_reply(struct broker *b, struct push_flight *f,
                           const struct pg_reply *reply);
static void push_result_apply(struct broker *b, struct push_flight *f, int status,
                              const struct fault *why);

void push_result(struct broker *b, struct push_flight *f, int status,
                 const struct pg_reply *reply)
{
    struct fault why;

    if (status == 0) {
        status = push_read_reply(b, f, reply);
        fault_set(&why, status != 0 ? status : QE_INTERNAL, "%s",
                  err_text(status != 0 ? status : QE_INTERNAL));
    } else {
        pg_reply_fault(&why, status, reply);
        log_debug("push.failed", "status=%s detail=\"%s\"", err_name(status), why.text);
    }
    if (status != 0 && pg_reply_is_locked(reply)) {
        for (unsigned i = 0; i < f->segs.n; i++)
            lane_suspect(b, f->segs.at[i].lane);
        for (unsigned i = 0; i < f->n_later; i++)
            lane_suspect(b, f->later[i]->lane);
    }
    push_result_apply(b, f, status, &why);
}

static void read_refusal(struct broker *b, struct push_flight *f, struct seg *s,
                         const struct pg_reply *reply, unsigned row)
{
    switch (pg_reply_i16(reply, row, PUSH_COL_STATUS)) {
    case SEG_DUPLICATES: {
        unsigned pos = (unsigned)pg_reply_i32(reply, row, PUSH_COL_POS);
        if (pos >= s->count || pg_reply_is_null(reply, row, PUSH_COL_DUP_ID))
            break;
        struct push_item *it = seg_item(s, pos);
        // Our own id, sent again because the first answer was lost, is no duplicate.
        it->status = it->op->op.unknown && !it->txid.ptr ? PUSH_QUEUED : PUSH_DUPLICATE;
        memcpy(it->message_id, pg_reply_uuid(reply, row, PUSH_COL_DUP_ID), 16);
        memcpy(it->partition_id, s->lane_id, 16);
        counter_add(&b->stats.duplicates, 1);
        // Perhaps stored by an earlier try whose answer was lost: no consumer was woken.
        s->untold = s->untold || it->op->op.unknown || it->op->replay;
        break;
    }
    case SEG_LANE_GONE:
        seg_lane_gone(b, s);
        lane_resolve(b, s->lane);
        break;
    case SEG_QUEUE_FULL: // reported only for whole requests: the first is the only one
        fault_set(&STAILQ_FIRST(&f->ops)->why, QE_QUEUE_FULL, "queue \"%.*s\" is full",
                  (int)s->lane->queue->name_len, s->lane->queue->name);
        break;
    case SEG_LANE_LIMITED:
        s->lane->limited = true;
        for (struct push_item *it = s->first; it; it = it->next)
            it->op->op.alone = it->op->op.whole = true;
        break;
    case SEG_LANE_SEALED:
        queue_sealed(s->lane->queue);
        break;
    case SEG_NO_KEY:
        push_no_key(s);
        break;
    default: // SEG_DEFERRED: sent again
        break;
    }
}

static int push_read_reply(struct broker *b, struct push_flight *f,
                           const struct pg_reply *reply)
{
    unsigned n_rows = pg_reply_rows(reply), seg = 0;
    bool *refused = mem_new_array(bool, f->segs.n);
    int rc = 0;

    for (unsigned row = 0; row < n_rows; row++) {
        if (pg_reply_i16(reply, row, PUSH_COL_STATUS) == SEG_STORED ||
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
        if (pg_reply_i16(reply, row, PUSH_COL_STATUS) != SEG_STORED ||
            mixed_is_later(f, reply, row))
            continue;
        while (seg < f->segs.n && refused[seg])
            seg++;
        struct seg *s = &f->segs.at[seg];
        if (seg == f->segs.n || s->num != pg_reply_i64(reply, row, PUSH_COL_LANE) ||
            pg_reply_is_null(reply, row, PUSH_COL_CREATED_AT)) {
            rc = QE_PG_SHAPE;
            break;
        }
        if (s->lane->num == s->num)
            s->lane->last_seq = pg_reply_i64(reply, row, PUSH_COL_FIRST_SEQ);
        seg_stored(s, pg_reply_unix_us(reply, row, PUSH_COL_CREATED_AT));
        seg++;
    }
    free(refused);
    return rc;
}

// Items that were the same as an earlier one share its fate.
static void push_resolve_repeated(struct push_op *push)
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

// One that was stored in part has made progress: a request may wait for many locks in turn.
static bool push_goes_again(struct push_op *push, int status, bool progress)
{
    if (push->op.why.code != 0 || (!progress && push->op.tries++ >= MAX_TRIES))
        return false;
    return status == 0 || is_worth_retry(status);
}

// How many items are in that state yet; those that were and are not any more are counted as
// done.
static unsigned count_still(struct broker *b, const struct push_op *push,
                            enum push_status state, unsigned before)
{
    unsigned n = 0;

    for (unsigned i = 0; i < push->n_items; i++)
        n += push->items[i].status == state;
    counter_add(&b->stats.items[OP_PUSH], before - n);
    return n;
}

static void push_result_apply(struct broker *b, struct push_flight *f, int status,
                              const struct fault *why)
{
    struct op_list again = STAILQ_HEAD_INITIALIZER(again);
    // One bad request spoiled the call for all: send each by itself, so that only the guilty
    // fails.
    bool scatter = (status == QE_PG_DATA || status == QE_PG_FAILED) && f->n_ops > 1;

    // Requests that waited for these lanes follow the ones that are sent again, which are put
    // in front of them below.
    for (unsigned i = 0; i < f->segs.n; i++) {
        f->segs.at[i].lane->pushing = false;
        lane_unpark(b, f->segs.at[i].lane);
    }
    // Before any of them is finished: the item that another repeats may go with its request.
    struct op *op;
    STAILQ_FOREACH (op, &f->ops, link)
        push_resolve_repeated(container_of(op, struct push_op, op));

    while ((op = STAILQ_FIRST(&f->ops))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&f->ops, link);
        push_landed(b, push);
        unsigned before = push->n_pending;
        push->n_pending = count_still(b, push, PUSH_PENDING, before);
        if (push->n_later > 0)
            push->n_later = count_still(b, push, PUSH_LATER, push->n_later);
        op->alone = op->alone || scatter || (status == 0 && op->tries >= ALONE_AFTER);
        op->unknown = op->unknown || status == QE_PG_GONE;
        if (push->n_pending == 0) {
            queue_tally(b, push->items[0].lane->queue, true)->push_requests++;
            if (push->n_later > 0)
                schedule_add(b, push);
            else
                push_finish(b, push, 0);
        } else if (scatter || push_goes_again(push, status, push->n_pending < before)) {
            counter_add(&b->stats.retried, 1);
            STAILQ_INSERT_TAIL(&again, op, link);
            b->ops[OP_PUSH].n_requests++;
            b->ops[OP_PUSH].n_items += push->n_pending;
        } else if (push_may_buffer(b, push, status)) {
            push_divert(b, push);
        } else {
            if (op->why.code == 0)
                op->why = *why;
            push_finish(b, push, op->why.code);
        }
    }
    // In front, or they would be overtaken.
    STAILQ_CONCAT(&again, &b->ops[OP_PUSH].queue);
    STAILQ_CONCAT(&b->ops[OP_PUSH].queue, &again);

    struct lane *told = NULL;
    for (unsigned i = 0; i < f->segs.n; i++) {
        const struct seg *s = &f->segs.at[i];
        if (s->stored)
            queue_tally(b, s->lane->queue, true)->push_messages += s->count;
        else if (!s->untold && status != QE_PG_GONE) // which may have been stored
            continue;
        if (s->lane != told) {
            told = s->lane;
            notify_lane(b, told);
        }
    }
    feed_active(b);
}
