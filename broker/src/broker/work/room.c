// Room under the limits of a work queue (broker/sql/work/limit_work.sql): who waits for it, and
// who gets it.
//
//      claim says FULL ──► group_fill ──► an acknowledgement, or full_due ──► group_has_room
//
// While the limits of the queue allow nothing more, the whole group rests. Its consumers keep
// their places in the ready list, so that each key and partition comes to its turn, and higher
// priorities come first. Then one claim goes first, and the number of claims in flight doubles
// with each that finds messages: otherwise hundreds of claims would fly for one message.
//
// A key at its limit rests alone, with all its partitions: one for each priority, and their
// retry lanes.
#include "broker/broker_int.h"

#include "base/clock.h"

enum { WIDE = 128 };

static void on_full_due(struct due *d);

void group_fill(struct broker *b, struct group *g, uint64_t until_us)
{
    uint64_t now = clock_mono_us();

    g->full = true;
    g->width = 1;
    due_set(&b->due, &g->full_due, until_us > now ? until_us : now + 1000, on_full_due);
}

void group_widen(struct group *g) { g->width = g->width < WIDE ? 2 * g->width : 0; }

bool group_is_full(const struct group *g)
{
    unsigned n = 0;

    for (unsigned p = 0; g->width > 0 && p < LANE_PRIORITIES; p++)
        n += g->ready.working[p];
    return g->full || (g->width > 0 && n >= g->width);
}

void group_has_room(struct broker *b, struct group *g)
{
    if (!g->full)
        return;
    g->full = false;
    due_cancel(&b->due, &g->full_due);
    if (!TAILQ_EMPTY(&g->seats))
        group_serve(b, g);
    if (!LIST_EMPTY(&g->selectors))
        selectors_serve(b, g);
}

static void on_full_due(struct due *d)
{
    struct group *g = container_of(d, struct group, full_due);

    group_has_room(g->queue->broker, g);
}

static void wake_resting(struct broker *b, struct group *g, struct lane *lane,
                         const struct consumer *but)
{
    struct consumer *c;

    HASH_FIND(hh, g->consumers, &lane, sizeof lane, c);
    if (c && c != but && c->resting)
        consumer_ready(b, c, false);
}

void consumer_has_room(struct broker *b, struct consumer *c)
{
    struct group *g = c->group;
    struct lane *found[LANE_PRIORITIES + 1], *retry;
    unsigned n = lanes_of_key(c->lane, found);

    // The highest priority first, and c behind its like: it has just had its turn.
    for (unsigned i = 0; i < n; i++) {
        LIST_FOREACH (retry, &found[i]->retries, of_origin)
            if (span_eq(retry->only, (span){g->name, g->name_len}))
                wake_resting(b, g, retry, c);
        wake_resting(b, g, found[i], c);
        if (i + 1 < n && found[i + 1]->priority == c->lane->priority)
            continue; // two lanes of priority 0: with and without "~p0"
        if (found[i]->priority != c->lane->priority)
            continue;
        if (c->resting || c->state == IDLE || c->state == LEASED)
            consumer_ready(b, c, false);
        else
            c->dirty = true;
    }
    group_has_room(b, g);
}
