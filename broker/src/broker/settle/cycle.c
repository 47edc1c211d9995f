// Cycles of streams: state, sink pushes and source acknowledgement, each cycle one call.
//
//      cycle_arrive ──► cycle_queue ──► cycle_launch ──► on_cycle_done ──► finish
//                     ▲                         │
//                     └── duplicates taken out, ┘
//                         a lane renewed
//
// A cycle that gives its lease back is protected by it: the same request again finds the lease
// gone.  Any other leaves a receipt in the database, by which a repetition is recognised
// and answered as the first time (broker/sql/streams/stream_cycle.sql).
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "broker/segments/segs.h"
#include "db/sql.gen.h"
#include "segment/codec.h"

enum { MAX_TRIES = 20 };
// Of an item in a receipt: key, lane, lane's number, message of a duplicate, segment, position,
// status.
enum { RECEIPT_BYTES = 16 + 16 + 8 + 16 + 4 + 4 + 4 };
static const uint32_t no_seg = UINT32_MAX;

struct cycle_flight {
    struct cycle_op *cycle;
    struct segs segs;
};

static void cycle_arrive(struct mailbox_item *item);
static void cycle_launch(struct broker *b, struct cycle_op *cycle);
static void put_receipt(struct pg_params *p, const struct cycle_flight *f);
static void on_cycle_done(struct pg_call *pg, int status, const struct pg_reply *reply);
static const char *cycle_find_fault(const struct cycle_flight *f, const struct pg_reply *reply);
static bool cycle_read_reply(struct broker *b, struct cycle_flight *f,
                             const struct pg_reply *reply);
static bool read_receipt(struct cycle_op *cycle, const struct pg_reply *reply, unsigned row);

static void cycle_complete(struct op *op)
{
    struct cycle_op *cycle = container_of(op, struct cycle_op, op);

    cycle->done(cycle, op->status);
}

void broker_cycle(struct broker *b, struct cycle_op *cycle)
{
    op_begin(b, &cycle->op, OP_CYCLE, cycle_complete);
    cycle->committed = cycle->released = false;
    cycle->error = cycle->source = SPAN_NONE;
    op_go(b, cycle->n_items > 0 ? house_home(b->house, cycle->items[0].queue) : b, &cycle->op,
          cycle_arrive);
}

static void cycle_arrive(struct mailbox_item *item)
{
    struct cycle_op *cycle = container_of(item, struct cycle_op, op.mail);
    struct broker *b = item->owner;
    const struct push_item *last = NULL;

    if (!op_admit(b, &cycle->op))
        return;
    for (unsigned i = 0; i < cycle->n_items; i++) {
        struct push_item *it = &cycle->items[i];
        if (last && span_eq(it->queue, last->queue) && span_eq(it->partition, last->partition))
            it->lane = last->lane;
        else
            it->lane = lane_get(b, queue_get(b, it->queue), it->partition);
        last = it;
        it->lane->pins++;
        it->status = PUSH_PENDING;
        it->op = NULL;
        lane_resolve(b, it->lane);
    }
    STAILQ_INSERT_TAIL(&b->ops[OP_CYCLE].queue, &cycle->op, link);
    b->ops[OP_CYCLE].n_requests++;
    broker_wake(b);
}

// See lane_is_missing().
static bool cycle_is_resolved(const struct cycle_op *cycle, int status)
{
    for (unsigned i = 0; i < cycle->n_items; i++)
        if (lane_is_missing(cycle->items[i].lane, status))
            return false;
    return true;
}

void cycles_flush(struct broker *b)
{
    struct op_list stay = STAILQ_HEAD_INITIALIZER(stay);
    struct op *op;

    while (b->ops[OP_CYCLE].gate.n_flights < b->conf.cycle.max_flights &&
           (op = STAILQ_FIRST(&b->ops[OP_CYCLE].queue))) {
        struct cycle_op *cycle = container_of(op, struct cycle_op, op);
        STAILQ_REMOVE_HEAD(&b->ops[OP_CYCLE].queue, link);
        struct lane *locked = lanes_find_locked(cycle->items, cycle->n_items);
        if (locked) {
            b->ops[OP_CYCLE].n_requests--;
            lane_park(b, locked, op, &b->ops[OP_CYCLE].queue);
        } else if (lanes_are_known(b, cycle->items, cycle->n_items)) {
            b->ops[OP_CYCLE].n_requests--;
            cycle_launch(b, cycle);
        } else {
            STAILQ_INSERT_TAIL(&stay, op, link);
        }
    }
    STAILQ_CONCAT(&stay, &b->ops[OP_CYCLE].queue);
    STAILQ_CONCAT(&b->ops[OP_CYCLE].queue, &stay);
}

void cycles_fail_unresolved(struct broker *b, const struct fault *why)
{
    struct op_list keep = STAILQ_HEAD_INITIALIZER(keep);
    struct op *op;

    while ((op = STAILQ_FIRST(&b->ops[OP_CYCLE].queue))) {
        struct cycle_op *cycle = container_of(op, struct cycle_op, op);
        STAILQ_REMOVE_HEAD(&b->ops[OP_CYCLE].queue, link);
        if (cycle_is_resolved(cycle, why->code)) {
            STAILQ_INSERT_TAIL(&keep, op, link);
            continue;
        }
        b->ops[OP_CYCLE].n_requests--;
        op->why = *why;
        cycle_finish(b, cycle, why->code);
    }
    STAILQ_CONCAT(&b->ops[OP_CYCLE].queue, &keep);
}

// ---- there ----

static void cycle_free_flight(struct cycle_flight *f)
{
    segs_free(&f->segs);
    free(f);
}

// A second one would find the lease gone.
static bool is_guarded(const struct cycle_op *cycle)
{
    return cycle->ack && cycle->ack->has_lease && (cycle->ack->release || cycle->ack->dead);
}

static void put_states(struct pg_params *p, const struct cycle_op *cycle)
{
    pg_begin_array(p, PG_TEXT);
    for (unsigned i = 0; i < cycle->n_states; i++)
        pg_put_text(p, cycle->states[i].key);
    pg_end_array(p);
    pg_begin_array(p, PG_TEXT);
    for (unsigned i = 0; i < cycle->n_states; i++) {
        if (cycle->states[i].value.ptr)
            pg_put_text(p, cycle->states[i].value);
        else
            pg_put_null(p);
    }
    pg_end_array(p);
}

static void cycle_put_ack(struct pg_params *p, const struct cycle_ack *ack)
{
    if (ack)
        pg_param_uuid(p, ack->key);
    else
        pg_param_null(p, PG_UUID);
    if (ack && ack->has_lease)
        pg_param_uuid(p, ack->lease);
    else
        pg_param_null(p, PG_UUID);
    pg_param_i32(p, ack ? ack->count : 0);
    pg_param_bool(p, ack && ack->dead);
    if (ack && ack->error.ptr)
        pg_param_text(p, ack->error);
    else
        pg_param_null(p, PG_TEXT);
    pg_param_bool(p, ack && ack->release);
}

static void cycle_launch(struct broker *b, struct cycle_op *cycle)
{
    struct cycle_flight *f = mem_new(struct cycle_flight);

    f->cycle = cycle;
    for (unsigned i = 0; i < cycle->n_items; i++)
        if (cycle->items[i].status == PUSH_PENDING)
            segs_add(&f->segs, &cycle->items[i]);
    segs_cut(&f->segs, cycle->n_items > 0 ? cycle->n_items : 1);

    struct call *c = call_new(b, &pg_stmt_stream_cycle, f);
    pg_param_i32(&c->params, b->house->origin);
    pg_param_uuid(&c->params, cycle->query);
    pg_param_uuid(&c->params, cycle->partition);
    pg_param_text(&c->params, cycle->group);
    if (is_guarded(cycle)) {
        pg_param_null(&c->params, PG_BYTEA);
        pg_param_null(&c->params, PG_BYTEA);
    } else {
        pg_param_bytea(&c->params, (span){(const char *)cycle->hash, sizeof cycle->hash});
        put_receipt(&c->params, f);
    }
    put_states(&c->params, cycle);
    segs_fill(&f->segs, &c->params);
    cycle_put_ack(&c->params, cycle->ack);
    gate_left(&b->ops[OP_CYCLE].gate);
    histogram_add(&b->stats.batch_requests[OP_CYCLE], 1);
    histogram_add(&b->stats.batch_items[OP_CYCLE], cycle->n_items + cycle->n_states);
    call_send(c, on_cycle_done);
}

// ---- receipts ----

// Where an item was put; of one that repeats another, where that one was.
struct place {
    uint32_t seg, pos;
};

static void put_receipt(struct pg_params *p, const struct cycle_flight *f)
{
    const struct cycle_op *cycle = f->cycle;
    struct place *places = mem_new_array(struct place, cycle->n_items > 0 ? cycle->n_items : 1);
    struct buf out = {0};

    for (unsigned si = 0; si < f->segs.n; si++) {
        const struct push_item *it = f->segs.at[si].first;
        for (unsigned pos = 0; pos < f->segs.at[si].count; pos++, it = it->next)
            places[it - cycle->items] = (struct place){si, pos};
    }
    for (unsigned i = 0; i < cycle->n_items; i++) {
        const struct push_item *it = &cycle->items[i];
        bool pending = it->status == PUSH_PENDING;
        struct place at = !pending   ? (struct place){no_seg, 0}
                          : it->same ? places[it->same - cycle->items]
                                     : places[i];
        buf_put_bytes(&out, it->key, 16);
        buf_put_bytes(&out, it->lane->id, 16);
        buf_put_be64(&out, (uint64_t)it->lane->num);
        buf_put_bytes(&out, it->message_id, 16);
        buf_put_be32(&out, at.seg);
        buf_put_be32(&out, at.pos);
        buf_put_be32(&out, pending && !it->same ? PUSH_QUEUED : PUSH_DUPLICATE);
    }
    pg_param_bytea(p, (span){out.ptr ? out.ptr : "", out.len});
    buf_free(&out);
    free(places);
}

static uint64_t read_big_endian(const uint8_t *at, unsigned n)
{
    uint64_t v = 0;

    while (n-- > 0)
        v = v << 8 | *at++;
    return v;
}

// The rows behind it give the times of the segments, in order.
static bool read_receipt(struct cycle_op *cycle, const struct pg_reply *reply, unsigned row)
{
    span items = pg_reply_bytes(reply, row, STREAM_CYCLE_COL_ITEMS);
    unsigned n_rows = pg_reply_rows(reply);

    if (items.len != (size_t)cycle->n_items * RECEIPT_BYTES)
        return false;
    for (unsigned i = 0; i < cycle->n_items; i++) {
        const uint8_t *at = (const uint8_t *)items.ptr + (size_t)i * RECEIPT_BYTES;
        struct push_item *it = &cycle->items[i];
        uint32_t seg = (uint32_t)read_big_endian(at + 56, 4),
                 pos = (uint32_t)read_big_endian(at + 60, 4);
        memcpy(it->key, at, 16);
        memcpy(it->partition_id, at + 16, 16);
        memcpy(it->message_id, at + 40, 16);
        uint64_t state = read_big_endian(at + 64, 4);
        if (state != PUSH_QUEUED && state != PUSH_DUPLICATE)
            return false;
        it->status = (enum push_status)state;
        if (seg == no_seg)
            continue;
        if (seg >= n_rows - row - 1 ||
            pg_reply_i16(reply, row + 1 + seg, STREAM_CYCLE_COL_KIND) != CYCLE_STORED ||
            pg_reply_is_null(reply, row + 1 + seg, STREAM_CYCLE_COL_CREATED_AT))
            return false;
        segment_message_id(pg_reply_unix_us(reply, row + 1 + seg, STREAM_CYCLE_COL_CREATED_AT),
                           pos, (int64_t)read_big_endian(at + 32, 8), it->message_id);
    }
    return true;
}

// ---- and back ----

static void on_cycle_done(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct cycle_flight *f = c->what;
    struct cycle_op *cycle = f->cycle;
    uint64_t now = clock_mono_us();
    bool again = false;

    gate_landed(&b->ops[OP_CYCLE].gate, 1, now - c->left_us, now);
    histogram_add(&b->stats.batch_us[OP_CYCLE], now - c->left_us);
    const char *fault = status == 0 ? cycle_find_fault(f, reply) : NULL;
    if (fault)
        status = call_unexpected(c, fault);
    if (status == 0)
        again = cycle_read_reply(b, f, reply);
    else if (status == QE_PG_RETRY) // rolled back for certain; a lost connection is not
        again = true;
    if (again && cycle->op.tries++ >= MAX_TRIES) {
        again = false;
        status = QE_PG_RETRY;
    }
    if (again && status != 0 && pg_reply_is_locked(reply))
        items_suspect(b, cycle->items, cycle->n_items);
    if (again) {
        for (unsigned i = 0; i < cycle->n_items; i++)
            lane_resolve(b, cycle->items[i].lane);
        STAILQ_INSERT_HEAD(&b->ops[OP_CYCLE].queue, &cycle->op, link);
        b->ops[OP_CYCLE].n_requests++;
    } else {
        if (status != 0)
            pg_reply_fault(&cycle->op.why, status, reply);
        cycle_finish(b, cycle, status);
    }
    cycle_free_flight(f);
    call_free(c);
    broker_wake(b);
}

static void read_duplicate(struct cycle_flight *f, const struct pg_reply *reply, unsigned row)
{
    unsigned seg = (unsigned)pg_reply_i32(reply, row, STREAM_CYCLE_COL_SEG) - 1;
    unsigned pos = (unsigned)pg_reply_i32(reply, row, STREAM_CYCLE_COL_POS);

    if (seg >= f->segs.n || pos >= f->segs.at[seg].count ||
        pg_reply_is_null(reply, row, STREAM_CYCLE_COL_DUP_ID))
        return;
    struct push_item *it = seg_item(&f->segs.at[seg], pos);
    it->status = PUSH_DUPLICATE;
    memcpy(it->message_id, pg_reply_uuid(reply, row, STREAM_CYCLE_COL_DUP_ID), 16);
    memcpy(it->partition_id, f->segs.at[seg].lane_id, 16);
}

// true: a lane was gone and must be resolved again, or turned out to be sealed.
static bool cycle_read_failure(struct broker *b, struct cycle_flight *f,
                               const struct pg_reply *reply, unsigned row)
{
    unsigned seg = (unsigned)pg_reply_i32(reply, row, STREAM_CYCLE_COL_SEG) - 1;

    if (pg_reply_i16(reply, row, STREAM_CYCLE_COL_STATUS) == SEG_LANE_GONE && seg < f->segs.n) {
        seg_lane_gone(b, &f->segs.at[seg]);
        return true;
    }
    if (pg_reply_i16(reply, row, STREAM_CYCLE_COL_STATUS) == SEG_LANE_SEALED &&
        seg < f->segs.n) {
        queue_sealed(f->segs.at[seg].lane->queue);
        return true;
    }
    if (!f->cycle->error.ptr) // the first failure is reported
        f->cycle->error =
            arena_copy(f->cycle->arena, pg_reply_bytes(reply, row, STREAM_CYCLE_COL_ERROR));
    return false;
}

static void read_ack(struct broker *b, struct cycle_op *cycle, const struct pg_reply *reply,
                     unsigned row)
{
    cycle->released = pg_reply_bool(reply, row, STREAM_CYCLE_COL_RELEASED);
    if (cycle->released && !pg_reply_is_null(reply, row, STREAM_CYCLE_COL_CONSUMER))
        notify_released(b, cycle->source, pg_reply_i64(reply, row, STREAM_CYCLE_COL_CONSUMER),
                        pg_reply_bool(reply, row, STREAM_CYCLE_COL_MORE));
}

// A repeated item gets the result of the first.
static void cycle_resolve_repeated(struct cycle_op *cycle)
{
    for (unsigned i = 0; i < cycle->n_items; i++) {
        struct push_item *it = &cycle->items[i];
        if (it->status != PUSH_PENDING || !it->same || it->same->status == PUSH_PENDING)
            continue;
        it->status = PUSH_DUPLICATE;
        memcpy(it->message_id, it->same->message_id, 16);
        memcpy(it->partition_id, it->same->partition_id, 16);
    }
}

// A cycle that was committed now has stored each of its segments.  Returns what is wrong, or
// NULL.
static const char *cycle_find_fault(const struct cycle_flight *f, const struct pg_reply *reply)
{
    unsigned n_stored = 0;
    bool other = false;

    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        int16_t kind = pg_reply_i16(reply, row, STREAM_CYCLE_COL_KIND);
        if (kind < CYCLE_STORED || kind > CYCLE_SOURCE)
            return "a row of an unknown kind";
        if (kind == CYCLE_STORED && pg_reply_is_null(reply, row, STREAM_CYCLE_COL_CREATED_AT))
            return "a segment without its time";
        n_stored += kind == CYCLE_STORED;
        other =
            other || kind == CYCLE_FAILED || kind == CYCLE_DUPLICATE || kind == CYCLE_REPEATED;
    }
    return other || n_stored == f->segs.n ? NULL : "another number of segments than was sent";
}

// true: it goes again.
static bool cycle_read_reply(struct broker *b, struct cycle_flight *f,
                             const struct pg_reply *reply)
{
    struct cycle_op *cycle = f->cycle;
    unsigned seg = 0;
    bool failed = false, again = false, repeated = false;

    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        int16_t kind = pg_reply_i16(reply, row, STREAM_CYCLE_COL_KIND);
        if (kind == CYCLE_DUPLICATE)
            read_duplicate(f, reply, row);
        else if (kind == CYCLE_FAILED)
            again = cycle_read_failure(b, f, reply, row) || again;
        again = again || kind == CYCLE_DUPLICATE;
        failed = failed || kind == CYCLE_FAILED || kind == CYCLE_DUPLICATE;
        if (kind == CYCLE_REPEATED) {
            repeated = true;
            if (!read_receipt(cycle, reply, row)) {
                cycle->error = SPAN("the receipt of the first try is damaged");
                failed = true;
            }
        }
    }
    if (again && !cycle->error.ptr)
        return true;
    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        switch (pg_reply_i16(reply, row, STREAM_CYCLE_COL_KIND)) {
        case CYCLE_SOURCE:
            if (!pg_reply_is_null(reply, row, STREAM_CYCLE_COL_QUEUE_NAME))
                cycle->source = arena_copy(
                    cycle->arena, pg_reply_bytes(reply, row, STREAM_CYCLE_COL_QUEUE_NAME));
            break;
        case CYCLE_STORED:
            if (!repeated && seg < f->segs.n)
                seg_stored(&f->segs.at[seg++],
                           pg_reply_unix_us(reply, row, STREAM_CYCLE_COL_CREATED_AT));
            break;
        case CYCLE_ACKED:
            if (!failed)
                read_ack(b, cycle, reply, row);
            break;
        default:
            break;
        }
    }
    cycle_resolve_repeated(cycle);
    cycle->committed = !failed;
    if (failed)
        return false;
    // Also of a cycle that an earlier try had committed: its answer was lost, so no consumer
    // was woken.
    for (unsigned i = 0; i < f->segs.n; i++)
        if (i == 0 || f->segs.at[i].lane != f->segs.at[i - 1].lane)
            notify_lane(b, f->segs.at[i].lane);
    feed_active(b);
    return false;
}

void cycle_finish(struct broker *b, struct cycle_op *cycle, int status)
{
    for (unsigned i = 0; i < cycle->n_items; i++)
        cycle->items[i].lane->pins--;
    if (status == 0 && cycle->committed)
        counter_add(&b->stats.items[OP_CYCLE], cycle->n_items + cycle->n_states);
    op_finish(b, &cycle->op, status);
}
