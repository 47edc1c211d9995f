// pool_stats.c: statistics of the pools.
#include "base/clock.h"
#include "tenant/pools_int.h"

const struct tenant_pools_stats *tenant_pools_stats(struct tenant_pools *p)
{
    struct slots_counts n = slots_counts(p->slots);
    struct tenant_pools_stats *s = &p->stats;
    struct tenant *t;

    s->hits = n.hits;
    s->misses = n.misses;
    s->waits = n.waits;
    s->evicted = n.closed[SLOTS_NO_ROOM];
    s->expired = n.closed[SLOTS_IDLE];
    s->replaced = n.closed[SLOTS_UNHEALTHY] + n.closed[SLOTS_OUTDATED];
    s->failed_opens = n.failed_opens;
    s->failed_checks = n.failed_checks;
    s->n_pools = n.n_slots;
    s->n_idle = n.n_idle;
    s->n_closing = n.n_closing;
    s->n_held = n.n_slots - n.n_idle - n.n_closing;
    s->n_waiting = n.n_waiting;
    s->n_known = HASH_COUNT(p->tenants);
    s->n_down = 0;
    TAILQ_FOREACH (t, &p->down, downs)
        s->n_down++;
    return s;
}

static unsigned count_waiting(const struct tenant *t)
{
    const struct tenant_want *w;
    unsigned n = 0;

    TAILQ_FOREACH (w, &t->entry.wants, link)
        n++;
    return n;
}

void tenant_pools_each(struct tenant_pools *p,
                       void (*view)(void *ctx, const struct tenant_pool_view *v), void *ctx)
{
    static const char *const states[] = {"opening", "ready", "checking", "draining", "closing"};
    uint64_t now = clock_mono_us();
    struct tenant *t, *next;

    HASH_ITER (hh, p->tenants, t, next) {
        const struct slot *slot = t->entry.slot;
        const struct tenant_pool *r = slot ? slot->owner : NULL;
        bool down = !breaker_is_closed(&t->breaker);
        if (!slot && !down && TAILQ_EMPTY(&t->entry.wants))
            continue;
        view(ctx, &(struct tenant_pool_view){
                      .name = span_of(t->row.name),
                      .kind = t->row.kind,
                      .state = down   ? "down"
                               : slot ? states[slot->state]
                                      : "waiting",
                      .refs = slot ? slot->refs : 0,
                      .conns = r && r->link ? link_conns(r->link) : 0,
                      .waiting = count_waiting(t),
                      .idle_ms = slot && slot->refs == 0 && slot->state == SLOT_READY
                                     ? (now - slot->idle_since_us) / 1000
                                     : 0,
                      .down_ms = down ? (now - t->breaker.opened_us) / 1000 : 0,
                      .error = down ? t->fault.text : "",
                  });
    }
}
