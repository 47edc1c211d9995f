// hist.h: latencies in microseconds, log-linear, within 0.8 % of the true value.
//
// base/metric.h has a histogram too, but its steps are 6 % wide: enough for a dashboard, too
// coarse to check a goal. One thread writes; others read after it has ended.
#ifndef QUEEN_CLI_BENCH_HIST_H
#define QUEEN_CLI_BENCH_HIST_H

#include <stdint.h>

enum { BENCH_HIST_STEPS = 128, BENCH_HIST_POWERS = 30 };

struct bench_hist {
    uint64_t n, sum, max;
    uint64_t step[BENCH_HIST_STEPS * BENCH_HIST_POWERS];
};

void bench_hist_add(struct bench_hist *h, uint64_t us);
void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from);
double bench_hist_ms(const struct bench_hist *h, double q); // quantile, 0 when empty
double bench_hist_mean_ms(const struct bench_hist *h);

#endif
