// limit.h: how many batches may be in flight at once, found by measuring.
//
// After TCP Vegas: with the shortest round trip seen lately as the measure of an empty
// database, limit * (1 - shortest / current) estimates how many batches are only waiting there.
// Fewer than alpha: one more may go; more than beta: one fewer.
#ifndef QUEEN_BATCH_LIMIT_H
#define QUEEN_BATCH_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct limit_conf {
    bool fixed; // keep max, measure nothing
    unsigned min, max;
    unsigned alpha, beta;
    unsigned window_samples; // round trips averaged for "current"
    unsigned min_window_s;   // how long a shortest round trip is used
    unsigned update_ms;      // between two changes
};

struct limit {
    struct limit_conf conf;
    unsigned now;         // the limit
    double mean_us;       // moving average of round trips
    uint64_t shortest_us; // of the current window; 0: none yet
    uint64_t window_since_us, changed_us;
    unsigned n_samples; // since the last change
};

void limit_init(struct limit *l, struct limit_conf conf, uint64_t now_us);
void limit_sample(struct limit *l, uint64_t rtt_us, uint64_t now_us);

#endif
