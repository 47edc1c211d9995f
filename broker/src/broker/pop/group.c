// Groups and their consumers: who is ready, and how we find out.
#include "broker/settle/outstanding_int.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

static void on_group_due(struct due *d);
static void query_number(struct broker *b, struct consumer *c);
static void on_numbers(struct pg_call *pg, int status, const struct pg_reply *reply);
static void on_discovered(struct pg_call *pg, int status, const struct pg_reply *reply);

// ---- registry ----

struct group *group_get(struct broker *b, struct queue *q, span name)
{
    struct group *g;

    HASH_FIND(hh, q->groups, name.ptr, name.len, g);
    if (!g) {
        g = mem_zalloc(1, sizeof *g + name.len + 1);
        g->queue = q;
        g->name_len = name.len;
        memcpy(g->name, name.ptr, name.len);
        ready_init(&g->ready);
        TAILQ_INIT(&g->seats);
        LIST_INIT(&g->selectors);
        HASH_ADD_KEYPTR(hh, q->groups, g->name, g->name_len, g);
        TAILQ_INSERT_TAIL(&b->recent_groups, g, recent);
        g->used_us = clock_mono_us();
        b->n_groups++;
    }
    return g;
}

struct consumer *consumer_get(struct broker *b, struct group *g, struct lane *lane)
{
    struct consumer *c;

    HASH_FIND(hh, g->consumers, &lane, sizeof lane, c);
    if (!c) {
        c = mem_new(struct consumer);
        c->group = g;
        c->lane = lane;
        TAILQ_INIT(&c->seats);
        HASH_ADD(hh, g->consumers, lane, sizeof c->lane, c);
        LIST_INSERT_HEAD(&lane->consumers, c, of_lane);
        atomic_fetch_add_explicit(&b->stats.consumers, 1, memory_order_relaxed);
    }
    return c;
}

struct consumer *consumer_find_num(struct broker *b, int64_t num)
{
    struct consumer *c;

    HASH_FIND(hh_num, b->consumers_by_num, &num, sizeof num, c);
    return c;
}

void consumer_set_num(struct broker *b, struct consumer *c, int64_t num)
{
    if (c->num == num)
        return;
    if (c->num != 0)
        HASH_DELETE(hh_num, b->consumers_by_num, c);
    c->num = num;
    c->ver = c->near_seq = 0;
    c->available_known = false;
    if (num != 0)
        HASH_ADD(hh_num, b->consumers_by_num, num, sizeof c->num, c);
}

void consumer_forget_num(struct broker *b, struct consumer *c)
{
    if (c->num != 0)
        HASH_DELETE(hh_num, b->consumers_by_num, c);
    c->num = c->ver = c->near_seq = 0;
    c->available_known = false;
}

// ---- states ----

static void leave_state(struct broker *b, struct consumer *c)
{
    switch (c->state) {
    case READY:
        ready_remove(c);
        break;
    case LEASED:
        outstanding_drop(b, c);
        // fallthrough
    case TIMED:
        due_cancel(&b->due, &c->due);
        c->group->n_busy--;
        c->resting = false;
        break;
    case CLAIMING:
        c->group->n_busy--;
        break;
    case IDLE:
        break;
    }
    c->state = IDLE;
}

void consumer_ready(struct broker *b, struct consumer *c, bool first)
{
    assert(c->state != CLAIMING || !c->pop);
    if (c->state != READY) {
        leave_state(b, c);
        c->dirty = false;
        c->state = READY;
        ready_add(c, first);
    }
    if (c->num == 0) {
        query_number(b, c); // served when the number is there
        return;
    }
    if (!TAILQ_EMPTY(&c->seats))
        consumer_serve(b, c);
    if (c->lane->origin)
        consumer_serve_retries(b, c);
    if (!TAILQ_EMPTY(&c->group->seats))
        group_serve(b, c->group);
    if (!LIST_EMPTY(&c->group->selectors))
        selectors_serve(b, c->group);
}

void consumer_idle(struct broker *b, struct consumer *c)
{
    leave_state(b, c);
    if (c->dirty)
        consumer_ready(b, c, false);
}

void consumer_take(struct broker *b, struct consumer *c, struct pop_op *pop)
{
    leave_state(b, c);
    c->state = CLAIMING;
    c->dirty = false;
    c->pop = pop;
    c->turn = ++c->group->ready.n_taken;
    c->group->n_busy++;
    if (c->lane->work &&
        !c->working) { // further pops wait for the result: it may serve them too
        c->working = true;
        c->group->n_asking++;
        c->group->ready.working[c->lane->priority]++;
    }
}

// How long to wait before the next look at what other sessions may change at any moment: ever
// longer, as a poll would.
static uint64_t next_look_us(struct broker *b, struct consumer *c)
{
    double ms = b->conf.poll_initial_ms;

    for (unsigned i = b->conf.poll_threshold; i < c->misses && ms < b->conf.poll_max_ms; i++)
        ms *= b->conf.poll_multiplier;
    if (c->misses < 32)
        c->misses++;
    return (uint64_t)((ms < b->conf.poll_max_ms ? ms : b->conf.poll_max_ms) * 1000);
}

// A lease of ours ends by our ack, or by itself; one of somebody else's may end any moment
// without a word, so we look again, ever more seldom, as a poll would.
void consumer_leased(struct broker *b, struct consumer *c, uint64_t since_us, uint64_t us,
                     bool by_us)
{
    leave_state(b, c);
    c->state = LEASED;
    c->group->n_busy++;
    if (by_us) {
        c->misses = 0;
    } else {
        uint64_t next_us = next_look_us(b, c);
        if (us > next_us)
            us = next_us;
    }
    due_set(&b->due, &c->due, since_us + us, on_group_due);
}

void consumer_timed(struct broker *b, struct consumer *c, uint64_t since_us, uint64_t us)
{
    leave_state(b, c);
    c->state = TIMED;
    c->group->n_busy++;
    due_set(&b->due, &c->due, since_us + us, on_group_due);
}

static void on_group_due(struct due *d)
{
    struct consumer *c = container_of(d, struct consumer, due);

    consumer_ready(c->group->queue->broker, c, false);
}

void consumer_released(struct broker *b, struct consumer *c, bool maybe_more)
{
    if (maybe_more && c->lane->work)
        consumer_has_room(b, c);
    else if (c->state != LEASED)
        c->dirty = c->dirty || maybe_more;
    else if (maybe_more || c->dirty)
        consumer_ready(b, c, false);
    else
        consumer_idle(b, c);
}

void consumer_gone(struct broker *b, struct consumer *c)
{
    struct pop_list unplaced = TAILQ_HEAD_INITIALIZER(unplaced);

    if (c->state == CLAIMING || c->asking) {
        c->gone = true;         // the answer will find it so
        outstanding_drop(b, c); // acknowledgements must not use its number
        return;
    }
    leave_state(b, c);
    outstanding_drop(b, c);
    // Pops of this partition look for it again, by name.
    pops_unseat(b, &c->seats, POP_ON_UNSEAT, &unplaced);
    if (c->num != 0)
        HASH_DELETE(hh_num, b->consumers_by_num, c);
    HASH_DELETE(hh, c->group->consumers, c);
    LIST_REMOVE(c, of_lane);
    atomic_fetch_sub_explicit(&b->stats.consumers, 1, memory_order_relaxed);
    free(c);
    pops_place(b, &unplaced);
}

static void lane_ready_for(struct broker *b, struct lane *lane, struct group *g)
{
    struct consumer *c;

    if (g->state == GROUP_UNKNOWN && TAILQ_EMPTY(&g->seats)) {
        // Only pops of single partitions have come so far: no ready list is kept.
        struct lane *partition = lane->origin ? lane->origin : lane;
        HASH_FIND(hh, g->consumers, &partition, sizeof partition, c);
        if (!c)
            return;
    }
    c = consumer_get(b, g, lane);
    if (b->handed_over != 0 && c->handed_over == b->handed_over)
        return; // its claim has seen what this push stored
    switch (c->state) {
    case IDLE:
        consumer_ready(b, c, false);
        break;
    case CLAIMING:
    case LEASED:
        c->dirty = true;
        break;
    case TIMED:
        if (c->resting)
            consumer_ready(b, c, false);
        break;
    case READY:
        break;
    }
}

void lane_ready(struct broker *b, struct lane *lane)
{
    struct group *g, *next;

    if (lane->origin) {
        HASH_FIND(hh, lane->queue->groups, lane->only.ptr, lane->only.len, g);
        if (g)
            lane_ready_for(b, lane, g);
        return;
    }
    HASH_ITER (hh, lane->queue->groups, g, next)
        lane_ready_for(b, lane, g);
}

struct consumer *consumer_retries(const struct consumer *c)
{
    const struct group *g = c->group;
    struct lane *lane;
    struct consumer *retries = NULL;

    LIST_FOREACH (lane, &c->lane->retries, of_origin)
        if (span_eq(lane->only, (span){g->name, g->name_len})) {
            HASH_FIND(hh, g->consumers, &lane, sizeof lane, retries);
            break;
        }
    return retries && retries->state == READY && retries->num != 0 ? retries : NULL;
}

// ---- numbers of consumers ----

static void query_number(struct broker *b, struct consumer *c)
{
    if (c->asking || c->num != 0)
        return;
    c->asking = true;
    c->group->n_asking++;
    c->group->n_unnumbered++;
    if (b->n_unnumbered == b->cap_unnumbered) {
        b->cap_unnumbered = b->cap_unnumbered > 0 ? b->cap_unnumbered * 2 : 64;
        b->unnumbered = mem_realloc(b->unnumbered, b->cap_unnumbered * sizeof *b->unnumbered);
    }
    b->unnumbered[b->n_unnumbered++] = c;
    broker_wake(b);
}

// Consumers that one call makes at most.
enum { NUMBERS_AT_ONCE = 2000 };

struct numbers_asked {
    unsigned n;
    struct consumer *consumers[];
};

void groups_flush(struct broker *b)
{
    if (b->n_unnumbered == 0 || b->numbering)
        return;
    unsigned n = b->n_unnumbered < NUMBERS_AT_ONCE ? b->n_unnumbered : NUMBERS_AT_ONCE;
    struct numbers_asked *asked = mem_zalloc(1, sizeof *asked + n * sizeof(struct consumer *));
    asked->n = n;
    memcpy(asked->consumers, b->unnumbered, n * sizeof(struct consumer *));
    b->n_unnumbered -= n;
    memmove(b->unnumbered, b->unnumbered + n, b->n_unnumbered * sizeof *b->unnumbered);
    b->numbering = true;

    struct call *call = call_new(b, &pg_stmt_ensure_consumers, asked);
    pg_begin_array(&call->params, PG_INT8);
    for (unsigned i = 0; i < asked->n; i++)
        pg_put_i64(&call->params, asked->consumers[i]->lane->num);
    pg_end_array(&call->params);
    pg_begin_array(&call->params, PG_TEXT);
    for (unsigned i = 0; i < asked->n; i++)
        pg_put_text(&call->params, (span){asked->consumers[i]->group->name,
                                          asked->consumers[i]->group->name_len});
    pg_end_array(&call->params);
    call_send(call, on_numbers);
}

static void on_numbers(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *call = pg->owner;
    struct broker *b = call->broker;
    struct numbers_asked *asked = call->what;

    b->numbering = false;
    b->n_numberings++;
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        unsigned i = (unsigned)pg_reply_i32(reply, row, ENSURE_CONSUMERS_COL_IDX);
        int64_t num = pg_reply_i64(reply, row, ENSURE_CONSUMERS_COL_CONSUMER);
        if (i >= asked->n || num < 0)
            status = call_unexpected(call, "a consumer that was not asked for, or no number");
        else if (num > 0)
            consumer_set_num(b, asked->consumers[i], num);
        else
            asked->consumers[i]->locked = true; // another transaction has locked the partition
    }
    for (unsigned i = 0; i < asked->n; i++) {
        struct consumer *c = asked->consumers[i];
        struct group *group = c->group;
        bool locked = c->locked;
        c->asking = c->locked = false;
        group->n_asking--;
        group->n_unnumbered--;
        if (c->gone || (status == 0 && c->num == 0 && !locked)) {
            if (c->gone)
                group_handle(group,
                             GROUP_MISSED); // a discovery since then may have counted on c
            consumer_gone(b, c);            // the lane was deleted meanwhile
        } else {
            if (c->num != 0 && (c->state == READY || c->state == IDLE))
                consumer_ready(b, c, false);
            else if (c->num == 0) // locked, or the database is away
                consumer_timed(b, c, clock_mono_us(), next_look_us(b, c));
            // A discovery may have numbered it first, and a claim may have come and gone since.
            if (c->state != CLAIMING)
                pops_handle(b, &c->seats, POP_ON_ANSWERED);
        }
        group_serve(b, group);      // a pop may have waited for this number alone
        if (group->n_asking == 0) { // pops that waited for this have been served, or were not
            if (!group_is_known(group) && !TAILQ_EMPTY(&group->seats))
                group_place_again(b, group, false); // to discover the group, or to wait for it
            group_answered(b, group);
        }
    }
    if (status != 0)
        log_debug("consumers.ensure_failed", "error=%s", err_name(status));
    free(asked);
    call_free(call);
    broker_wake(b);
}

// ---- discovery ----

static bool has_subscription(const struct pop_op *pop)
{
    return pop->sub_from.len > 0 || span_eq(pop->sub_mode, SPAN("new")) ||
           span_eq(pop->sub_mode, SPAN("new-only"));
}

bool group_must_discover(const struct group *g, const struct pop_op *pop)
{
    if (!group_is_known(g) && !pop->partition.ptr)
        return true;
    if (!has_subscription(pop) || span_eq(pop->group, SPAN("__QUEUE_MODE__")))
        return false;
    // Recorded once; but a start point that nobody has checked yet may be nonsense.
    return !g->checked_from ||
           (pop->sub_from.len > 0 && !span_eq(pop->sub_from, span_of(g->checked_from)));
}

static void put_group_text(struct pg_params *p, span text)
{
    pg_param_text(p, text.ptr ? text : SPAN(""));
}

static void put_group_text_or_null(struct pg_params *p, span text)
{
    if (text.ptr)
        pg_param_text(p, text);
    else
        pg_param_null(p, PG_TEXT);
}

struct call *group_discover_call(struct broker *b, const struct group *g, void *what,
                                 const struct discover_ask *ask)
{
    struct call *call = call_new(b, &pg_stmt_discover, what);

    pg_param_text(&call->params, (span){g->queue->name, g->queue->name_len});
    put_group_text_or_null(&call->params, ask->partition);
    pg_param_text(&call->params, (span){g->name, g->name_len});
    put_group_text(&call->params, ask->namespace_);
    put_group_text(&call->params, ask->task);
    put_group_text(&call->params, ask->sub_mode);
    put_group_text(&call->params, ask->sub_from);
    put_group_text_or_null(&call->params, ask->after);
    return call;
}

void group_discover(struct broker *b, struct group *g, struct pop_op *pop)
{
    if (!pop->partition.ptr)
        group_handle(g, GROUP_ASKED);
    struct discover_ask ask = {.partition = pop->partition,
                               .namespace_ = pop->namespace_,
                               .task = pop->task,
                               .sub_mode = pop->sub_mode,
                               .sub_from = pop->sub_from};
    call_send(group_discover_call(b, g, pop, &ask), on_discovered);
}

static const struct lane_cols discover_cols = {
    DISCOVER_COL_LANE, DISCOVER_COL_LANE_ID, DISCOVER_COL_LANE_NAME,
    DISCOVER_COL_PARTITION_NAME, DISCOVER_COL_ONLY_GROUP};

static void learn_row(struct broker *b, struct group *g, const struct pg_reply *reply,
                      unsigned row)
{
    struct lane *lane = lane_of_row(b, g->queue, reply, row, discover_cols);
    struct consumer *c = consumer_get(b, g, lane);
    if (pg_reply_i64(reply, row, DISCOVER_COL_CONSUMER) > 0)
        consumer_set_num(b, c, pg_reply_i64(reply, row, DISCOVER_COL_CONSUMER));
    if (c->state == READY || c->state == CLAIMING ||
        !pg_reply_bool(reply, row, DISCOVER_COL_PENDING))
        return;
    if (pg_reply_is_null(reply, row, DISCOVER_COL_LEASE_US)) // another broker may have freed it
        consumer_ready(b, c, false);
    else if (c->state == IDLE && pg_reply_i64(reply, row, DISCOVER_COL_LEASE_US) >= 0)
        consumer_leased(b, c, clock_mono_us(),
                        (uint64_t)pg_reply_i64(reply, row, DISCOVER_COL_LEASE_US), false);
}

static void on_discovered(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *call = pg->owner;
    struct broker *b = call->broker;
    struct pop_op *pop = call->what;
    struct group *g = pop->at;
    bool whole = !pop->partition.ptr;

    if (status != 0 && whole)
        group_handle(g, GROUP_FAILED);
    if (status == 0 && !group_learn(b, g, reply, whole))
        status = call_unexpected(call, "a partition without a number, id or name");
    if (status == 0) {
        if (has_subscription(pop) && (pop->sub_from.len > 0 || !g->checked_from)) {
            group_unsubscribe(g);
            g->checked_from =
                mem_strndup(pop->sub_from.ptr ? pop->sub_from.ptr : "", pop->sub_from.len);
        }
        pop_handle(b, pop, POP_ON_DISCOVERED, 0);
    } else if (status == QE_PG_DATA) {
        fault_set(&pop->op.why, QE_BAD_PARAM, "%s", pg_reply_message(reply));
        pop_handle(b, pop, POP_ON_FAILED, QE_BAD_PARAM);
    } else {
        bool may_wait = is_outage(status) || is_worth_retry(status);
        call_failed(call, status, reply);
        pg_reply_fault(&pop->op.why, status, reply);
        pop_handle(b, pop, may_wait ? POP_ON_DISCOVERY_LOST : POP_ON_FAILED, status);
    }
    call_free(call);
    if (whole)
        group_discovered(b, g);
    broker_wake(b);
}

bool group_learn(struct broker *b, struct group *g, const struct pg_reply *reply, bool whole)
{
    bool learnt = group_is_page(reply);

    if (whole)
        group_handle(g, learnt ? GROUP_LEARNT : GROUP_FAILED);
    if (!learnt)
        return false;
    span after = group_learn_page(b, g, reply);
    if (whole && pg_reply_rows(reply) == 0)
        g->empty_noted_us = clock_mono_us(); // queen.discover_page has written the watermark
    if (after.ptr)
        group_scan(b, g, after);
    return true;
}

// The last row may name the partition behind which the next page begins.
static unsigned page_rows(const struct pg_reply *reply)
{
    unsigned rows = pg_reply_rows(reply);

    return rows > 0 && pg_reply_i64(reply, rows - 1, discover_cols.num) == 0 ? rows - 1 : rows;
}

bool group_is_page(const struct pg_reply *reply)
{
    for (unsigned row = 0, n = page_rows(reply); row < n; row++)
        if (!lane_is_in_row(reply, row, discover_cols) ||
            pg_reply_i64(reply, row, DISCOVER_COL_CONSUMER) < 0)
            return false;
    return true;
}

span group_learn_page(struct broker *b, struct group *g, const struct pg_reply *reply)
{
    unsigned n = page_rows(reply);

    for (unsigned row = 0; row < n; row++)
        learn_row(b, g, reply, row);
    return n < pg_reply_rows(reply) ? pg_reply_bytes(reply, n, discover_cols.name) : SPAN_NONE;
}

void groups_forget(struct broker *b)
{
    struct queue *q, *next_q;
    struct group *g, *next_g;

    HASH_ITER (hh, b->queues, q, next_q)
        HASH_ITER (hh, q->groups, g, next_g)
            group_handle(g, GROUP_MISSED);
}

void group_changed(struct broker *b, struct group *g)
{
    struct consumer *c, *next;

    group_forget(g);
    group_has_room(b, g);
    // Cached leases may have ended.
    HASH_ITER (hh, g->consumers, c, next)
        if (c->state == LEASED || c->state == TIMED)
            consumer_ready(b, c, false);
    group_place_again(b, g, true);
}

void group_discovered(struct broker *b, struct group *g)
{
    struct pop_list unplaced = TAILQ_HEAD_INITIALIZER(unplaced);

    pops_unseat(b, &g->seats, POP_ON_UNSEAT, &unplaced);
    pops_place(b, &unplaced);
}
