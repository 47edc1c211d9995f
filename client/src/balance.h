// balance.h: which partitions a processor should have, from what it sees of all of them.
//
// Everybody computes this for himself, so it must settle: with n processors each gets its
// share, one more or less, and then nothing moves.  Free partitions are claimed, as many as are
// missing (greedy: all there are).  When none is free and somebody has at least two more than
// we, the busiest is asked for one: one at a time.
//
// Those who see the same records do not claim the same partition: one that was given up for
// somebody is his, or its giver would have it back before he looks; the others are dealt in
// their order, each to the owner with the fewest.  One that stays free all the same (the owner
// it was dealt to is dead, and not expired yet) is everybody's.
#ifndef QUEEN_CLIENT_BALANCE_H
#define QUEEN_CLIENT_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct balance_record {
    const char *owner; // NULL: nobody
    bool expired;
    const char
        *wanted_by; // who has asked its owner for it, and has not got it yet; NULL: nobody
    bool left_over; // has been free for so long that everybody must have seen it
};

struct balance_plan {
    unsigned *claim; // indexes of free partitions to claim; room for all
    unsigned n_claim;
    int ask; // index of the partition to ask its owner for; -1: none
};

// start: where one who owns nothing begins among the free ones.  The others do not see him, so
// it is random: several newcomers do not all try the same first.
void balance_plan(const struct balance_record *records, unsigned n, const char *me, bool greedy,
                  unsigned start, struct balance_plan *plan);

#endif
