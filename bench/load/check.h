// bench_check.h: the ledger; knows of every message whether it came, once, and in order.
//
// Messages of one producer in one partition are a stream, numbered 0, 1, 2, ...  A
// consumer group must see each stream whole, once, and in that order.  Per group and
// stream the ledger keeps one cursor:
//
//      number == next   the normal case; next moves on
//      number >  next   those between are missing, until they come late
//      number <  next   late (then it was missing), or a repetition
//
// A late message is not always out of order: two pops that were under way together may
// be answered in either order.  It is, when both came in one answer, or when the pop that
// brought it was sent after the younger message had arrived.
//
// A push that failed or was never answered may have been stored or not.  Its messages are
// doubtful: fine if they come, fine if not.
//
// ledger_send() may be called by the producer's own thread only; everything else by any.
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

// The number of the producer's next message in that partition.
uint32_t ledger_send(struct ledger *l, uint32_t producer, uint32_t partition);
void ledger_doubt(struct ledger *l, uint32_t producer, uint32_t partition, uint32_t number);

// One answer to a pop: take one before reading its messages.
struct ledger_answer {
    uint32_t id; // of this answer
    uint32_t group;
    uint32_t sent_ms; // when the pop was sent, any origin
    uint32_t now_ms;  // when the answer arrived, same origin
};
uint32_t ledger_answer_id(struct ledger *l);

// False: no such stream (the message is not of this run).
bool ledger_receive(struct ledger *l, const struct ledger_answer *a, uint32_t producer,
                    uint32_t partition, uint32_t number);

uint64_t ledger_delivered(const struct ledger *l); // cheap
uint64_t ledger_doubtful(const struct ledger *l);  // cheap
struct ledger_sum ledger_sum(struct ledger *l);    // slow; only while nobody calls the rest

#endif
