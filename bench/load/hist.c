// hist.c: latency histogram with 128 equal steps in every power of two.
#include "bench/load/hist.h"

#include <math.h>

// Values below 128 have a step each.  Above, row r covers [128 << (r - 1), 256 << (r - 1))
// and its steps are 1 << (r - 1) wide.
static unsigned step_of(uint64_t us)
{
    if (us < BENCH_HIST_STEPS)
        return (unsigned)us;
    unsigned row = (unsigned)(64 - __builtin_clzll(us)) - 7;
    if (row >= BENCH_HIST_POWERS)
        return BENCH_HIST_STEPS * BENCH_HIST_POWERS - 1;
    return row * BENCH_HIST_STEPS + (unsigned)(us >> (row - 1)) % BENCH_HIST_STEPS;
}

static double middle_of(unsigned step)
{
    unsigned row = step / BENCH_HIST_STEPS;
    double column = step % BENCH_HIST_STEPS;

    if (row == 0)
        return column + 0.5;
    return ldexp(BENCH_HIST_STEPS + column + 0.5, (int)row - 1);
}

void bench_hist_add(struct bench_hist *h, uint64_t us)
{
    h->n++;
    h->sum += us;
    if (us > h->max)
        h->max = us;
    h->step[step_of(us)]++;
}

void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from)
{
    into->n += from->n;
    into->sum += from->sum;
    if (from->max > into->max)
        into->max = from->max;
    for (unsigned i = 0; i < BENCH_HIST_STEPS * BENCH_HIST_POWERS; i++)
        into->step[i] += from->step[i];
}

double bench_hist_ms(const struct bench_hist *h, double q)
{
    uint64_t rank = (uint64_t)ceil(q * (double)h->n), passed = 0;

    for (unsigned i = 0; i < BENCH_HIST_STEPS * BENCH_HIST_POWERS; i++) {
        passed += h->step[i];
        if (h->step[i] > 0 && passed >= rank) {
            double us = middle_of(i);
            return (us < (double)h->max ? us : (double)h->max) / 1000;
        }
    }
    return 0;
}

double bench_hist_mean_ms(const struct bench_hist *h)
{
    return h->n > 0 ? (double)h->sum / (double)h->n / 1000 : 0;
}
