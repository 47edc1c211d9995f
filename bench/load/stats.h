// stats.h: counters of one generator thread.
//
// The thread is the only writer. The progress line reads counters meanwhile; histograms are
// read after the thread has ended.
#ifndef QUEEN_CLI_BENCH_STATS_H
#define QUEEN_CLI_BENCH_STATS_H

#include "base/attrs.h"
#include "base/metric.h"
#include "bench/load/hist.h"

enum bench_op { BENCH_OP_PUSH, BENCH_OP_POP, BENCH_OP_ACK, BENCH_OP_CONFIGURE, BENCH_N_OPS };

struct bench_stats {
    struct counter messages[BENCH_N_OPS], requests[BENCH_N_OPS]; // whole run
    struct counter window_messages[BENCH_N_OPS];                 // measured time only
    struct counter window_requests[BENCH_N_OPS];
    struct counter empty_pops;
    struct counter http_errors;  // answers that are not 2xx, or not readable
    struct counter conn_errors;  // connections refused, or lost with a request in flight
    struct counter not_accepted; // messages that a push did not accept
    struct counter buffered;     // accepted, but not in the database yet
    struct counter ack_refused;  // messages
    struct counter foreign;      // popped, but not sent by this run

    struct bench_hist latency[BENCH_N_OPS]; // measured time; pops that brought something
    struct bench_hist e2e;                  // due -> received
    char first_error[200];
};

void bench_stats_merge(struct bench_stats *into, const struct bench_stats *from);
uint64_t bench_stats_errors(const struct bench_stats *s);
// Keeps only the first error: the others are usually the same.
void bench_stats_note(struct bench_stats *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
