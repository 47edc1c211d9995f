// totals.c: sums over the workers, and the resource usage of the process.
#include "api/monitoring/totals.h"

#include <malloc.h>

#include "base/clock.h"
#include "broker/broker.h"

struct api_process api_process(const struct api_shared *s)
{
    struct api_process p = {.uptime_s = (double)(clock_mono_us() - s->started_us) / 1e6};
    struct mallinfo2 heap = mallinfo2();

    p.used = usage_read();
    p.heap_bytes = heap.arena + heap.hblkhd;
    p.heap_used_bytes = heap.uordblks + heap.hblkhd;
    return p;
}

uint64_t api_sum(const struct api_shared *s, uint64_t (*at)(const struct api *a, unsigned i),
                 unsigned i)
{
    uint64_t sum = 0;

    for (unsigned w = 0; w < s->n_workers; w++)
        sum += at(s->workers[w], i);
    return sum;
}

uint64_t api_http_requests(const struct api *a, unsigned i)
{
    (void)i;
    return counter_get(&a->http_stats.requests);
}

uint64_t api_messages(const struct api *a, unsigned i)
{
    const struct broker_stats *s = broker_stats(a->broker);
    (void)i;
    return counter_get(&s->items[OP_PUSH]) + counter_get(&s->items[OP_POP]);
}

uint64_t api_db_open(const struct api *a, unsigned i)
{
    (void)i;
    return atomic_load_explicit(&broker_pg_stats(a->broker)->n_open, memory_order_relaxed);
}

uint64_t api_db_busy(const struct api *a, unsigned i)
{
    (void)i;
    return atomic_load_explicit(&broker_pg_stats(a->broker)->n_busy, memory_order_relaxed);
}

uint64_t api_db_queued(const struct api *a, unsigned i)
{
    (void)i;
    return atomic_load_explicit(&broker_pg_stats(a->broker)->n_queued, memory_order_relaxed);
}
