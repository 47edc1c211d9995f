// metric.h: counters and histograms.
//
// Each worker owns its own set and is its only writer, without locks or locked instructions
// (relaxed loads and stores). Readers in other threads sum the sets of all workers on demand.
// A histogram is log-linear: 16 steps per power of two, so any quantile is within 6 %.
#ifndef QUEEN_BASE_METRIC_H
#define QUEEN_BASE_METRIC_H

#include <stdatomic.h>
#include <stdint.h>

struct counter {
    _Atomic uint64_t v;
};

static inline void counter_add(struct counter *c, uint64_t n)
{
    atomic_store_explicit(&c->v, atomic_load_explicit(&c->v, memory_order_relaxed) + n,
                          memory_order_relaxed);
}
static inline uint64_t counter_get(const struct counter *c)
{
    return atomic_load_explicit(&c->v, memory_order_relaxed);
}

enum { HISTOGRAM_STEPS = 16, HISTOGRAM_POWERS = 36 };
struct histogram {
    _Atomic uint64_t n, sum;
    _Atomic uint64_t step[HISTOGRAM_STEPS * HISTOGRAM_POWERS];
};

void histogram_add(struct histogram *h, uint64_t value);                  // owner only
void histogram_sum(struct histogram *into, const struct histogram *from); // into: caller's own
uint64_t histogram_quantile(const struct histogram *h, double q);         // 0 <= q <= 1
// Number of observations <= bound (for Prometheus' cumulative buckets).
uint64_t histogram_count_le(const struct histogram *h, uint64_t bound);

#endif
