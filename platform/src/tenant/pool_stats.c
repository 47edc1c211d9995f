// pool_stats.c: statistics of the pools.
#include "base/clock.h"
#include "tenant/pools_int.h"

const struct tenant_pools_stats *tenant_pools_stats(struct tenant_pools *p)
{
    struct grants_counts n = grants_counts(p->grants);
    struct tenant_pools_stats *s = &p->stats;
    struct tenant *t;

    s->hits = n.hits;
    s->misses = n.misses;
    s->waits = n.waits;
    s->evicted = n.closed[GRANTS_NO_ROOM];
    s->expired = n.closed[GRANTS_IDLE];
    s->replaced = n.closed[GRANTS_UNHEALTHY] + n.closed[GRANTS_OUTDATED];
    s->failed_opens = n.failed_opens;
    s->failed_checks = n.failed_checks;
    s->n_pools = n.n_grants;
    s->n_idle = n.n_idle;
    s->n_closing = n.n_closing;
    s->n_held = n.n_grants - n.n_idle - n.n_closing;
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
        const struct grant *grant = t->entry.grant;
        const struct tenant_pool *r = grant ? grant->owner : NULL;
        bool down = !breaker_is_closed(&t->breaker);
        if (!grant && !down && TAILQ_EMPTY(&t->entry.wants))
            continue;
        view(ctx, &(struct tenant_pool_view){
                      .name = span_of(t->row.name),
                      .kind = t->row.kind,
                      .state = down    ? "down"
                               : grant ? states[grant->state]
                                       : "waiting",
                      .refs = grant ? grant->refs : 0,
                      .conns = r && r->db ? tenant_db_conns(r->db) : 0,
                      .waiting = count_waiting(t),
                      .idle_ms = grant && grant->refs == 0 && grant->state == GRANT_READY
                                     ? (now - grant->idle_since_us) / 1000
                                     : 0,
                      .down_ms = down ? (now - t->breaker.opened_us) / 1000 : 0,
                      .error = down ? t->fault.text : "",
                  });
    }
}
