// Pushes that do not go to the database now: they go to disk, or wait for records on disk.
//
//      under maintenance, or the database is away ──► the file buffer, answered "buffered"
//      records of the lane wait in the buffer     ──► wait for a moment, so that the replay
//                                                     can end; then the file buffer
//
// So the messages of a lane are stored in the order in which they were answered, on either
// path.  Nothing here runs while the buffer is empty and the database is available.
#include "broker/push/push_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "crypt/sealer.h"
#include "spool/spool.h"

// Delaying pushes slows down the producers, so that the buffer empties faster than it fills.
enum { HOLD_US = 500 * 1000, LOOK_US = 5 * 1000 };
enum { MAX_DEPTH = 50 };
enum verdict { GO, HOLD, DIVERT };

struct diverted {
    struct spool_write write;
    struct broker *broker;
    struct push_op *push;
    struct buf sealed; // payloads of the records
    struct spool_record records[];
};

static enum verdict buffer_decide(struct broker *b, const struct push_op *push);
static bool is_behind(struct broker *b, const struct push_op *push, unsigned depth);
static void on_buffered(struct mailbox_item *item);
static void on_buffer_look(struct due *d);

bool pushes_may_need_buffer(const struct broker *b)
{
    const struct house *h = b->house;

    return h->spool &&
           (b->away || b->stalled_us != 0 || spool_pending(h->spool) > 0 ||
            (atomic_load(&h->flags) & MAINTENANCE_PUSH) || !atomic_load(&h->flags_known));
}

static bool buffer_is_open(const struct push_item *it)
{
    return it->status == PUSH_PENDING || it->status == PUSH_LATER;
}

void pushes_buffer(struct broker *b)
{
    struct op_list keep = STAILQ_HEAD_INITIALIZER(keep);
    struct op *op;

    b->n_replay_waits = 0;
    b->push_pass++;
    if (b->away || b->stalled_us != 0 || (atomic_load(&b->house->flags) & MAINTENANCE_PUSH))
        pushes_unpark(b); // they go to the buffer
    while ((op = STAILQ_FIRST(&b->ops[OP_PUSH].queue))) {
        struct push_op *push = container_of(op, struct push_op, op);
        STAILQ_REMOVE_HEAD(&b->ops[OP_PUSH].queue, link);
        if (push->replay &&
            b->stalled_us != 0) { // what is pushed now goes behind it into the buffer
            push->waits_replay = true;
            b->n_replay_waits++;
            STAILQ_INSERT_TAIL(&keep, op, link);
            continue;
        }
        enum verdict verdict = push->replay ? GO : buffer_decide(b, push);
        if (verdict == DIVERT && is_behind(b, push, MAX_DEPTH))
            verdict = HOLD;
        if (verdict == DIVERT) {
            b->ops[OP_PUSH].n_requests--;
            b->ops[OP_PUSH].n_items -= push->n_pending;
            push_buffer(b, push);
            continue;
        }
        push->waits_replay = verdict == HOLD;
        b->n_replay_waits += push->waits_replay;
        for (unsigned i = 0; i < push->n_items; i++) {
            lane_resolve(b, push->items[i].lane);
            if (!push->replay && buffer_is_open(&push->items[i]))
                push->items[i].lane->blocked_pass = b->push_pass;
        }
        STAILQ_INSERT_TAIL(&keep, op, link);
    }
    STAILQ_CONCAT(&b->ops[OP_PUSH].queue, &keep);
    if (b->n_replay_waits > 0)
        due_set(&b->due, &b->replay_wait_due, clock_mono_us() + LOOK_US, on_buffer_look);
    if (b->n_unresolved > 0)
        broker_wake(b);
}

static enum verdict buffer_decide(struct broker *b, const struct push_op *push)
{
    struct house *h = b->house;

    if (push->diverted || b->away || b->stalled_us != 0 ||
        (atomic_load(&h->flags) & MAINTENANCE_PUSH))
        return DIVERT;
    if (!atomic_load(&h->flags_known))
        return HOLD; // the database is about to answer, or to be away
    if (spool_pending(h->spool) == 0)
        return GO;
    for (unsigned i = 0; i < push->n_items; i++)
        if (spool_holds(h->spool, push->items[i].queue, push->items[i].partition))
            return clock_mono_us() - push->op.since_us < HOLD_US ? HOLD : DIVERT;
    return GO;
}

// An earlier request of one of its lanes is on its way to the database, or is still here: it
// may have to be buffered first.  Earlier ones that wait for a locked lane are buffered here,
// at most `depth` of them that wait for each other.
static bool is_behind(struct broker *b, const struct push_op *push, unsigned depth)
{
    const struct lane *last = NULL; // neighbours usually share it

    for (unsigned i = 0; i < push->n_items; i++) {
        struct lane *lane = push->items[i].lane;
        if (!buffer_is_open(&push->items[i]) || lane == last)
            continue;
        last = lane;
        if (lane->pushing || lane->n_behind > 0 || lane->blocked_pass == b->push_pass)
            return true;
        struct push_op *earlier;
        struct lane *at;
        while ((earlier = lane_parked_push(b, lane, push->op.arrival, &at))) {
            if (depth == 0 || earlier->replay || is_behind(b, earlier, depth - 1))
                return true;
            lane_take_parked(b, at, &earlier->op);
            push_buffer(b, earlier);
        }
    }
    return false;
}

static void on_buffer_look(struct due *d)
{
    broker_wake(container_of(d, struct broker, replay_wait_due));
}

bool push_may_buffer(const struct broker *b, const struct push_op *push, int status)
{
    return b->house->spool && !push->replay && push->op.why.code == 0 && is_outage(status);
}

// It was in flight without its part for a locked lane, or waited for a number: those that wait
// at the locked lane may have come before.
void push_divert(struct broker *b, struct push_op *push)
{
    if (b->closing) { // nobody looks into the queue any more
        push_buffer(b, push);
        return;
    }
    push->diverted = push->waits_replay = true;
    b->n_replay_waits++;
    push_again(b, push);
    b->unsorted = true;
    broker_wake(b);
}

// A delay counts from now, not from when the database is back.
static int64_t due_of(const struct broker *b, const struct push_item *it)
{
    return it->when == PUSH_NOW  ? 0
           : it->when == PUSH_AT ? it->when_us
                                 : broker_pg_us(b) + it->when_us;
}

// With a key no payload reaches the disk in clear: during an outage it is unknown which queues
// want encryption. False: there is no memory.
static bool seal_records(struct broker *b, struct diverted *d, unsigned n)
{
    bool bound = b->conf.must_seal; // as in a segment: seal_name() in segs.c
    size_t room = 0;

    if (!b->sealer)
        return true;
    for (unsigned i = 0; i < n; i++)
        room += sealer_size(b->sealer, d->records[i].payload.len, bound);
    if (!buf_reserve(&d->sealed, room)) // the spans below point into it: it must not move
        return false;
    for (unsigned i = 0; i < n; i++) {
        size_t at = d->sealed.len;
        sealer_seal(b->sealer, &d->sealed, d->records[i].payload,
                    bound ? d->records[i].key : NULL);
        d->records[i].payload = (span){d->sealed.ptr + at, d->sealed.len - at};
        d->records[i].sealed = true;
    }
    return !d->sealed.failed;
}

static void diverted_free(struct diverted *d)
{
    buf_free(&d->sealed);
    free(d);
}

void push_buffer(struct broker *b, struct push_op *push)
{
    struct diverted *d = mem_zalloc(1, sizeof *d + push->n_items * sizeof(struct spool_record));
    unsigned n = 0;

    for (unsigned i = 0; i < push->n_items; i++) {
        const struct push_item *it = &push->items[i];
        if (!buffer_is_open(it))
            continue;
        struct spool_record *r = &d->records[n++];
        *r = (struct spool_record){.queue = it->queue,
                                   .partition = it->partition,
                                   .txid = it->txid_is_key ? SPAN_NONE : it->txid,
                                   .producer = it->producer,
                                   .payload = it->payload,
                                   .meta = it->meta,
                                   .due_us = due_of(b, it),
                                   .has_trace = it->has_trace};
        memcpy(r->key, it->key, 16);
        if (it->has_trace)
            memcpy(r->trace, it->trace, 16);
    }
    push->waits_replay = false;
    if (!seal_records(b, d, n)) {
        diverted_free(d);
        fault_set(&push->op.why, QE_NO_MEMORY, "%s", err_text(QE_NO_MEMORY));
        push_finish(b, push, QE_NO_MEMORY);
        return;
    }
    d->broker = b;
    d->push = push;
    d->write = (struct spool_write){.records = d->records, .n = n, .to = &b->mailbox};
    d->write.mail = (struct mailbox_item){.deliver = on_buffered, .owner = d};
    spool_append(b->house->spool, &d->write);
}

static void on_buffered(struct mailbox_item *item)
{
    struct diverted *d = item->owner;
    struct broker *b = d->broker;
    struct push_op *push = d->push;
    int status = d->write.status;

    if (status == 0) {
        for (unsigned i = 0; i < push->n_items; i++)
            if (buffer_is_open(&push->items[i]))
                push->items[i].status = PUSH_BUFFERED;
        counter_add(&b->stats.items[OP_PUSH], d->write.n);
        counter_add(&b->stats.buffered, d->write.n);
        replay_kick(b->house);
    } else {
        fault_set(&push->op.why, status, "%s", err_text(status));
    }
    diverted_free(d);
    push_finish(b, push, status);
}
