// check.h: the ledger checks that every message arrives once and in order.
//
// Messages of one producer in one partition are a stream, numbered 0, 1, 2, ... A consumer
// group must see each stream completely, once, and in that order. Per group and stream the
// ledger keeps one cursor:
//
//     number == next   the normal case; next advances
//     number >  next   those between are missing, until they arrive late
//     number <  next   late (it was missing), or a repetition
//
// A late message is not always out of order: two pops in flight together may be answered in
// either order. It is out of order if both messages came in one answer, or if the pop that
// returned it was sent after the younger message had arrived.
//
// A push that failed or was never answered may or may not have been stored. Its messages are
// doubtful: they may arrive or not.
//
// ledger_send() may only be called by the producer's own thread; everything else by any.
#ifndef QUEEN_CLI_BENCH_CHECK_H
#define QUEEN_CLI_BENCH_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ledger;

struct ledger_shape {
    uint32_t producers, partitions;
    uint32_t groups; // 0: nothing will be consumed
};

struct ledger_sum {
    uint64_t sent;      // numbered, doubtful ones included
    uint64_t doubtful;  // of those
    uint64_t delivered; // first deliveries, all groups together
    uint64_t repeated;
    uint64_t disordered;
    uint64_t skipped;   // missing although a younger one of the stream came
    uint64_t remaining; // missing at the end of their stream
};

// NULL when the shape needs more memory than is sensible (4 GB).
struct ledger *ledger_new(struct ledger_shape shape);
void ledger_free(struct ledger *l);

// Assigns the number of the producer's next message in that partition.
uint32_t ledger_send(struct ledger *l, uint32_t producer, uint32_t partition);
void ledger_doubt(struct ledger *l, uint32_t producer, uint32_t partition, uint32_t number);

// One answer to a pop: create one before reading its messages.
struct ledger_answer {
    uint32_t id; // of this answer
    uint32_t group;
    uint32_t sent_ms; // when the pop was sent, any origin
    uint32_t now_ms;  // when the answer arrived, same origin
};
uint32_t ledger_answer_id(struct ledger *l);

// False: no such stream (the message is from another run).
bool ledger_receive(struct ledger *l, const struct ledger_answer *a, uint32_t producer,
                    uint32_t partition, uint32_t number);

uint64_t ledger_delivered(const struct ledger *l); // cheap
uint64_t ledger_doubtful(const struct ledger *l);  // cheap
// slow; only while no other thread uses the ledger
struct ledger_sum ledger_sum(struct ledger *l);

#endif
