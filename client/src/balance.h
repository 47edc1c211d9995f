// balance.h: decides which partitions a processor should own, from the records of all
// partitions.
//
// Every processor computes this on its own, so the result must be stable: with n processors
// each gets its share, plus or minus one, and then nothing moves. A processor claims as many
// free partitions as it lacks (greedy: all). If none is free and another processor owns at
// least two more, it requests one partition from the processor that owns the most, one at a
// time.
//
// Processors that see the same records do not claim the same partition. A released partition
// is reserved for the processor that requested it; otherwise its former owner would claim it
// again first. The other free partitions go, in order, to the owner with the fewest. A
// partition that stays free anyway (it was assigned to a dead owner that has not expired yet)
// may be claimed by every processor.
#ifndef QUEEN_CLIENT_BALANCE_H
#define QUEEN_CLIENT_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct balance_record {
    const char *owner; // NULL: none
    bool expired;
    const char
        *wanted_by; // the processor that has requested it and not received it yet; NULL: none
    bool left_over; // free for so long that every processor must have seen it
};

struct balance_plan {
    unsigned *claim; // indexes of free partitions to claim; room for all
    unsigned n_claim;
    int ask; // index of the partition to request from its owner; -1: none
};

// start: where a processor that owns nothing begins among the free partitions. The others do
// not see it, so the start is random: several new processors do not all try the same one first.
void balance_plan(const struct balance_record *records, unsigned n, const char *me, bool greedy,
                  unsigned start, struct balance_plan *plan);

#endif
