// report.h: the result of a run, for people and for programs.
#ifndef QUEEN_CLI_BENCH_REPORT_H
#define QUEEN_CLI_BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "bench/load/check.h"
#include "bench/load/conf.h"
#include "bench/load/proc.h"
#include "bench/load/stats.h"

struct bench_result {
    const struct bench_conf *conf;
    struct bench_stats stats;
    struct ledger_sum sum;
    bool complete; // nothing more was to come: remaining messages are lost, not left over
    double window_s;

    // CPU account: the measured time; for end-to-end runs the whole run including the drain, so
    // that all work for a message is counted.
    struct proc_target target;
    struct proc_usage before, after;
    double account_s;
    uint64_t account_messages;

    bool has_probe;
    double probe;          // difference
    uint64_t run_messages; // of the whole run, for probe

    // Idle workload: broker's memory at three moments.
    uint64_t rss_bare_kb, rss_queues_kb, rss_parked_kb;
    uint64_t parked;
};

uint64_t bench_result_lost(const struct bench_result *r);
bool bench_result_is_wrong(const struct bench_result *r); // lost, repeated or disordered

void bench_report_text(const struct bench_result *r);
// Appends one line to conf->json.  0, or -errno with a message on stderr.
MUST_USE int bench_report_json(const struct bench_result *r);

#endif
