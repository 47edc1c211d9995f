// partition_key.c: the number of partitions of a queue, cached or queried.
#include "api/partition_key.h"

#include <stdlib.h>

#include "api/api_int.h"
#include "base/clock.h"
#include "base/fnv.h"
#include "base/map.h"
#include "base/mem.h"
#include "db/sql.gen.h"
#include "pg/params.h"
#include "pg/reply.h"

enum { REMEMBER_US = 10 * 1000 * 1000, MAX_REMEMBERED = 10000, NAME_ROOM = 10 };

struct queue_size {
    UT_hash_handle hh; // by name
    unsigned partitions;
    uint64_t until_us;
    size_t name_len;
    char name[];
};

// One of the queues that a request names.
struct named {
    span queue;
    unsigned partitions; // 0: no fixed set
    bool known;          // partitions was true a moment ago
    bool asked;
};

// In the request's arena.
struct keyed {
    struct http_req *req;
    struct push_item *items;
    unsigned n_items;
    void (*go)(void *ctx);
    void *ctx;
    struct custom_op op;
    struct named *queues;
    unsigned n_queues, n_asked;
    uint32_t *of; // by item: its queue, 1-based; 0: it has no key
};

static void partition_key_query(struct keyed *k);
static void on_partitions_read(struct custom_op *op, int status, const struct pg_reply *reply);
static void place(struct keyed *k);

static struct queue_size *partition_key_find(struct api *api, span queue)
{
    struct queue_size *s;

    HASH_FIND(hh, api->queue_sizes, queue.ptr, queue.len, s);
    return s;
}

static void partition_key_remember(struct api *api, span queue, unsigned partitions)
{
    struct queue_size *s = partition_key_find(api, queue);

    if (!s) {
        if (HASH_COUNT(api->queue_sizes) >= MAX_REMEMBERED)
            partition_keys_forget(api);
        s = mem_zalloc(1, sizeof *s + queue.len + 1);
        s->name_len = queue.len;
        memcpy(s->name, queue.ptr, queue.len);
        HASH_ADD_KEYPTR(hh, api->queue_sizes, s->name, s->name_len, s);
    }
    s->partitions = partitions;
    s->until_us = clock_mono_us() + REMEMBER_US;
}

void partition_keys_forget(struct api *api)
{
    struct queue_size *s = api->queue_sizes, *next;

    HASH_CLEAR(hh, api->queue_sizes);
    for (; s; s = next) {
        next = s->hh.next;
        free(s);
    }
}

// The queue's number, new or not: an open table, as requests may name very many.
static uint32_t partition_key_number_of(struct keyed *k, uint32_t *table, uint32_t mask,
                                        span queue)
{
    for (uint64_t i = XXH3_64bits_withSeed(queue.ptr, queue.len, map_seed);; i++) {
        uint32_t *slot = &table[i & mask];
        if (*slot == 0) {
            k->queues[k->n_queues] = (struct named){.queue = queue};
            *slot = ++k->n_queues;
            return *slot;
        }
        if (span_eq(k->queues[*slot - 1].queue, queue))
            return *slot;
    }
}

void partition_keys_resolve(struct http_req *req, struct push_item *items, unsigned n,
                            void (*go)(void *ctx), void *ctx)
{
    struct api *api = http_req_app(req);
    struct arena *a = http_req_arena(req);
    struct keyed *k = arena_new(a, struct keyed);
    uint64_t now = clock_mono_us();
    uint32_t size = 4;

    while (size < 2 * (uint64_t)n)
        size *= 2;
    *k = (struct keyed){.req = req, .items = items, .n_items = n, .go = go, .ctx = ctx};
    k->queues = arena_new_array(a, struct named, n);
    k->of = arena_new_array(a, uint32_t, n);
    uint32_t *table = arena_new_array(a, uint32_t, size);
    for (unsigned i = 0; i < n; i++) {
        if (!items[i].by_key)
            continue;
        if (i > 0 && k->of[i - 1] > 0 && span_eq(items[i].queue, items[i - 1].queue))
            k->of[i] = k->of[i - 1];
        else
            k->of[i] = partition_key_number_of(k, table, size - 1, items[i].queue);
    }
    for (unsigned i = 0; i < k->n_queues; i++) {
        struct named *q = &k->queues[i];
        const struct queue_size *s = partition_key_find(api, q->queue);
        q->known = s != NULL;
        q->partitions = s ? s->partitions : 0;
        // A queue that had no fixed set may have been created again with one.
        q->asked = !s || s->until_us < now || s->partitions == 0;
        k->n_asked += q->asked;
    }
    if (k->n_asked > 0)
        partition_key_query(k);
    else
        place(k);
}

static void partition_key_query(struct keyed *k)
{
    struct api *api = http_req_app(k->req);

    k->op.statement = &pg_stmt_queue_partitions;
    k->op.first = true;
    k->op.done = on_partitions_read;
    pg_begin_array(&k->op.params, PG_TEXT);
    for (unsigned i = 0; i < k->n_queues; i++)
        if (k->queues[i].asked)
            pg_put_text(&k->op.params, k->queues[i].queue);
    pg_end_array(&k->op.params);
    broker_custom(api->broker, &k->op);
}

static bool knows_all(const struct keyed *k)
{
    for (unsigned i = 0; i < k->n_queues; i++)
        if (!k->queues[i].known)
            return false;
    return true;
}

static void on_partitions_read(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct keyed *k = container_of(op, struct keyed, op);
    struct api *api = http_req_app(k->req);
    unsigned row = 0;

    pg_params_free(&op->params);
    if (status == 0 && pg_reply_rows(reply) != k->n_asked)
        status = QE_PG_SHAPE;
    for (unsigned i = 0; status == 0 && i < k->n_queues; i++) {
        struct named *q = &k->queues[i];
        if (!q->asked)
            continue;
        q->partitions = (unsigned)pg_reply_i32(reply, row++, QUEUE_PARTITIONS_COL_PARTITIONS);
        partition_key_remember(api, q->queue, q->partitions);
    }
    // While the database is unavailable the remembered numbers are used, and the push is
    // buffered.
    if (status == 0 || knows_all(k))
        place(k);
    else
        api_reply_failed(k->req, status, &op->op.why);
}

static void place(struct keyed *k)
{
    for (unsigned i = 0; i < k->n_items; i++) {
        struct push_item *item = &k->items[i];
        if (k->of[i] == 0)
            continue;
        unsigned partitions = k->queues[k->of[i] - 1].partitions;
        if (partitions == 0) {
            http_reply_errf(
                k->req, QE_BAD_REQUEST,
                "item %u: partitionKey is for queues with a fixed set of partitions", i);
            return;
        }
        struct buf name = {.ptr = arena_alloc(http_req_arena(k->req), NAME_ROOM),
                           .cap = NAME_ROOM};
        buf_put_u64(&name, fnv_partition(item->partition, partitions));
        item->partition = buf_span(&name);
        item->by_key = false;
    }
    k->go(k->ctx);
}
