// Claims of work queues: many pops share the messages of one partition.
//
//      work_claim ──► work_load (pops, and riders) ──► on_work_claimed ──► read_part ──►
//      end_part
//
// A consumer of a work queue is CLAIMING for one pop, like any other.  When the call is made,
// further pops of the group that have no seat elsewhere join it as riders.  Their number
// follows the success of earlier claims, so that hundreds of waiting pops do not fly for one
// message.
//
// Between claims the consumer is READY if messages are left, else TIMED ("resting") until the
// first lease may expire, or IDLE if nothing is in flight.
#include "broker/pop/claim_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

enum {
    MAX_SHARED = 1000, // messages that the riders of a claim may want together
    MAX_RIDERS = 256,
};

// The pops from `first` on share the claim of c.
struct work_part {
    struct consumer *c;
    struct group *group; // of c, which may be deleted meanwhile
    unsigned first, n;
    bool named; // one of them waits for this partition alone
};

struct work_flight {
    unsigned n_pops, n_parts;
    struct work_part *parts;
    struct pop_op **pops;
};

static struct work_flight *work_load(struct broker *b);
static void work_fill(struct pg_params *p, const struct work_flight *f);
static void on_work_claimed(struct pg_call *pg, int status, const struct pg_reply *reply);
static const char *work_find_fault(const struct work_flight *f, const struct pg_reply *reply);
static unsigned read_part(struct broker *b, const struct work_flight *f,
                          const struct work_part *part, const struct pg_reply *reply,
                          unsigned row, uint64_t left_us);
static void end_part(struct broker *b, const struct work_flight *f,
                     const struct work_part *part);
static void work_part_over(struct broker *b, struct group *g);
static void work_fail(struct broker *b, struct work_flight *f, int status, bool refused);

void work_claim(struct broker *b)
{
    struct work_flight *f = work_load(b);
    struct call *c = call_new(b, &pg_stmt_claim_work, f);

    work_fill(&c->params, f);
    claim_send(c, f->n_pops, on_work_claimed);
}

// The next pop that may share a claim of c: of the partition, or of any partition.
static struct pop_op *next_rider(const struct consumer *c)
{
    struct pop_op *pop = TAILQ_FIRST(&c->seats);

    return pop ? pop : TAILQ_FIRST(&c->group->seats);
}

static void add_riders(struct broker *b, struct work_flight *f, struct work_part *part)
{
    struct consumer *c = part->c;
    struct pop_op *pop;
    uint32_t wanted = f->pops[part->first]->batch;

    while (part->n <= c->riders && f->n_pops < b->conf.pop.max_requests &&
           (pop = next_rider(c)) && wanted + pop->batch <= MAX_SHARED) {
        bool only = pop->only == c;
        part->named |= only;
        pop->targets = c;
        pop->n_targets = 1;
        pop_handle(b, pop, POP_ON_TAKE, 0);
        pop->only = only ? c : NULL;
        STAILQ_REMOVE(&b->ops[OP_POP].queue, &pop->op, op, link); // the last one
        b->ops[OP_POP].n_requests--;
        wanted += pop->batch;
        f->pops[f->n_pops++] = pop;
        part->n++;
    }
}

static struct work_flight *work_load(struct broker *b)
{
    struct work_flight *f = mem_new(struct work_flight);
    struct op_list pops = STAILQ_HEAD_INITIALIZER(pops);

    f->n_parts = claim_take_pops(b, CLAIM_OF_WORK, &pops);
    f->parts = mem_new_array(struct work_part, f->n_parts);
    f->pops = mem_new_array(struct pop_op *, f->n_parts + b->conf.pop.max_requests);
    for (unsigned i = 0; i < f->n_parts; i++) {
        struct pop_op *pop = pop_of(STAILQ_FIRST(&pops));
        STAILQ_REMOVE_HEAD(&pops, link);
        f->parts[i] = (struct work_part){pop->targets, pop->targets->group, f->n_pops, 1,
                                         pop->partition.ptr != NULL};
        f->pops[f->n_pops++] = pop;
        add_riders(b, f, &f->parts[i]);
    }
    return f;
}

#define FOR_POPS(type, put)                      \
    pg_begin_array(p, type);                     \
    for (unsigned i = 0; i < f->n_pops; i++) {   \
        const struct pop_op *pop = f->pops[i];   \
        const struct consumer *c = pop->targets; \
        (void)c;                                 \
        put;                                     \
    }                                            \
    pg_end_array(p)

static void work_fill(struct pg_params *p, const struct work_flight *f)
{
    FOR_POPS(PG_INT8, pg_put_i64(p, c->num));
    FOR_POPS(PG_INT4, pg_put_i32(p, claim_batch(c, pop)));
    FOR_POPS(PG_BOOL, pg_put_bool(p, pop->auto_ack));
    FOR_POPS(PG_UUID, pg_put_uuid(p, pop->lease));
    FOR_POPS(PG_INT4, pg_put_i32(p, 0));
    // An acknowledgement that is just being stored holds the lock for a moment.
    FOR_POPS(PG_BOOL, pg_put_bool(p, c->busy == 0));
}

static void on_work_claimed(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct work_flight *f = c->what;

    claim_landed(c, f->n_pops);
    const char *fault = status == 0 ? work_find_fault(f, reply) : NULL;
    if (fault)
        status = call_unexpected(c, fault);
    if (status != 0) {
        call_failed(c, status, reply);
        log_debug("claim.failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
        work_fail(b, f, status, status == QE_PG_RETRY && !pg->sent);
    } else {
        unsigned row = 0, n_messages = 0;
        for (unsigned i = 0; i < f->n_parts; i++) {
            row = read_part(b, f, &f->parts[i], reply, row, c->left_us);
            for (unsigned k = 0; k < f->parts[i].n; k++)
                n_messages += f->pops[f->parts[i].first + k]->n_messages;
            // Before the next part: it may find that the partition is gone, and then the
            // consumer of this part, which its pops name, is freed as well.
            end_part(b, f, &f->parts[i]);
        }
        histogram_add(&b->stats.batch_items[OP_POP], n_messages);
    }
    free(f->parts);
    free(f->pops);
    free(f);
    call_free(c);
    broker_wake(b);
}

static bool is_segment_row(const struct pg_reply *reply, unsigned row)
{
    return pg_reply_is_null(reply, row, CLAIM_WORK_COL_STATUS);
}

// Each pop has rows, in the order sent.  The segments of a consumer follow those of its last
// pop, in order.  Returns what is wrong, or NULL.
static const char *work_find_fault(const struct work_flight *f, const struct pg_reply *reply)
{
    unsigned row = 0, n_rows = pg_reply_rows(reply), pop = 0;

    for (unsigned i = 0; i < f->n_parts; i++) {
        const struct work_part *part = &f->parts[i];
        unsigned end = part->first + part->n;
        for (; pop < end; pop++) {
            unsigned n = 0;
            uint64_t taken = 0;
            for (; row < n_rows && !is_segment_row(reply, row) &&
                   pg_reply_i32(reply, row, CLAIM_WORK_COL_TARGET) == (int32_t)pop + 1;
                 row++, n++) {
                int16_t status = pg_reply_i16(reply, row, CLAIM_WORK_COL_STATUS);
                int64_t start = pg_reply_i64(reply, row, CLAIM_WORK_COL_START_SEQ);
                int32_t take = pg_reply_i32(reply, row, CLAIM_WORK_COL_TAKE);
                if (status != CLAIM_FULL &&
                    (status < CLAIM_CLAIMED || status > CLAIM_WANTS_CARE))
                    return "an unknown status";
                if (status != CLAIM_CLAIMED && n > 0)
                    return "two results of one pop";
                if (status == CLAIM_CLAIMED &&
                    (start <= 0 || start >= INT64_MAX / 2 || take <= 0 ||
                     !pg_reply_uuid(reply, row, CLAIM_WORK_COL_LANE_ID)))
                    return "a claim without its messages";
                taken += status == CLAIM_CLAIMED ? (uint64_t)take : 0;
            }
            if (n == 0)
                return "a pop without a result, or results in another order";
            if (taken > f->pops[pop]->batch)
                return "more messages than were wanted";
        }
        int64_t next = 0;
        for (; row < n_rows && is_segment_row(reply, row); row++) {
            int64_t first = pg_reply_i64(reply, row, CLAIM_WORK_COL_FIRST_SEQ);
            int32_t count = pg_reply_i32(reply, row, CLAIM_WORK_COL_COUNT);
            if (pg_reply_i32(reply, row, CLAIM_WORK_COL_TARGET) != (int32_t)end ||
                first < next || first >= INT64_MAX / 2 || count < 0 ||
                pg_reply_unix_us(reply, row, CLAIM_WORK_COL_CREATED_AT) <= 0 ||
                !pg_reply_bytes(reply, row, CLAIM_WORK_COL_KEYS).ptr ||
                !pg_reply_bytes(reply, row, CLAIM_WORK_COL_BODY).ptr)
                return "a segment out of place";
            next = first + count;
        }
    }
    return row == n_rows ? NULL : "rows that belong to no pop";
}

// The rows of one part.
struct part_rows {
    const struct pg_reply *reply;
    unsigned segments, end; // rows of its segments: [segments, end)
};

// The first segment that ends after seq.
static unsigned find_segment(const struct part_rows *rows, int64_t seq)
{
    unsigned low = rows->segments, high = rows->end;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (pg_reply_i64(rows->reply, middle, CLAIM_WORK_COL_FIRST_SEQ) +
                pg_reply_i32(rows->reply, middle, CLAIM_WORK_COL_COUNT) <=
            seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static unsigned segments_of(const struct part_rows *rows, int64_t start, int64_t stop)
{
    unsigned n = 0;

    for (unsigned r = find_segment(rows, start);
         r < rows->end && pg_reply_i64(rows->reply, r, CLAIM_WORK_COL_FIRST_SEQ) < stop; r++)
        n++;
    return n;
}

static const struct segment_cols segment_cols = {CLAIM_WORK_COL_FIRST_SEQ, CLAIM_WORK_COL_COUNT,
                                                 CLAIM_WORK_COL_CREATED_AT, CLAIM_WORK_COL_KEYS,
                                                 CLAIM_WORK_COL_BODY};

// Renders the messages of one pop, whose rows are [from, to).  Messages with the same number of
// failed deliveries are one claim for the renderer.
static void read_work_pop(struct broker *b, struct pop_op *pop, const struct part_rows *rows,
                          unsigned from, unsigned to)
{
    const struct pg_reply *reply = rows->reply;
    const struct lane *lane = pop->targets->lane;
    unsigned n_runs = 0;

    for (unsigned r = from; r < to; r++) {
        int64_t start = pg_reply_i64(reply, r, CLAIM_WORK_COL_START_SEQ);
        n_runs += segments_of(rows, start, start + pg_reply_i32(reply, r, CLAIM_WORK_COL_TAKE));
    }
    struct claim_build build = claim_build_begin(b, pop, n_runs, to - from);
    for (unsigned r = from; r < to; r++) {
        int64_t start = pg_reply_i64(reply, r, CLAIM_WORK_COL_START_SEQ);
        int64_t stop = start + pg_reply_i32(reply, r, CLAIM_WORK_COL_TAKE); // one behind
        int retries = pg_reply_i32(reply, r, CLAIM_WORK_COL_RETRIES);
        if (r == from || build.claims[build.result.n_claims - 1].retries != retries)
            claim_build_claim(&build, lane, pg_reply_uuid(reply, r, CLAIM_WORK_COL_LANE_ID),
                              retries);
        for (unsigned s = find_segment(rows, start);
             s < rows->end && pg_reply_i64(reply, s, CLAIM_WORK_COL_FIRST_SEQ) < stop; s++)
            claim_build_run(&build, reply, s, segment_cols, start, stop);
    }
    claim_build_end(&build);
}

// When something becomes available without being pushed: the earliest time counts.
static void note_available(struct consumer *c, uint64_t now, uint64_t at)
{
    if (c->available_us <= now || at < c->available_us)
        c->available_us = at;
}

// Nothing is available before.
static void rest(struct consumer *c, int64_t wait_us, uint64_t left_us)
{
    c->available_us = wait_us > 0 ? left_us + (uint64_t)wait_us + 1000 : 0;
    c->available_known = true;
}

// The consumer after its claim.  n_served of the pops of the part got messages.
static void settle_work_consumer(struct broker *b, const struct work_part *part,
                                 unsigned n_served, const struct pg_reply *reply, unsigned row,
                                 uint64_t left_us)
{
    struct consumer *c = part->c;
    uint64_t now = clock_mono_us();
    int64_t wait = pg_reply_i64(reply, row, CLAIM_WORK_COL_WAIT_US);
    int16_t status = pg_reply_i16(reply, row, CLAIM_WORK_COL_STATUS); // of the last pop

    if (status == CLAIM_BUSY) { // the number of pops that its messages would serve is unknown
        claim_busy(b, c);
        return;
    }
    c->busy = 0;
    if (n_served == part->n)
        c->riders = c->riders < MAX_RIDERS / 2 ? 2 * c->riders + 1 : MAX_RIDERS;
    else
        c->riders = n_served;
    switch (status) {
    case CLAIM_LEASED: // from the time when the queue was ordered
        consumer_leased(b, c, left_us, wait > 0 ? (uint64_t)wait : 0, false);
        c->dirty = true;
        return;
    case CLAIM_NOT_NEEDED:
        consumer_ready(b, c, true);
        return;
    case CLAIM_WANTS_CARE: // the queue is ordered now
        c->lane->work = c->lane->queue->work = false;
        consumer_ready(b, c, true);
        return;
    case CLAIM_FULL:
        group_fill(b, c->group, left_us + (wait > 0 ? (uint64_t)wait : 0) + 1000);
        if (n_served > 0)
            c->riders--;
        if (!part->named) { // it keeps its turn if it got nothing
            consumer_ready(b, c, n_served == 0);
            return;
        }
        rest(c, wait, left_us);
        break;
    case CLAIM_CLAIMED:
        group_widen(c->group);
        // A lease of another broker may expire earlier: the next claim finds out.
        if (c->available_us != 0 && c->available_us <= now)
            c->available_known = false;
        if (wait > 0)
            note_available(c, now, left_us + (uint64_t)wait);
        if (pg_reply_bool(reply, row, CLAIM_WORK_COL_MORE) || !c->available_known) {
            consumer_ready(b, c, false); // behind those of other partitions
            return;
        }
        break;
    default: // CLAIM_EMPTY, CLAIM_NOT_YET: a delay, or nothing
        rest(c, wait, left_us);
        break;
    }
    if (c->dirty || c->available_us == 0) {
        consumer_idle(b, c);
    } else {
        consumer_timed(b, c, now, c->available_us > now ? c->available_us - now : 0);
        c->resting = true;
    }
}

// Pops of the group that came meanwhile wait for the end of the claim: see group.n_asking.
static void work_over(struct consumer *c)
{
    if (c->working) {
        c->group->n_asking--;
        c->group->ready.working[c->lane->priority]--;
    }
    c->working = false;
}

// Renders the pops of one part, then moves its consumer on.  Returns the first row of the next.
static unsigned read_part(struct broker *b, const struct work_flight *f,
                          const struct work_part *part, const struct pg_reply *reply,
                          unsigned row, uint64_t left_us)
{
    struct part_rows rows = {.reply = reply, .segments = row};
    unsigned n_rows = pg_reply_rows(reply), n_served = 0, last = row;
    struct consumer *c = part->c;

    while (rows.segments < n_rows && !is_segment_row(reply, rows.segments) &&
           (unsigned)pg_reply_i32(reply, rows.segments, CLAIM_WORK_COL_TARGET) <=
               part->first + part->n)
        last = rows.segments++;
    rows.end = rows.segments;
    while (rows.end < n_rows && is_segment_row(reply, rows.end) &&
           (unsigned)pg_reply_i32(reply, rows.end, CLAIM_WORK_COL_TARGET) ==
               part->first + part->n)
        rows.end++;
    for (unsigned i = 0; i < part->n; i++) {
        struct pop_op *pop = f->pops[part->first + i];
        unsigned from = row;
        while (row < rows.segments && pg_reply_i32(reply, row, CLAIM_WORK_COL_TARGET) ==
                                          (int32_t)(part->first + i) + 1)
            row++;
        if (pg_reply_i16(reply, from, CLAIM_WORK_COL_STATUS) != CLAIM_CLAIMED)
            continue;
        n_served++;
        read_work_pop(b, pop, &rows, from, row);
        if (pop->state == POP_SERVED)
            claim_note_length(c, pop);
        else if (pop->state != POP_LEAVING && !pop->auto_ack)
            give_back_add(b, pop->lease); // its messages were removed this moment
    }

    c->pop = NULL;
    bool gone = c->gone || pg_reply_i16(reply, last, CLAIM_WORK_COL_STATUS) == CLAIM_GONE;
    for (unsigned i = 0; gone && i < part->n; i++)
        claim_target_gone(b, f->pops[part->first + i]);
    work_over(c); // it may be taken for the next claim now
    if (c->gone) {
        claim_end_gone(b, c);
    } else if (gone) {
        claim_gone(b, c);
    } else {
        settle_work_consumer(b, part, n_served, reply, last, left_us);
        if (c->state != CLAIMING) // pops of the partition that came during the claim
            pops_handle(b, &c->seats, POP_ON_ANSWERED);
    }
    return rows.end;
}

// Pops that got nothing keep their places in the line: those that have waited come first.
static void end_part(struct broker *b, const struct work_flight *f,
                     const struct work_part *part)
{
    for (unsigned i = 0; i < part->n; i++) {
        struct pop_op *pop = f->pops[part->first + i];
        if (pop->state != POP_CLAIMING || !pop->has_waited)
            claim_end_pop(b, pop), f->pops[part->first + i] = NULL;
    }
    for (unsigned i = part->n; i-- > 0;)
        if (f->pops[part->first + i])
            claim_end_pop(b, f->pops[part->first + i]);
    work_part_over(b, part->group);
}

// Lower priorities have waited for the result: see ready.h.
static void work_part_over(struct broker *b, struct group *g)
{
    if (g->n_ready > 0 && !TAILQ_EMPTY(&g->seats))
        group_serve(b, g);
    if (g->n_ready > 0 && !LIST_EMPTY(&g->selectors))
        selectors_serve(b, g);
    if (g->n_asking == 0)
        group_answered(b, g);
}

static void work_fail(struct broker *b, struct work_flight *f, int status, bool refused)
{
    for (unsigned i = 0; i < f->n_parts; i++) {
        const struct work_part *part = &f->parts[i];
        struct consumer *c = part->c;
        for (unsigned k = 0; k < part->n; k++)
            claim_fail_target(b, c, f->pops[part->first + k]);
        work_over(c);
        claim_fail_consumer(b, c);
    }
    for (unsigned i = f->n_pops; i-- > 0;)
        claim_fail_pop(b, f->pops[i], status, refused);
    for (unsigned i = 0; i < f->n_parts; i++)
        work_part_over(b, f->parts[i].group);
}
