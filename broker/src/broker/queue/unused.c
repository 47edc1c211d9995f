// Evicts unused queues, groups with their consumers, and selectors.
//
// Clients choose these names, so the memory for them must be bounded. A group is evicted after
// ten minutes without a pop, or earlier, least recently used first, when a limit is exceeded. A
// group with pops, leases, calls in flight or a selector stays. An evicted group is discovered
// again by its next pop, at the cost of one call. Until then new partitions cost it neither
// memory nor rows of queen.consumers.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"

static const uint64_t idle_us = 10ull * 60 * 1000 * 1000;

enum {
    LOOK_US = 60 * 1000 * 1000,
    AGAIN_US = 100 * 1000,
    GROUPS_AT_ONCE = 64,
    CONSUMERS_AT_ONCE = 20000,
    QUEUES_AT_ONCE = 1000,
};

static void on_unused_look(struct due *d);

void unused_start(struct broker *b)
{
    b->limits.lanes = 200000;
    b->limits.groups = 20000;
    b->limits.consumers = 1000000;
    due_set(&b->due, &b->unused_due, clock_mono_us() + LOOK_US, on_unused_look);
}

static void touch(struct broker *b, struct group *g, uint64_t now)
{
    g->used_us = now;
    TAILQ_REMOVE(&b->recent_groups, g, recent);
    TAILQ_INSERT_TAIL(&b->recent_groups, g, recent);
}

void group_begin_pop(struct group *g) { g->n_pops++; }

void group_end_pop(struct broker *b, struct group *g)
{
    g->n_pops--;
    touch(b, g, clock_mono_us());
}

static bool is_unused(const struct group *g)
{
    return g->n_pops == 0 && g->n_busy == 0 && g->n_asking == 0 && !group_is_discovering(g) &&
           g->scan == SCAN_NONE && !g->noting && LIST_EMPTY(&g->selectors);
}

static void group_free(struct broker *b, struct group *g)
{
    struct consumer *c, *next;

    HASH_ITER (hh, g->consumers, c, next)
        consumer_gone(b, c);
    HASH_DELETE(hh, g->queue->groups, g);
    TAILQ_REMOVE(&b->recent_groups, g, recent);
    b->n_groups--;
    due_cancel(&b->due, &g->full_due);
    free(g->checked_from);
    free(g);
}

bool is_beyond_limits(const struct broker *b)
{
    return b->n_groups > b->limits.groups ||
           atomic_load_explicit(&b->stats.consumers, memory_order_relaxed) >
               b->limits.consumers;
}

void unused_forget(struct broker *b)
{
    uint64_t now = clock_mono_us();
    unsigned n_consumers = 0;
    struct group *g;

    for (unsigned i = 0; i < GROUPS_AT_ONCE && n_consumers < CONSUMERS_AT_ONCE; i++) {
        g = TAILQ_FIRST(&b->recent_groups);
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        if (!g || (now - g->used_us < idle_us && !is_beyond_limits(b)))
            return;
        n_consumers += HASH_COUNT(g->consumers);
        if (is_unused(g))
            group_free(b, g);
        else
            touch(b, g, now);
    }
}

static bool is_unused_queue(const struct queue *q)
{
    return !q->lanes && !q->groups && !q->notes.is_touched && q->notes.n_parked == 0 &&
           q->notes.parked_recorded == 0;
}

// Those that stay go to the end, so that the next step looks at others.
// NOLINTBEGIN(clang-analyzer-*): it does not follow the links of the hash table
static void forget_queues(struct broker *b)
{
    struct queue *q;

    for (unsigned i = 0, n = HASH_COUNT(b->queues); i < n && i < QUEUES_AT_ONCE; i++) {
        q = b->queues;
        HASH_DELETE(hh, b->queues, q);
        if (q->notes.is_touched && !b->recorder) { // no recorder will write its metrics
            LIST_REMOVE(q, notes.touched);
            q->notes.is_touched = false;
        }
        if (is_unused_queue(q))
            free(q);
        else
            HASH_ADD_KEYPTR(hh, b->queues, q->name, q->name_len, q);
    }
    atomic_store_explicit(&b->stats.queues, HASH_COUNT(b->queues), memory_order_relaxed);
}
// NOLINTEND(clang-analyzer-*)

static void on_unused_look(struct due *d)
{
    struct broker *b = container_of(d, struct broker, unused_due);
    uint64_t now = clock_mono_us();

    selectors_forget(b, now > idle_us ? now - idle_us : 0);
    unused_forget(b);
    forget_queues(b);
    const struct group *g = TAILQ_FIRST(&b->recent_groups);
    due_set(&b->due, d, now + (g && now - g->used_us >= idle_us ? AGAIN_US : LOOK_US),
            on_unused_look);
}
