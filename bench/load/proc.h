// proc.h: CPU time and memory of broker and PostgreSQL, read from /proc.
//
// Counts a process, all its descendants, and those that have already exited (their time is in
// the parent that waited for them). PostgreSQL below the broker counts as PostgreSQL, not as
// broker.
#ifndef QUEEN_CLI_BENCH_PROC_H
#define QUEEN_CLI_BENCH_PROC_H

#include <stdint.h>

struct proc_target {
    int64_t broker, pg; // 0: unknown
};

struct proc_usage {
    double broker_s, pg_s;  // CPU seconds since they started; 0 where unknown
    double machine_s;       // of all cores, used by any process
    double self_s;          // of this process
    uint64_t broker_rss_kb; // 0 where unknown
};

// Fills in fields that are 0: the broker is the process that listens on that local TCP port;
// PostgreSQL is a child of the broker or else the only postmaster here. A process that cannot
// be found, or that this user may not inspect, stays 0.
void proc_find(struct proc_target *t, unsigned port);
struct proc_usage proc_read(const struct proc_target *t);

#endif
