// ready.h: the consumers of a group that may have messages, by the priority of their
// partitions.
//
// A pop takes from the highest priority first.  Every tenth time that a lower priority is
// passed over it gets a turn instead: the lower ones have turns one after the other, so none
// starves. While a claim of a work queue is in flight that further pops may share, lower
// priorities wait for its result, except in their turn.
//
// A message with a priority is in a partition whose name ends with it, as in "Default~p7".
#ifndef QUEEN_BROKER_READY_H
#define QUEEN_BROKER_READY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/broker.h"

struct consumer;
TAILQ_HEAD(consumer_list, consumer);

struct ready_turns {
    uint8_t n_passed; // how often a lower priority was passed over
    uint8_t last;     // the last priority that had a turn
};

struct ready {
    struct consumer_list of[LANE_PRIORITIES];
    uint16_t levels;                   // bit p: of[p] is not empty
    unsigned working[LANE_PRIORITIES]; // claims in flight that further pops may share
    struct ready_turns turns, before;  // before: the last choice
    uint64_t n_taken;
};

void ready_init(struct ready *r);
// To the group of c.  again: its last claim is to be repeated, so it keeps its turn.
void ready_add(struct consumer *c, bool again);
void ready_remove(struct consumer *c);

// The consumers that a pop may take, in order.  The one returned last may be removed.
struct ready_walk {
    struct ready *ready;
    struct consumer *next;
    int level; // of next
    int turn;  // the priority that goes first; -1: none
};
struct ready_walk ready_begin(struct ready *r);
struct consumer *ready_next(struct ready_walk *w);
void ready_taken(const struct ready_walk *w, const struct consumer *c); // before it is removed

#endif
