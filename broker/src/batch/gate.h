// gate.h: when does a batch leave?
//
// With nothing in flight: at once, so an idle server answers in about one commit; unless a
// large batch has just landed, whose clients are about to come again: those are given a moment,
// so that all who keep asking share one batch instead of taking turns in two.  While others are
// in flight, requests gather (this is group commit) until they are a worthwhile batch, or the
// oldest has waited for hold_ms; and never more batches at once than the adaptive limit allows.
#ifndef QUEEN_BATCH_GATE_H
#define QUEEN_BATCH_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "batch/limit.h"

struct batch_conf {
    unsigned max_requests; // per batch
    unsigned max_items;    // messages per batch
    unsigned preferred;    // this many requests are worth a batch of their own
    unsigned hold_ms;      // ceiling of waiting for company
    unsigned max_flights;  // ceiling of batches in flight
};

struct gate {
    struct batch_conf conf;
    struct limit limit;
    unsigned n_flights;
    unsigned landed;    // requests in the batch that landed last
    unsigned expected;  // how many may be waiting soon after it; 0: not estimated yet
    uint64_t landed_us; // when
};

// The requests in front of the gate.
struct gate_queue {
    unsigned requests, items;
    uint64_t oldest_us; // monotonic
};

void gate_init(struct gate *g, struct batch_conf conf, struct limit_conf limit,
               uint64_t now_us);
bool gate_is_open(struct gate *g, struct gate_queue q, uint64_t now_us);
// In how many ms it may open by itself (the oldest having waited long enough); 0: not by time.
unsigned gate_opens_in_ms(const struct gate *g, struct gate_queue q, uint64_t now_us);
void gate_left(struct gate *g);
// requests: how many the batch had; rtt_us: how long it was out.
void gate_landed(struct gate *g, unsigned requests, uint64_t rtt_us, uint64_t now_us);

#endif
