// metric.c: log-linear histograms.
//
// Each value below 16 has its own step. Above that every power of two is divided into 16
// steps, so a value's step follows from its top five bits and their position.
#include "base/metric.h"

#include <stddef.h>

enum { N_STEPS = HISTOGRAM_STEPS * HISTOGRAM_POWERS, STEP_BITS = 4 };

static uint64_t metric_load(const _Atomic uint64_t *v)
{
    return atomic_load_explicit(v, memory_order_relaxed);
}

static void metric_add_relaxed(_Atomic uint64_t *v, uint64_t n)
{
    atomic_store_explicit(v, metric_load(v) + n, memory_order_relaxed);
}

static size_t step_of(uint64_t value)
{
    if (value < HISTOGRAM_STEPS)
        return (size_t)value;
    unsigned power = 63 - (unsigned)__builtin_clzll(value);
    size_t step = (size_t)(power - STEP_BITS + 1) * HISTOGRAM_STEPS +
                  (size_t)((value >> (power - STEP_BITS)) & (HISTOGRAM_STEPS - 1));
    return step < N_STEPS ? step : N_STEPS - 1;
}

// The largest value of a step; the last step also counts everything above it.
static uint64_t step_top(size_t step)
{
    if (step < HISTOGRAM_STEPS)
        return step;
    unsigned shift = (unsigned)(step / HISTOGRAM_STEPS) - 1;
    uint64_t low = HISTOGRAM_STEPS + step % HISTOGRAM_STEPS;
    return ((low + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
    metric_add_relaxed(&h->step[step_of(value)], 1);
    metric_add_relaxed(&h->sum, value);
    metric_add_relaxed(&h->n, 1);
}

void histogram_sum(struct histogram *into, const struct histogram *from)
{
    for (size_t i = 0; i < N_STEPS; i++)
        metric_add_relaxed(&into->step[i], metric_load(&from->step[i]));
    metric_add_relaxed(&into->sum, metric_load(&from->sum));
    metric_add_relaxed(&into->n, metric_load(&from->n));
}

// Sums the steps instead of using n: the owner may be between its two stores.
uint64_t histogram_quantile(const struct histogram *h, double q)
{
    uint64_t total = 0, seen = 0;
    for (size_t i = 0; i < N_STEPS; i++)
        total += metric_load(&h->step[i]);
    if (total == 0)
        return 0;

    uint64_t rank = (uint64_t)(q * (double)total + 0.999999);
    if (rank < 1)
        rank = 1;
    if (rank > total)
        rank = total;
    for (size_t i = 0; i < N_STEPS; i++) {
        seen += metric_load(&h->step[i]);
        if (seen >= rank)
            return step_top(i);
    }
    return step_top(N_STEPS - 1);
}

uint64_t histogram_count_le(const struct histogram *h, uint64_t bound)
{
    uint64_t count = 0;
    for (size_t i = 0; i < N_STEPS && step_top(i) <= bound; i++)
        count += metric_load(&h->step[i]);
    return count;
}
