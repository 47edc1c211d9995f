// Batching policy, without a clock or a queue of its own.
#include "batch/gate.h"

#include <assert.h>

void gate_init(struct gate *g, struct batch_conf conf, struct limit_conf limit, uint64_t now_us)
{
    *g = (struct gate){.conf = conf};
    if (limit.max > conf.max_flights)
        limit.max = conf.max_flights;
    limit_init(&g->limit, limit, now_us);
}

static bool may_fly(const struct gate *g)
{
    // One beside the limit's first is always worth trying, or the limit could never learn.
    unsigned most = g->limit.now > 2 ? g->limit.now : 2;
    return g->n_flights < (most < g->conf.max_flights ? most : g->conf.max_flights);
}

static bool is_full(const struct gate *g, struct gate_queue q)
{
    return q.items >= g->conf.max_items || q.requests >= g->conf.max_requests;
}

// Below this many there is little to share, and a single client should never wait for itself.
enum { CROWD = 4, MOMENT_US = 1000 };

static bool is_gathering(struct gate *g, struct gate_queue q, uint64_t now_us)
{
    if (g->landed < CROWD || now_us - g->landed_us >= MOMENT_US || is_full(g, q))
        return false;
    if (g->expected == 0)
        g->expected = g->landed + q.requests;
    return q.requests < g->expected * 7 / 8;
}

bool gate_is_open(struct gate *g, struct gate_queue q, uint64_t now_us)
{
    if (q.requests == 0)
        return false;
    if (g->n_flights == 0)
        return !is_gathering(g, q, now_us);
    return may_fly(g) && (q.requests >= g->conf.preferred || is_full(g, q) ||
                          now_us - q.oldest_us >= g->conf.hold_ms * 1000ull);
}

unsigned gate_opens_in_ms(const struct gate *g, struct gate_queue q, uint64_t now_us)
{
    if (q.requests == 0 || !may_fly(g))
        return 0;
    if (g->n_flights == 0)
        return 1; // gathering
    uint64_t waited_us = now_us - q.oldest_us, hold_us = g->conf.hold_ms * 1000ull;
    return waited_us >= hold_us ? 1 : (unsigned)((hold_us - waited_us + 999) / 1000);
}

void gate_left(struct gate *g) { g->n_flights++; }

void gate_landed(struct gate *g, unsigned requests, uint64_t rtt_us, uint64_t now_us)
{
    assert(g->n_flights > 0);
    g->n_flights--;
    g->landed = requests;
    g->expected = 0;
    g->landed_us = now_us;
    limit_sample(&g->limit, rtt_us, now_us);
}
