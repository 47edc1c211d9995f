// probe.c: probes databases that are down, with one connection each, until they reply.
#include "base/clock.h"
#include "base/log.h"
#include "tenant/pools_int.h"

static void on_probed(struct tenant_db *l, int status);
static void on_probe_closed(void *ctx);

void tenant_probe_due(struct tenant_pools *p, uint64_t now_us)
{
    struct tenant_db_conf one = p->db;
    struct tenant *t;

    one.max_conns = 1;
    TAILQ_FOREACH (t, &p->down, downs)
        if (!t->probe && t->known && breaker_is_due(&t->breaker, now_us)) {
            p->n_probes++;
            t->probe = tenant_db_open(p->loop, &one, &t->row, on_probed, t);
        }
}

static void on_probed(struct tenant_db *l, int status)
{
    struct tenant *t = tenant_db_owner(l);
    uint64_t now = clock_mono_us();

    if (status == 0)
        log_info("tenant.recovered", "tenant=%s down_ms=%llu", t->row.name,
                 (unsigned long long)((now - t->breaker.opened_us) / 1000));
    else
        t->fault = *tenant_db_fault(l);
    breaker_probed(&t->breaker, &t->pools->breaker, status == 0, now);
    if (breaker_is_closed(&t->breaker))
        tenant_recovered(t);
    tenant_db_close(l, on_probe_closed, t);
}

static void on_probe_closed(void *ctx)
{
    struct tenant *t = ctx;
    struct tenant_pools *p = t->pools;

    t->probe = NULL;
    p->n_probes--;
    tenant_free_if_unknown(t); // the tenant may have been removed meanwhile
    pools_close_if_done(p);
}
