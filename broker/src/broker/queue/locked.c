// Requests that wait for a lane that is locked or in flight.
//
// A lane is locked while another transaction holds its row or is creating its name, for example
// a SQL session that has pushed and not committed. Our statements wait at most 100 ms for such
// a lock (broker/sql/push/push_segments.sql). After that all lanes of the batch are suspects,
// and one small call returns the locked ones (broker/sql/push/locked_lanes.sql). Requests for
// locked lanes wait here, and all others continue. The call is repeated until the lane is free.
// A waiting request uses neither a connection nor a place in a batch (docs/internals/adr/0037).
//
// Requests for a lane in flight wait here as well. In the queue every batch would examine them
// again before the requests that can leave.
//
//      lane_park ──► lane->waiting ──► lane_unpark ──► the front of their queue
//
// A request for several lanes leaves without the parts whose lanes are locked.  Those behind it
// must not overtake it there.  So a lane stays locked while such a request is in flight, and a
// lane that becomes free calls the requests that wait at another locked lane and have a part
// for this one.  The queue is then sorted by arrival.
#include "broker/broker_int.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

enum {
    PROBE_MIN_US = 5 * 1000, // doubled until ...
    PROBE_MAX_US = 160 * 1000,
    PROBE_IDLE_US = 1000 * 1000,    // ... and when no request waits for a locked lane
    MAX_WAIT_US = 60 * 1000 * 1000, // of a request, from when it was given
    LATER_US = 150 * 1000,
};

struct locked_probe {
    unsigned n;
    int64_t nums[];
};

static void on_later_due(struct due *d);
static void on_probe_due(struct due *d);
static void locked_probe_send(struct broker *b);
static void on_locked_probed(struct pg_call *pg, int status, const struct pg_reply *reply);
static void locked_free(struct broker *b, struct lane *lane);
static bool locked_expire(struct broker *b);
static void locked_refuse(struct broker *b, struct op *op, int status);

// ---- waiting for a lane ----

static void probe_in(struct broker *b, uint64_t us)
{
    due_set(&b->due, &b->locked_due, clock_mono_us() + us, on_probe_due);
}

// At the end.  But one that has been out and left this part of it behind goes in front of those
// that came after it.
static void insert(struct op_list *waiting, struct op *op)
{
    struct op *before = NULL, *o;

    if (!STAILQ_EMPTY(waiting) &&
        container_of(waiting->stqh_last, struct op, link.stqe_next)->arrival > op->arrival) {
        for (o = STAILQ_FIRST(waiting); o->arrival <= op->arrival; o = STAILQ_NEXT(o, link))
            before = o;
        if (before)
            STAILQ_INSERT_AFTER(waiting, before, op, link);
        else
            STAILQ_INSERT_HEAD(waiting, op, link);
        return;
    }
    STAILQ_INSERT_TAIL(waiting, op, link);
}

void lane_park(struct broker *b, struct lane *lane, struct op *op, struct op_list *queue)
{
    if (lane->locked && op->kind == OP_PUSH && container_of(op, struct push_op, op)->replay) {
        // Others wait for what comes behind it in the buffer: replay.c keeps the rest.
        push_finish(b, container_of(op, struct push_op, op), 0);
        return;
    }
    b->n_parked_ops++;
    if (lane->locked && b->n_parked_ops > b->conf.max_pending / 2) { // room for the others
        locked_refuse(b, op, QE_BUSY);
        return;
    }
    if (STAILQ_EMPTY(&lane->waiting)) {
        TAILQ_INSERT_TAIL(&b->parked_lanes, lane, parked);
        if (lane->locked && b->locked_due.at_us > clock_mono_us() + PROBE_MAX_US)
            probe_in(b, 0);
    }
    insert(&lane->waiting, op);
    op->parked_from = queue;
}

static unsigned *requests_of(struct broker *b, const struct op_list *queue)
{
    for (unsigned kind = 0; kind < OP_KINDS; kind++)
        if (queue == &b->ops[kind].queue)
            return &b->ops[kind].n_requests;
    return NULL;
}

// only: those of this queue; NULL: all.
static void unpark_op(struct broker *b, struct lane *lane, const struct op_list *only)
{
    struct op_list *queues[] = {&b->ops[OP_PUSH].queue, &b->schedule_queue,
                                &b->ops[OP_TRANSACTION].queue, &b->ops[OP_CYCLE].queue};
    struct op_list front[countof(queues)], stay = STAILQ_HEAD_INITIALIZER(stay);
    struct op *op;
    unsigned before = b->n_parked_ops;

    if (STAILQ_EMPTY(&lane->waiting))
        return;
    for (unsigned i = 0; i < countof(queues); i++)
        STAILQ_INIT(&front[i]);
    while ((op = STAILQ_FIRST(&lane->waiting))) {
        unsigned i = 0;
        STAILQ_REMOVE_HEAD(&lane->waiting, link);
        if (only && op->parked_from != only) {
            STAILQ_INSERT_TAIL(&stay, op, link);
            continue;
        }
        while (queues[i] != op->parked_from)
            i++;
        STAILQ_INSERT_TAIL(&front[i], op, link);
        unsigned *n = requests_of(b, queues[i]);
        if (n)
            ++*n;
        if (i == 0)
            b->ops[OP_PUSH].n_items += container_of(op, struct push_op, op)->n_pending;
        b->n_parked_ops--;
    }
    STAILQ_CONCAT(&lane->waiting, &stay);
    if (STAILQ_EMPTY(&lane->waiting))
        TAILQ_REMOVE(&b->parked_lanes, lane, parked);
    for (unsigned i = 0; i < countof(queues); i++) {
        STAILQ_CONCAT(&front[i], queues[i]);
        STAILQ_CONCAT(queues[i], &front[i]);
    }
    if (b->n_parked_ops < before)
        broker_wake(b);
}

void lane_unpark(struct broker *b, struct lane *lane) { unpark_op(b, lane, NULL); }

void pushes_unpark(struct broker *b)
{
    struct lane *lane, *next;
    unsigned before = b->n_parked_ops;

    for (lane = TAILQ_FIRST(&b->parked_lanes); lane; lane = next) {
        next = TAILQ_NEXT(lane, parked);
        unpark_op(b, lane, &b->ops[OP_PUSH].queue);
    }
    if (b->n_parked_ops < before)
        pushes_sort(b);
}

static bool has_part(const struct push_op *push, const struct lane *lane)
{
    for (unsigned i = 0; i < push->n_items; i++)
        if (push->items[i].lane == lane &&
            (push->items[i].status == PUSH_PENDING || push->items[i].status == PUSH_LATER))
            return true;
    return false;
}

// Whether a request that waits at another locked lane leaves when this one is free.
static bool is_called(const struct broker *b, struct op *op, const struct lane *lane)
{
    const struct push_op *push = container_of(op, struct push_op, op);

    return op->parked_from == &b->ops[OP_PUSH].queue && push->several && !op->whole &&
           push->n_pending > 0 && has_part(push, lane);
}

// The first push that waits at `at`, has a part for the lane and arrived before.
static struct push_op *parked_for(struct broker *b, const struct lane *at,
                                  const struct lane *lane, uint64_t arrival)
{
    struct op *op;

    for (op = STAILQ_FIRST(&at->waiting); op && op->arrival < arrival;
         op = STAILQ_NEXT(op, link))
        if (at == lane ? op->parked_from == &b->ops[OP_PUSH].queue : is_called(b, op, lane))
            return container_of(op, struct push_op, op);
    return NULL;
}

struct push_op *lane_parked_push(struct broker *b, struct lane *lane, uint64_t arrival,
                                 struct lane **at)
{
    struct push_op *first = parked_for(b, lane, lane, arrival);

    *at = lane;
    // A lane that is not locked has called its parts already.
    for (unsigned i = 0; lane->locked && i < b->n_locked; i++) {
        struct push_op *push =
            parked_for(b, b->locked[i], lane, first ? first->op.arrival : arrival);
        if (push) {
            first = push;
            *at = b->locked[i];
        }
    }
    return first;
}

void lane_take_parked(struct broker *b, struct lane *lane, struct op *op)
{
    STAILQ_REMOVE(&lane->waiting, op, op, link);
    if (STAILQ_EMPTY(&lane->waiting))
        TAILQ_REMOVE(&b->parked_lanes, lane, parked);
    b->n_parked_ops--;
}

struct lane *lanes_find_locked(const struct push_item *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (items[i].lane->locked)
            return items[i].lane;
    return NULL;
}

// ---- locked consumers ----

// A SQL session that has popped or acknowledged and not committed holds a consumer.  The
// request does not name its consumers, so it is repeated alone.  Only one such request runs at
// a time, because each attempt keeps a connection busy for 100 ms.
bool op_try_later(struct broker *b, struct op *op, struct op_list *queue)
{
    uint64_t now = clock_mono_us();

    if (now - op->since_us >= MAX_WAIT_US || b->closing)
        return false;
    op->alone = op->waited = true;
    op->parked_from = queue;
    STAILQ_INSERT_TAIL(&b->later, op, link);
    if (!due_is_set(&b->later_due))
        due_set(&b->due, &b->later_due, now + LATER_US, on_later_due);
    return true;
}

static void later_take(struct broker *b)
{
    struct op *op = STAILQ_FIRST(&b->later);
    unsigned *n = requests_of(b, op->parked_from);

    STAILQ_REMOVE_HEAD(&b->later, link);
    STAILQ_INSERT_HEAD(op->parked_from, op, link);
    ++*n;
    if (op->kind == OP_ACK)
        b->ops[OP_ACK].n_items += container_of(op, struct ack_op, op)->n_entries;
    broker_wake(b);
}

static void on_later_due(struct due *d)
{
    struct broker *b = container_of(d, struct broker, later_due);

    if (STAILQ_EMPTY(&b->later))
        return;
    later_take(b);
    due_set(&b->due, &b->later_due, clock_mono_us() + LATER_US, on_later_due);
}

void op_try_next(struct broker *b)
{
    if (!STAILQ_EMPTY(&b->later))
        later_take(b);
}

// ---- locked lanes ----

void lane_suspect(struct broker *b, struct lane *lane)
{
    if (!lane->locked) {
        lane->locked = true;
        if (b->n_locked == b->cap_locked) {
            b->cap_locked = b->cap_locked > 0 ? b->cap_locked * 2 : 16;
            b->locked = mem_realloc(b->locked, b->cap_locked * sizeof *b->locked);
        }
        b->locked[b->n_locked++] = lane;
    }
    b->locked_interval_us = PROBE_MIN_US;
    probe_in(b, 0);
    broker_wake(b);
}

void items_suspect(struct broker *b, const struct push_item *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (i == 0 || items[i].lane != items[i - 1].lane)
            lane_suspect(b, items[i].lane);
}

// Requests that wait at another locked lane and have a part for this one go on with it.
static void call_parts(struct broker *b, struct lane *lane)
{
    for (unsigned i = 0; i < b->n_locked; i++) {
        struct lane *other = b->locked[i];
        struct op_list stay = STAILQ_HEAD_INITIALIZER(stay);
        struct op *op;
        if (other == lane || STAILQ_EMPTY(&other->waiting))
            continue;
        while ((op = STAILQ_FIRST(&other->waiting))) {
            STAILQ_REMOVE_HEAD(&other->waiting, link);
            if (!is_called(b, op, lane)) {
                STAILQ_INSERT_TAIL(&stay, op, link);
                continue;
            }
            if (STAILQ_EMPTY(&lane->waiting))
                TAILQ_INSERT_TAIL(&b->parked_lanes, lane, parked);
            insert(&lane->waiting, op);
        }
        STAILQ_CONCAT(&other->waiting, &stay);
        if (STAILQ_EMPTY(&other->waiting))
            TAILQ_REMOVE(&b->parked_lanes, other, parked);
    }
}

static int compare_arrivals(const void *a, const void *b)
{
    uint64_t x = (*(struct op *const *)a)->arrival, y = (*(struct op *const *)b)->arrival;

    return (x > y) - (x < y);
}

void pushes_sort(struct broker *b)
{
    struct op_list *queue = &b->ops[OP_PUSH].queue;
    struct op *op, **ops;
    unsigned n = 0, i = 0;

    b->unsorted = false;
    STAILQ_FOREACH (op, queue, link)
        n++;
    ops = mem_new_array(struct op *, n);
    STAILQ_FOREACH (op, queue, link)
        ops[i++] = op;
    qsort(ops, n, sizeof *ops, compare_arrivals);
    STAILQ_INIT(queue);
    for (i = 0; i < n; i++)
        STAILQ_INSERT_TAIL(queue, ops[i], link);
    free(ops);
}

// Takes it out of b->locked, too: whoever walks that list must go backwards.
static void locked_free(struct broker *b, struct lane *lane)
{
    lane->seen_free = lane->n_behind > 0;
    if (lane->seen_free)
        return; // until the requests with these parts have landed: see lane_part_landed()
    call_parts(b, lane);
    unsigned i = 0;

    while (b->locked[i] != lane)
        i++;
    b->locked[i] = b->locked[--b->n_locked];
    lane->locked = false;
    // The probes of its name end here.  The number may have come from elsewhere, and may be
    // forgotten later: then it must be possible to query it.
    lane->resolving = lane->asking;
    lane_unpark(b, lane);
    b->unsorted = true;
}

void lane_part_landed(struct broker *b, struct lane *lane)
{
    if (--lane->n_behind > 0 || !lane->seen_free)
        return;
    b->locked_interval_us = PROBE_MIN_US;
    probe_in(b, 0);
}

static void on_probe_due(struct due *d)
{
    struct broker *b = container_of(d, struct broker, locked_due);

    if (b->closing || b->n_locked == 0)
        return;
    bool is_idle = !locked_expire(b) && b->locked_interval_us >= PROBE_MAX_US;
    if (!b->locked_probing)
        locked_probe_send(b);
    b->locked_interval_us *= 2;
    if (b->locked_interval_us > PROBE_MAX_US)
        b->locked_interval_us = PROBE_MAX_US;
    probe_in(b, is_idle ? PROBE_IDLE_US : b->locked_interval_us);
}

// Lanes without a number are names that another transaction is creating: they are resolved
// again.
static void locked_probe_send(struct broker *b)
{
    struct locked_probe *probe =
        mem_zalloc(1, sizeof *probe + b->n_locked * sizeof probe->nums[0]);

    for (unsigned i = b->n_locked; i-- > 0;) {
        struct lane *lane = b->locked[i];
        if (lane->num != 0)
            probe->nums[probe->n++] = lane->num;
        else if (b->locked_interval_us < PROBE_MAX_US || !STAILQ_EMPTY(&lane->waiting) ||
                 lane->asking)
            lane_ask_alone(b, lane);
        else // no request waits for it, and resolving it might create it in a deleted queue
            locked_free(b, lane);
    }
    if (probe->n == 0) {
        free(probe);
        return;
    }
    b->locked_probing = true;
    struct call *c = call_new(b, &pg_stmt_locked_lanes, probe);
    pg_begin_array(&c->params, PG_INT8);
    for (unsigned i = 0; i < probe->n; i++)
        pg_put_i64(&c->params, probe->nums[i]);
    pg_end_array(&c->params);
    call_send(c, on_locked_probed);
}

static int compare_nums(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void on_locked_probed(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct locked_probe *probe = c->what;

    b->locked_probing = false;
    if (status != 0)
        log_debug("locked.failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
    else {
        unsigned n_rows = pg_reply_rows(reply);
        int64_t *locked = mem_new_array(int64_t, n_rows + 1);
        for (unsigned row = 0; row < n_rows; row++)
            locked[row] = pg_reply_i64(reply, row, LOCKED_LANES_COL_LANE);
        qsort(locked, n_rows, sizeof *locked, compare_nums);
        qsort(probe->nums, probe->n, sizeof probe->nums[0], compare_nums);
        for (unsigned i = b->n_locked; i-- > 0;) {
            struct lane *lane = b->locked[i];
            int64_t num = lane->num;
            // A lane suspected since then was not part of the query.
            if (bsearch(&num, probe->nums, probe->n, sizeof num, compare_nums) &&
                !bsearch(&num, locked, n_rows, sizeof num, compare_nums))
                locked_free(b, lane);
        }
        free(locked);
    }
    free(probe);
    call_free(c);
    broker_wake(b);
}

void lane_resolved(struct broker *b, struct lane *lane)
{
    if (lane->locked)
        locked_free(b, lane);
}

// ---- requests that have waited too long ----

static void locked_refuse(struct broker *b, struct op *op, int status)
{
    fault_set(&op->why, status, "%s",
              status == QE_PG_RETRY
                  ? "the partition is locked by another transaction of PostgreSQL"
                  : err_text(status));
    b->n_parked_ops--;
    if (op->kind == OP_PUSH)
        push_finish(b, container_of(op, struct push_op, op), status);
    else if (op->kind == OP_TRANSACTION)
        transaction_finish(b, container_of(op, struct tx_op, op), status);
    else
        cycle_finish(b, container_of(op, struct cycle_op, op), status);
}

// Finishes what waits at the lane and was given before; the oldest stand in front, nearly.
static void locked_refuse_until(struct broker *b, struct lane *lane, uint64_t since_us,
                                int status)
{
    struct op *op;

    while ((op = STAILQ_FIRST(&lane->waiting)) && op->since_us <= since_us) {
        STAILQ_REMOVE_HEAD(&lane->waiting, link);
        if (STAILQ_EMPTY(&lane->waiting))
            TAILQ_REMOVE(&b->parked_lanes, lane, parked);
        locked_refuse(b, op, status);
    }
}

// Whether requests still wait for a locked lane.
static bool locked_expire(struct broker *b)
{
    uint64_t now = clock_mono_us();
    bool any = false;

    for (unsigned i = 0; i < b->n_locked; i++) {
        if (now > MAX_WAIT_US)
            locked_refuse_until(b, b->locked[i], now - MAX_WAIT_US, QE_PG_RETRY);
        any = any || !STAILQ_EMPTY(&b->locked[i]->waiting);
    }
    return any;
}

void lanes_refuse_parked(struct broker *b)
{
    struct lane *lane;
    struct op *op;

    while ((lane = TAILQ_FIRST(&b->parked_lanes)))
        locked_refuse_until(b, lane, UINT64_MAX, QE_STOPPING);
    while ((op = STAILQ_FIRST(&b->later))) {
        STAILQ_REMOVE_HEAD(&b->later, link);
        fault_set(&op->why, QE_STOPPING, "%s", err_text(QE_STOPPING));
        if (op->kind == OP_TRANSACTION)
            transaction_finish(b, container_of(op, struct tx_op, op), QE_STOPPING);
        else
            op_finish(b, op, QE_STOPPING);
    }
}
