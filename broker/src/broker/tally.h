// tally.h: what happened to one queue at one broker since it was last written down.
//
//      push, pop, ack ──► tally of the queue ──► record.c ──► queen.queue_lag_metrics
//
// Counting is a few additions per request or batch, nothing per message.  A queue that was
// touched is in its broker's list of touched ones, so that writing costs what happened and not
// what exists.  Polls that ended empty do not by themselves make a queue worth a row:
// ten thousand consumers that wait would write ten thousand rows a minute.
#ifndef QUEEN_BROKER_TALLY_H
#define QUEEN_BROKER_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct queue;
LIST_HEAD(queue_list, queue);

struct tally {
    uint64_t push_requests, push_messages;
    uint64_t pop_requests, pop_messages, pop_empty, auto_acked;
    uint64_t ack_requests, ack_ok, ack_failed;
    uint64_t transactions;
    uint64_t lag_us, lag_max_us; // from stored to delivered: sum over messages, most
};

struct queue_notes {
    struct tally tally;
    LIST_ENTRY(queue) touched;
    bool is_touched; // in the list
    bool active;     // worth a row now
    unsigned n_parked, parked_recorded;
};

#endif
