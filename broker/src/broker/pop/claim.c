// Claims: the pops that have chosen their lanes go to the database together.
//
// There are two calls: a hot one, for pops of one lane each of queues without special options,
// and a careful one for the rest.  The hot one refuses lanes that need the careful one.
// The careful one refuses lanes of work queues, which have a call of their own
// (work/claim_work.c).
#include "broker/pop/claim_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/settle/dead_letters.h"
#include "db/sql.gen.h"

enum { MAX_BUSY = 8 }; // 256 ms between two tries at most

enum { LONG_ANSWER = 128 << 20 };

static struct claim_flight *claim_load(struct broker *b);
static void fill_careful(struct pg_params *p, struct claim_flight *f);
static void on_claimed(struct pg_call *pg, int status, const struct pg_reply *reply);
static const char *claim_find_fault(const struct claim_flight *f, const struct pg_reply *reply);
static unsigned read_pop(struct broker *b, struct claim_flight *f, struct pop_op *pop,
                         const struct pg_reply *reply, unsigned row, unsigned *target);
static void settle_consumer(struct broker *b, struct consumer *c, const struct pg_reply *reply,
                            unsigned row, uint64_t left_us);
static void claim_fail(struct broker *b, struct claim_flight *f, int status,
                       const struct pg_reply *reply);

void claims_flush(struct broker *b)
{
    for (;;) {
        struct op *oldest = STAILQ_FIRST(&b->ops[OP_POP].queue);
        struct gate_queue q = {b->ops[OP_POP].n_requests, b->ops[OP_POP].n_requests,
                               oldest ? oldest->since_us : 0};
        if (!oldest || !gate_is_open(&b->ops[OP_POP].gate, q, clock_mono_us()))
            return;
        if (pop_of(oldest)->targets->working) {
            work_claim(b);
            continue;
        }
        struct claim_flight *f = claim_load(b);
        struct call *c = call_new(b, f->careful ? &pg_stmt_claim_careful : &pg_stmt_claim, f);
        if (f->careful)
            fill_careful(&c->params, f);
        else
            claim_fill(&c->params, f);
        claim_send(c, f->n_pops, on_claimed);
    }
}

static enum claim_kind claim_kind_of(const struct pop_op *pop)
{
    if (pop->targets->working)
        return CLAIM_OF_WORK;
    return pop->n_targets > 1 || pop->targets->lane->careful || pop->targets->careful_once
               ? CLAIM_CAREFULLY
               : CLAIM_FAST;
}

unsigned claim_take_pops(struct broker *b, enum claim_kind kind, struct op_list *pops)
{
    struct op_list stay = STAILQ_HEAD_INITIALIZER(stay), *queue = &b->ops[OP_POP].queue;
    unsigned n = 0;
    struct op *op;

    while (n < b->conf.pop.max_requests && (op = STAILQ_FIRST(queue))) {
        bool fits = claim_kind_of(pop_of(op)) == kind;
        STAILQ_REMOVE_HEAD(queue, link);
        STAILQ_INSERT_TAIL(fits ? pops : &stay, op, link);
        n += fits;
    }
    STAILQ_CONCAT(&stay, queue);
    STAILQ_CONCAT(queue, &stay);
    b->ops[OP_POP].n_requests -= n;
    return n;
}

// All of the first one's kind; the others wait for the next flight.
static struct claim_flight *claim_load(struct broker *b)
{
    struct op_list pops = STAILQ_HEAD_INITIALIZER(pops);
    enum claim_kind kind = claim_kind_of(pop_of(STAILQ_FIRST(&b->ops[OP_POP].queue)));
    unsigned n_pops = claim_take_pops(b, kind, &pops);
    struct claim_flight *f = claim_flight_new(&pops, n_pops);

    f->careful = kind == CLAIM_CAREFULLY;
    return f;
}

struct claim_flight *claim_flight_new(struct op_list *pops, unsigned n_pops)
{
    unsigned n_targets = 0;
    struct op *op;

    STAILQ_FOREACH (op, pops, link)
        n_targets += pop_of(op)->n_targets;
    struct claim_flight *f = mem_zalloc(1, sizeof *f + n_targets * sizeof(struct consumer *));
    STAILQ_INIT(&f->pops);
    STAILQ_CONCAT(&f->pops, pops);
    f->n_pops = n_pops;
    STAILQ_FOREACH (op, &f->pops, link)
        for (struct consumer *c = pop_of(op)->targets; c; c = c->next_target)
            f->targets[f->n_targets++] = c;
    return f;
}

#define FOR_TARGETS(put)                          \
    for (unsigned i = 0; i < f->n_targets; i++) { \
        struct consumer *c = f->targets[i];       \
        struct pop_op *pop = c->pop;              \
        (void)pop;                                \
        put;                                      \
    }                                             \
    pg_end_array(p)

int32_t claim_batch(const struct consumer *c, const struct pop_op *pop)
{
    return (int32_t)(c->fewer > 0 && c->fewer < pop->batch ? c->fewer : pop->batch);
}

void claim_fill(struct pg_params *p, const struct claim_flight *f)
{
    pg_begin_array(p, PG_INT8);
    FOR_TARGETS(pg_put_i64(p, c->num));
    pg_begin_array(p, PG_INT8);
    FOR_TARGETS(pg_put_i64(p, c->ver));
    pg_begin_array(p, PG_INT8);
    FOR_TARGETS(pg_put_i64(p, c->near_seq));
    pg_begin_array(p, PG_INT4);
    FOR_TARGETS(pg_put_i32(p, claim_batch(c, pop)));
    pg_begin_array(p, PG_BOOL);
    FOR_TARGETS(pg_put_bool(p, pop->auto_ack));
    pg_begin_array(p, PG_UUID);
    FOR_TARGETS(pg_put_uuid(p, pop->lease));
}

static void fill_careful(struct pg_params *p, struct claim_flight *f)
{
    int32_t number = 0;

    pg_begin_array(p, PG_INT4);
    FOR_TARGETS(number += i > 0 && f->targets[i - 1]->pop != pop; pg_put_i32(p, number));
    pg_begin_array(p, PG_INT8);
    FOR_TARGETS(pg_put_i64(p, c->num));
    pg_begin_array(p, PG_INT4);
    FOR_TARGETS(pg_put_i32(p, claim_batch(c, pop)));
    pg_begin_array(p, PG_INT4);
    FOR_TARGETS(pg_put_i32(p, (int32_t)pop->partitions));
    pg_begin_array(p, PG_BOOL);
    FOR_TARGETS(pg_put_bool(p, pop->auto_ack));
    pg_begin_array(p, PG_UUID);
    FOR_TARGETS(pg_put_uuid(p, pop->lease));
    pg_begin_array(p, PG_TEXT);
    FOR_TARGETS(pg_put_null(p)); // the lease is a UUID with the queue's lease time
    pg_begin_array(p, PG_INT4);
    FOR_TARGETS(pg_put_i32(p, 0));
}

void claim_send(struct call *c, unsigned n_pops, pg_done_cb done)
{
    gate_left(&c->broker->ops[OP_POP].gate);
    histogram_add(&c->broker->stats.batch_requests[OP_POP], n_pops);
    call_send(c, done);
}

void claim_landed(const struct call *c, unsigned n_pops)
{
    uint64_t now = clock_mono_us();

    gate_landed(&c->broker->ops[OP_POP].gate, n_pops, now - c->left_us, now);
    histogram_add(&c->broker->stats.batch_us[OP_POP], now - c->left_us);
}

static void on_claimed(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct claim_flight *f = c->what;

    f->refused = status == QE_PG_RETRY && !pg->sent;
    claim_landed(c, f->n_pops);
    claim_flight_end(c, f, status, reply);
    call_free(c);
}

void claim_flight_end(struct call *c, struct claim_flight *f, int status,
                      const struct pg_reply *reply)
{
    struct broker *b = c->broker;

    f->left_us = c->left_us;
    const char *fault = status == 0 ? claim_find_fault(f, reply) : NULL;
    if (fault)
        status = call_unexpected(c, fault);
    if (status != 0) {
        call_failed(c, status, reply);
        claim_fail(b, f, status, reply);
    } else {
        unsigned row = 0, target = 0, n_messages = 0;
        while (!STAILQ_EMPTY(&f->pops)) {
            struct pop_op *pop = pop_of(STAILQ_FIRST(&f->pops));
            STAILQ_REMOVE_HEAD(&f->pops, link);
            row = read_pop(b, f, pop, reply, row, &target);
            n_messages += pop->n_messages;
            claim_end_pop(b, pop);
        }
        histogram_add(&b->stats.batch_items[OP_POP], n_messages);
    }
    free(f);
}

// A segment of a claimed target behind the place that `from` names.
static bool is_segment(const struct pg_reply *reply, unsigned row, int64_t from)
{
    int64_t first = pg_reply_i64(reply, row, CLAIM_COL_FIRST_SEQ);

    return first >= from && first < INT64_MAX / 2 &&
           pg_reply_i32(reply, row, CLAIM_COL_COUNT) >= 0 &&
           pg_reply_unix_us(reply, row, CLAIM_COL_CREATED_AT) > 0 &&
           pg_reply_bytes(reply, row, CLAIM_COL_KEYS).ptr &&
           pg_reply_bytes(reply, row, CLAIM_COL_BODY).ptr;
}

static bool is_claim(const struct pg_reply *reply, unsigned row, const struct pop_op *pop)
{
    int64_t start = pg_reply_i64(reply, row, CLAIM_COL_START_SEQ);
    int32_t take = pg_reply_i32(reply, row, CLAIM_COL_TAKE);

    return pg_reply_uuid(reply, row, CLAIM_COL_LANE_ID) && start > 0 && start < INT64_MAX / 2 &&
           take > 0 && (uint32_t)take <= pop->batch;
}

// Each target has rows, in the order sent, and the segments of a claimed one follow each other.
// Returns what is wrong, or NULL.
static const char *claim_find_fault(const struct claim_flight *f, const struct pg_reply *reply)
{
    unsigned last = 0;
    bool claimed = false;
    int64_t next = 0;

    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        int32_t target = pg_reply_i32(reply, row, CLAIM_COL_TARGET);
        int16_t status = pg_reply_i16(reply, row, CLAIM_COL_STATUS);
        if (target < 1 || (unsigned)target > f->n_targets)
            return "a target that was not sent";
        if ((unsigned)target != last) {
            if ((unsigned)target != last + 1)
                return "targets in another order";
            if (status < CLAIM_CLAIMED || status > CLAIM_WANTS_CARE_ONCE)
                return "an unknown status";
            last = (unsigned)target;
            claimed = status == CLAIM_CLAIMED;
            next = 0;
            if (claimed && !is_claim(reply, row, f->targets[last - 1]->pop))
                return "a claim without its messages";
        }
        if (!claimed || pg_reply_is_null(reply, row, CLAIM_COL_FIRST_SEQ))
            continue;
        if (!is_segment(reply, row, next))
            return "a segment out of place";
        next = pg_reply_i64(reply, row, CLAIM_COL_FIRST_SEQ) +
               pg_reply_i32(reply, row, CLAIM_COL_COUNT);
    }
    return last == f->n_targets ? NULL : "fewer targets than were sent";
}

// An answer that is too long for its buffer would be so again: the next claims take fewer
// messages, and more again once they are short.
void claim_note_length(struct consumer *c, const struct pop_op *pop)
{
    if (pop->out.failed)
        c->fewer = pop->n_messages > 1 ? pop->n_messages / 2 : 1;
    else if (c->fewer > 0 && pop->out.len < LONG_ANSWER)
        c->fewer = c->fewer < pop->batch ? c->fewer * 2 : 0;
}

static const struct segment_cols segment_cols = {
    CLAIM_COL_FIRST_SEQ, CLAIM_COL_COUNT, CLAIM_COL_CREATED_AT, CLAIM_COL_KEYS, CLAIM_COL_BODY};

// The rows of one pop: renders what was claimed, then moves its consumers on.
// Returns the first row of the next pop.
static unsigned read_pop(struct broker *b, struct claim_flight *f, struct pop_op *pop,
                         const struct pg_reply *reply, unsigned row, unsigned *target)
{
    unsigned end = row, n_rows = pg_reply_rows(reply), until = *target + pop->n_targets;
    while (end < n_rows && (unsigned)pg_reply_i32(reply, end, CLAIM_COL_TARGET) <= until)
        end++;

    struct claim_build build = claim_build_begin(b, pop, end - row, pop->n_targets);
    int last_target = -1;
    bool claimed = false;
    for (unsigned r = row; r < end; r++) {
        int t = pg_reply_i32(reply, r, CLAIM_COL_TARGET);
        bool is_first = t != last_target;
        last_target = t;
        if (is_first) // the first row of a target decides
            claimed = pg_reply_i16(reply, r, CLAIM_COL_STATUS) == CLAIM_CLAIMED;
        if (!claimed)
            continue;
        struct consumer *c = f->targets[t - 1];
        int64_t start = pg_reply_i64(reply, r, CLAIM_COL_START_SEQ);
        int64_t stop = start + pg_reply_i32(reply, r, CLAIM_COL_TAKE); // one behind
        if (is_first)
            claim_build_claim(&build, c->lane, pg_reply_uuid(reply, r, CLAIM_COL_LANE_ID),
                              pg_reply_i32(reply, r, CLAIM_COL_RETRIES));
        if (pg_reply_is_null(reply, r, CLAIM_COL_FIRST_SEQ))
            continue;
        c->near_seq = pg_reply_i64(reply, r, CLAIM_COL_FIRST_SEQ);
        claim_build_run(&build, reply, r, segment_cols, start, stop);
    }
    if (build.result.n_claims == 1 && build.result.n_messages > 0 && !pop->auto_ack &&
        !f->careful)
        outstanding_add(b, f->targets[*target], pop->lease, build.claims);
    claim_build_end(&build);
    for (unsigned i = *target; pop->state == POP_SERVED && i < until; i++)
        claim_note_length(f->targets[i], pop);

    // One row per target decides about its consumer; further segments repeat it.
    unsigned r = row;
    for (; *target < until; ++*target) {
        struct consumer *c = f->targets[*target];
        while ((unsigned)pg_reply_i32(reply, r, CLAIM_COL_TARGET) < *target + 1)
            r++;
        c->pop = NULL;
        if (c->gone || pg_reply_i16(reply, r, CLAIM_COL_STATUS) == CLAIM_GONE)
            claim_target_gone(b, pop);
        settle_consumer(b, c, reply, r, f->left_us);
    }
    return end;
}

static void note_buried(struct broker *b, const struct consumer *c, unsigned n)
{
    const struct lane *lane = c->lane->origin ? c->lane->origin : c->lane;

    dead_letters_note(
        b, (span){lane->queue->name, lane->queue->name_len}, (span){lane->name, lane->name_len},
        (span){c->group->name, c->group->name_len}, SPAN_NONE, "delivery limit", n);
}

static void settle_consumer(struct broker *b, struct consumer *c, const struct pg_reply *reply,
                            unsigned row, uint64_t left_us)
{
    int64_t wait = pg_reply_i64(reply, row, CLAIM_COL_WAIT_US);
    uint64_t wait_us = wait > 0 ? (uint64_t)wait : 0;

    if (c->gone) {
        claim_end_gone(b, c);
        return;
    }
    if (!pg_reply_is_null(reply, row, CLAIM_COL_VER) &&
        pg_reply_i64(reply, row, CLAIM_COL_VER) > 0)
        // It may be lower than before: see forget.c.
        c->ver = pg_reply_i64(reply, row, CLAIM_COL_VER);
    if (pg_reply_i16(reply, row, CLAIM_COL_STATUS) != CLAIM_BUSY)
        c->busy = 0;
    c->careful_once = false;
    if (pg_reply_i32(reply, row, CLAIM_COL_BURIED) > 0)
        note_buried(b, c, (unsigned)pg_reply_i32(reply, row, CLAIM_COL_BURIED));
    switch (pg_reply_i16(reply, row, CLAIM_COL_STATUS)) {
    case CLAIM_CLAIMED: {
        bool more = pg_reply_bool(reply, row, CLAIM_COL_MORE) || c->dirty;
        c->misses = 0;
        if (wait_us > 0) {
            consumer_leased(b, c, left_us, wait_us, true);
            c->dirty = more;
        } else if (more) {
            consumer_ready(b, c, false);
        } else {
            consumer_idle(b, c);
        }
        break;
    }
    case CLAIM_BUSY:
        claim_busy(b, c);
        break;
    case CLAIM_LEASED:
        consumer_leased(b, c, left_us, wait_us, false);
        c->dirty = true; // what it was claimed for is still there when the lease ends
        break;
    case CLAIM_EMPTY:
        consumer_idle(b, c);
        break;
    case CLAIM_NOT_YET:
        consumer_timed(b, c, left_us, wait_us + 1000);
        break;
    case CLAIM_GONE:
        claim_gone(b, c);
        return;
    case CLAIM_NOT_NEEDED:
        consumer_ready(b, c, true);
        break;
    case CLAIM_IS_WORK:
        c->lane->work = c->lane->queue->work = true;
        consumer_ready(b, c, true);
        break;
    case CLAIM_WANTS_CARE_ONCE:
        c->careful_once = true;
        consumer_ready(b, c, true);
        break;
    default: // CLAIM_WANTS_CARE: claim_find_fault() lets no other pass
        c->lane->careful = true;
        consumer_ready(b, c, true);
        break;
    }
    if (c->state != CLAIMING) // pops that arrived during the claim have no answer yet
        pops_handle(b, &c->seats, POP_ON_ANSWERED);
}

void claim_busy(struct broker *b, struct consumer *c)
{
    // Another claim of this moment, or a SQL session that has not committed.
    if (c->busy < MAX_BUSY)
        c->busy++;
    consumer_timed(b, c, clock_mono_us(), 1000u << c->busy);
}

void claim_end_gone(struct broker *b, struct consumer *c)
{
    c->state = IDLE;
    c->group->n_busy--;
    c->gone = false;
    group_handle(c->group, GROUP_MISSED); // a discovery since then may have counted on c
    consumer_gone(b, c);
}

void claim_gone(struct broker *b, struct consumer *c)
{
    c->state = IDLE;
    c->group->n_busy--;
    // The group finds out by looking for its lanes again.  Other groups keep what they know of
    // the lane: perhaps it still exists.
    group_handle(c->group, GROUP_MISSED);
    group_unsubscribe(c->group);
    consumer_gone(b, c);
}

void claim_end_pop(struct broker *b, struct pop_op *pop)
{
    const struct consumer *only = pop->only;
    bool is_empty = only && only->state != READY && only->state != CLAIMING;
    bool is_last = pop->state != POP_CLAIMING;

    pop->only = NULL;
    pop->targets = NULL;
    pop->n_targets = 0;
    pop_handle(b, pop, is_empty ? POP_ON_CLAIM_EMPTY : POP_ON_CLAIM_OVER, 0);
    if (is_last)
        feed_active(b);
}

// The consumer is about to be freed.
void claim_target_gone(struct broker *b, struct pop_op *pop)
{
    pop->only = NULL;
    pop_handle(b, pop, POP_ON_TARGET_GONE, 0);
}

void claim_fail_target(struct broker *b, const struct consumer *c, struct pop_op *pop)
{
    if (c->gone)
        claim_target_gone(b, pop);
    else
        pop_handle(b, pop, POP_ON_TARGET_LOST, 0);
}

void claim_fail_consumer(struct broker *b, struct consumer *c)
{
    c->pop = NULL;
    consumer_timed(b, c, clock_mono_us(), b->conf.poll_initial_ms * 1000ull);
    if (c->gone) {
        c->gone = false;
        group_handle(c->group, GROUP_MISSED);
        consumer_gone(b, c);
    }
}

// The outcome of a lost claim is unknown, and one with an invalid answer has committed.  Leases
// that no client will use are given back when the database returns.  With autoAck the messages
// are acknowledged and cannot be given back, so the client gets an error.
void claim_fail_pop(struct broker *b, struct pop_op *pop, int status, bool refused)
{
    bool taken = status == QE_PG_GONE || status == QE_PG_SHAPE;
    bool of_retries = pop->partition.ptr && !pop->only; // not of its own partition

    if (taken && !pop->auto_ack)
        give_back_add(b, pop->lease);
    pop->op.unknown = taken && pop->auto_ack;
    pop->only = NULL;
    pop->targets = NULL;
    pop->n_targets = 0;
    if (!refused)
        fault_set(&pop->op.why, status, "%s", err_text(status));
    if (pop->op.unknown) {
        fault_set(&pop->op.why, status, "%s: what this autoAck pop took, if anything, is lost",
                  status == QE_PG_GONE ? "the connection to the database was lost"
                                       : "unexpected result from the database");
        pop_handle(b, pop, POP_ON_FAILED, status);
    } else if (refused) {
        pop_handle(b, pop, POP_ON_CLAIM_REFUSED, 0);
    } else if (status == QE_PG_SHAPE) {
        pop_handle(b, pop, POP_ON_FAILED, status);
    } else {
        pop_handle(b, pop, of_retries ? POP_ON_RETRIES_LOST : POP_ON_CLAIM_LOST, status);
    }
}

static void claim_fail(struct broker *b, struct claim_flight *f, int status,
                       const struct pg_reply *reply)
{
    log_debug("claim.failed", "status=%s detail=\"%s\"", err_name(status),
              pg_reply_message(reply));
    for (unsigned i = 0; i < f->n_targets; i++) {
        claim_fail_target(b, f->targets[i], f->targets[i]->pop);
        claim_fail_consumer(b, f->targets[i]);
    }
    while (!STAILQ_EMPTY(&f->pops)) {
        struct pop_op *pop = pop_of(STAILQ_FIRST(&f->pops));
        STAILQ_REMOVE_HEAD(&f->pops, link);
        claim_fail_pop(b, pop, status, f->refused);
    }
}
