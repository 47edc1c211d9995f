// Queues and lanes by name and number, and the asking for numbers.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

// Names are kept so that a push finds its lane without asking.  Beyond this many, lanes that
// nobody waits for are forgotten, least recently used first; they are found again by name.
enum { EVICT_AT_ONCE = 64 };

enum { RETRY_KEY = 17 }; // a NUL, which no name of a partition holds, and the lane's id

static void evict(struct broker *b);
static struct lane *lane_make(struct broker *b, struct queue *q, span key, span more);
static void on_lanes(struct pg_call *pg, int status, const struct pg_reply *reply);

struct queue *queue_find(struct broker *b, span name)
{
    struct queue *q;

    HASH_FIND(hh, b->queues, name.ptr, name.len, q);
    return q;
}

struct queue *queue_get(struct broker *b, span name)
{
    struct queue *q = queue_find(b, name);

    if (!q) {
        q = mem_zalloc(1, sizeof *q + name.len + 1);
        q->broker = b;
        q->name_len = name.len;
        memcpy(q->name, name.ptr ? name.ptr : "", name.len);
        HASH_ADD_KEYPTR(hh, b->queues, q->name, q->name_len, q);
        atomic_store_explicit(&b->stats.queues, HASH_COUNT(b->queues), memory_order_relaxed);
    }
    return q;
}

struct lane *lane_get(struct broker *b, struct queue *q, span name)
{
    struct lane *lane;

    HASH_FIND(hh, q->lanes, name.ptr, name.len, lane);
    if (!lane)
        return lane_make(b, q, name, SPAN_NONE);
    TAILQ_REMOVE(&b->recent_lanes, lane, recent);
    TAILQ_INSERT_TAIL(&b->recent_lanes, lane, recent);
    return lane;
}

// queen.partition_priority does the same.
static uint8_t lane_priority(span name)
{
    return lane_names_priority(name) ? (uint8_t)(name.ptr[name.len - 1] - '0') : 0;
}

// queen.partition_key and queen.key_partitions do the same.
unsigned lanes_of_key(const struct lane *lane, struct lane *found[LANE_PRIORITIES + 1])
{
    enum { NAME = 4 * 255 }; // bytes of 255 characters
    char name[NAME];
    span key = lane_shown(lane);
    unsigned n = 0;

    key.len -= lane_names_priority(key) ? 3 : 0;
    memcpy(name, key.ptr, key.len < NAME ? key.len : NAME);
    for (unsigned p = LANE_PRIORITIES; p-- > 0 && key.len + 3 <= NAME;) {
        memcpy(name + key.len, "~p", 2);
        name[key.len + 2] = (char)('0' + p);
        HASH_FIND(hh, lane->queue->lanes, name, key.len + 3, found[n]);
        n += found[n] != NULL;
    }
    if (!lane_names_priority(key)) {
        HASH_FIND(hh, lane->queue->lanes, key.ptr, key.len, found[n]);
        n += found[n] != NULL;
    }
    return n;
}

// more: kept behind the name.
static struct lane *lane_make(struct broker *b, struct queue *q, span key, span more)
{
    if (b->n_lanes >= b->limits.lanes)
        evict(b);
    struct lane *lane = mem_zalloc(1, sizeof *lane + key.len + more.len + 1);
    lane->queue = q;
    lane->name_len = key.len;
    memcpy(lane->name, key.ptr, key.len);
    lane->priority = lane_priority(key);
    lane->work = q->work;
    if (more.len > 0)
        memcpy(lane->name + key.len, more.ptr, more.len);
    LIST_INIT(&lane->consumers);
    STAILQ_INIT(&lane->waiting);
    LIST_INIT(&lane->retries);
    HASH_ADD_KEYPTR(hh, q->lanes, lane->name, lane->name_len, lane);
    TAILQ_INSERT_TAIL(&b->recent_lanes, lane, recent);
    q->n_lanes++;
    atomic_store_explicit(&b->stats.lanes, ++b->n_lanes, memory_order_relaxed);
    return lane;
}

struct lane *lane_get_retry(struct broker *b, struct queue *q, const uint8_t id[16],
                            span partition, span group)
{
    char key[RETRY_KEY] = {0};
    struct lane *lane;

    memcpy(key + 1, id, 16);
    HASH_FIND(hh, q->lanes, key, sizeof key, lane);
    if (lane)
        return lane;
    struct lane *origin = lane_get(b, q, partition);
    origin->pins++; // it must not be evicted to make room
    lane = lane_make(b, q, (span){key, sizeof key}, group);
    origin->pins--;
    lane->only = (span){lane->name + sizeof key, group.len};
    lane->careful = true;
    lane->origin = origin;
    lane->priority = origin->priority;
    LIST_INSERT_HEAD(&origin->retries, lane, of_origin);
    return lane;
}

bool lane_is_in_row(const struct pg_reply *reply, unsigned row, struct lane_cols cols)
{
    return pg_reply_i64(reply, row, cols.num) > 0 && pg_reply_uuid(reply, row, cols.id) &&
           pg_reply_bytes(reply, row, cols.name).ptr &&
           (pg_reply_is_null(reply, row, cols.group) ||
            pg_reply_bytes(reply, row, cols.partition).ptr);
}

struct lane *lane_of_row(struct broker *b, struct queue *q, const struct pg_reply *reply,
                         unsigned row, struct lane_cols cols)
{
    const uint8_t *id = pg_reply_uuid(reply, row, cols.id);
    struct lane *lane =
        pg_reply_is_null(reply, row, cols.group)
            ? lane_get(b, q, pg_reply_bytes(reply, row, cols.name))
            : lane_get_retry(b, q, id, pg_reply_bytes(reply, row, cols.partition),
                             pg_reply_bytes(reply, row, cols.group));

    lane_set_num(b, lane, pg_reply_i64(reply, row, cols.num), id);
    return lane;
}

span lane_shown(const struct lane *lane)
{
    const struct lane *shown = lane->origin ? lane->origin : lane;

    return (span){shown->name, shown->name_len};
}

void lane_set_num(struct broker *b, struct lane *lane, int64_t num, const uint8_t id[16])
{
    if (lane->num == num)
        return;
    if (lane->num != 0)
        lane_forget_num(b, lane);
    lane->num = num;
    memcpy(lane->id, id, 16);
}

// The queue was deleted (and perhaps created again): its cached consumers are invalid.
void lane_forget_num(struct broker *b, struct lane *lane)
{
    if (lane->num == 0)
        return;
    lane->num = lane->last_seq = 0;
    lane->limited = lane->careful = lane->work = false;
    struct consumer *c, *next;
    for (c = LIST_FIRST(&lane->consumers); c; c = next) {
        next = LIST_NEXT(c, of_lane);
        consumer_gone(b, c);
    }
}

static bool is_evictable(const struct lane *lane)
{
    const struct consumer *c;

    if (lane->pins > 0 || lane->pushing || lane->resolving || lane->locked ||
        !LIST_EMPTY(&lane->retries))
        return false;
    LIST_FOREACH (c, &lane->consumers, of_lane)
        if (c->state != IDLE || c->asking || !TAILQ_EMPTY(&c->seats))
            return false;
    return true;
}

static void lane_free(struct broker *b, struct lane *lane)
{
    struct consumer *c;
    struct lane *retry;

    while ((c = LIST_FIRST(&lane->consumers)))
        consumer_gone(b, c);
    while ((retry = LIST_FIRST(&lane->retries))) { // at the end only: else it is not evictable
        LIST_REMOVE(retry, of_origin);
        retry->origin = NULL;
        lane_free(b, retry);
    }
    if (lane->origin)
        LIST_REMOVE(lane, of_origin);
    HASH_DELETE(hh, lane->queue->lanes, lane);
    TAILQ_REMOVE(&b->recent_lanes, lane, recent);
    lane->queue->n_lanes--;
    atomic_store_explicit(&b->stats.lanes, --b->n_lanes, memory_order_relaxed);
    free(lane);
}

static void evict(struct broker *b)
{
    struct lane *lane = TAILQ_FIRST(&b->recent_lanes), *next;

    for (unsigned i = 0; i < EVICT_AT_ONCE && lane; i++, lane = next) {
        next = TAILQ_NEXT(lane, recent);
        if (is_evictable(lane)) {
            lane_free(b, lane);
        } else { // in use: the next one that is made looks at others
            TAILQ_REMOVE(&b->recent_lanes, lane, recent);
            TAILQ_INSERT_TAIL(&b->recent_lanes, lane, recent);
        }
    }
}

static void list_add(struct lane ***list, unsigned *n, unsigned *cap, struct lane *lane)
{
    if (*n == *cap) {
        *cap = *cap > 0 ? *cap * 2 : 64;
        *list = mem_realloc(*list, *cap * sizeof **list);
    }
    (*list)[(*n)++] = lane;
}

void lane_resolve(struct broker *b, struct lane *lane)
{
    if (lane->num != 0 || lane->resolving)
        return;
    lane->resolving = lane->asking = true;
    list_add(&b->unresolved, &b->n_unresolved, &b->cap_unresolved, lane);
}

void lane_ask_alone(struct broker *b, struct lane *lane)
{
    if (lane->asking)
        return;
    lane->resolving = lane->asking = true;
    list_add(&b->alone, &b->n_alone, &b->cap_alone, lane);
    broker_wake(b);
}

bool lane_is_known(struct broker *b, struct lane *lane)
{
    if (lane->num == 0 && !lane->resolving) {
        lane_resolve(b, lane);
        broker_wake(b);
    }
    return lane->num != 0;
}

bool lanes_are_known(struct broker *b, const struct push_item *items, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!lane_is_known(b, items[i].lane))
            return false;
    return true;
}

// Names that one call resolves at most.
enum { LANES_AT_ONCE = 2000 };

struct lanes_asked {
    bool alone; // one by one
    unsigned n;
    struct lane *lanes[];
};

// Resolves LANES_AT_ONCE names.  The rest follows after the answer, because a request with very
// many new queues must not exceed the statement timeout.
static void lanes_ask(struct broker *b, struct lane **lanes, unsigned *n, bool alone)
{
    unsigned n_now = *n < LANES_AT_ONCE ? *n : LANES_AT_ONCE;
    struct lanes_asked *asked = mem_zalloc(1, sizeof *asked + n_now * sizeof(struct lane *));
    asked->alone = alone;
    asked->n = n_now;
    counter_add(&b->stats.lanes_asked, asked->n);
    memcpy(asked->lanes, lanes, asked->n * sizeof(struct lane *));
    *n -= n_now;
    memmove(lanes, lanes + n_now, *n * sizeof(struct lane *));

    struct call *c = call_new(b, &pg_stmt_ensure_lanes, asked);
    pg_begin_array(&c->params, PG_TEXT);
    for (unsigned i = 0; i < asked->n; i++)
        pg_put_text(&c->params,
                    (span){asked->lanes[i]->queue->name, asked->lanes[i]->queue->name_len});
    pg_end_array(&c->params);
    pg_begin_array(&c->params, PG_TEXT);
    for (unsigned i = 0; i < asked->n; i++)
        pg_put_text(&c->params, (span){asked->lanes[i]->name, asked->lanes[i]->name_len});
    pg_end_array(&c->params);
    pg_param_bool(&c->params, alone);
    call_send(c, on_lanes);
}

void lanes_flush(struct broker *b)
{
    if (b->n_unresolved > 0 && !b->resolving) {
        b->resolving = true;
        lanes_ask(b, b->unresolved, &b->n_unresolved, false);
    }
    if (b->n_alone > 0 && !b->resolving_alone) {
        b->resolving_alone = true;
        lanes_ask(b, b->alone, &b->n_alone, true);
    }
}

static void fail_unresolved(struct broker *b, const struct fault *why)
{
    pushes_fail_unresolved(b, why);
    schedules_fail_unresolved(b, why);
    transactions_fail_unresolved(b, why);
    cycles_fail_unresolved(b, why);
}

// A row of the answer.  false: the queue has a fixed set of partitions without this one.
static bool read_lane(struct broker *b, struct lane *lane, const struct pg_reply *reply,
                      unsigned row)
{
    int64_t num = pg_reply_i64(reply, row, ENSURE_LANES_COL_LANE);

    if (num == 0) { // another transaction is creating it
        if (!lane->locked)
            lane_suspect(b, lane);
        return true;
    }
    lane_resolved(b, lane);
    lane->refused = num < 0;
    if (!lane->refused)
        lane_set_num(b, lane, num, pg_reply_uuid(reply, row, ENSURE_LANES_COL_LANE_ID));
    return !lane->refused;
}

// Its number is still not known.
static void lane_ask_again(struct broker *b, struct lane *lane, bool alone)
{
    if (lane->locked)
        lane->resolving = true; // locked.c queries it later
    else if (alone)
        lane_ask_alone(b, lane);
    else
        lane_resolve(b, lane);
}

static void on_lanes(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct lanes_asked *asked = c->what;
    bool any_refused = false, alone = asked->alone;

    if (alone)
        b->resolving_alone = false;
    else
        b->resolving = false;
    for (unsigned i = 0; i < asked->n; i++)
        asked->lanes[i]->resolving = asked->lanes[i]->asking = false;
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++)
        if ((unsigned)pg_reply_i32(reply, row, ENSURE_LANES_COL_IDX) >= asked->n ||
            (pg_reply_i64(reply, row, ENSURE_LANES_COL_LANE) > 0 &&
             !pg_reply_uuid(reply, row, ENSURE_LANES_COL_LANE_ID)))
            status =
                call_unexpected(c, "a partition that was not asked for, or without its id");
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        unsigned i = (unsigned)pg_reply_i32(reply, row, ENSURE_LANES_COL_IDX);
        if (!read_lane(b, asked->lanes[i], reply, row))
            any_refused = true;
    }
    bool none = status == 0 && pg_reply_rows(reply) == 0;
    if (status != 0 && !is_worth_retry(status)) {
        struct fault why;
        if (status == QE_PG_SHAPE)
            fault_set(&why, status, "%s", err_text(status));
        else
            pg_reply_fault(&why, status, reply);
        call_failed(c, status, reply);
        for (unsigned i = 0; i < asked->n; i++)
            lane_resolved(b, asked->lanes[i]);
        // Names were checked at the door, so what fails here is the database: for all who wait.
        fail_unresolved(b, &why);
    } else {
        if (any_refused) {
            struct fault why;
            fault_set(&why, QE_WRONG_PARTITION, "%s", err_text(QE_WRONG_PARTITION));
            fail_unresolved(b, &why);
        }
        // One of the names is locked: which?
        alone = alone || (status != 0 && pg_reply_is_locked(reply));
        for (unsigned i = 0; i < asked->n; i++) {
            struct lane *lane = asked->lanes[i];
            if (lane->refused)
                lane->refused = false; // the next request resolves it again
            else if (lane->num ==
                     0) { // locked, not resolved yet, or deleted between two statements
                if (none && !lane->locked)
                    lane_suspect(b, lane); // not again at once, without end
                lane_ask_again(b, lane, alone);
            }
        }
    }
    free(asked);
    call_free(c);
    broker_wake(b);
}

void broker_queue_changed(struct broker *b, span queue) { notify_queue(b, queue); }

void lanes_distrust(struct broker *b, span queue)
{
    // These are only hints for how to send; the database decides.
    struct queue *q = queue_find(b, queue);
    struct lane *lane, *next;

    atomic_fetch_add_explicit(&b->house->n_changes, 1, memory_order_relaxed);
    if (!q)
        return;
    HASH_ITER (hh, q->lanes, lane, next)
        lane->limited = lane->careful = lane->work = false;
}

void lanes_free(struct broker *b)
{
    struct queue *q, *next_q;

    while (!TAILQ_EMPTY(&b->recent_lanes))
        lane_free(b, TAILQ_FIRST(&b->recent_lanes));
    // The tables go first, so that nothing points to what is freed.
    q = b->queues;
    HASH_CLEAR(hh, b->queues);
    for (; q; q = next_q) {
        struct group *g = q->groups, *next_g;
        next_q = q->hh.next;
        HASH_CLEAR(hh, q->groups);
        for (; g; g = next_g) {
            next_g = g->hh.next;
            free(g->checked_from);
            free(g);
        }
        free(q);
    }
}
