// load.h: threads that keep connections busy.
//
// A plan defines the number of producers and consumers and when they are done; a load executes
// a plan:
//
//     load_new ──► WARM ──► MEASURE ──► DRAIN ──► END ──► load_free
//
// WARM and MEASURE differ only in what is counted into the window. In DRAIN producers stop;
// consumers continue only if the plan drains, else requests in flight are finished. END: stop
// at once.
//
// A producer with a rate is an open loop: each push has a due time from a steady schedule, and
// its latency counts from there, however late a connection became free for it.
#ifndef QUEEN_CLI_BENCH_LOAD_H
#define QUEEN_CLI_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/load/check.h"
#include "bench/load/conn.h"
#include "bench/load/msg.h"
#include "bench/load/stats.h"

enum bench_phase { BENCH_WARM, BENCH_MEASURE, BENCH_DRAIN, BENCH_END };

struct bench_plan {
    uint32_t producers, first_producer; // names in the ledger
    uint32_t consumers;
    unsigned threads;
    unsigned batch;
    bool spread;
    bool configure; // producers configure queues instead of pushing
    bool drains;
    double rate;    // messages a second; 0: closed loop
    uint64_t limit; // messages to push, or queues to configure; 0: none
};

struct bench_load;

// Starts.  addr, text and ledger are borrowed until load_free().
struct bench_load *load_new(struct bench_plan plan, const struct bench_addr *addr,
                            const struct bench_text *text, struct ledger *ledger);
void load_set_phase(struct bench_load *l, enum bench_phase phase);
bool load_is_done(const struct bench_load *l); // all threads have left

// While it runs.
uint64_t load_messages(const struct bench_load *l, enum bench_op op);
uint64_t load_requests(const struct bench_load *l, enum bench_op op);
uint64_t load_errors(const struct bench_load *l);
uint64_t load_parked(const struct bench_load *l); // requests without an answer so far

// Waits for the threads, adds their counts to sum, frees l.
void load_free(struct bench_load *l, struct bench_stats *sum);

#endif
