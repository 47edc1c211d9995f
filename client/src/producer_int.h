// producer_int.h: a producer; for producer.c (buffer, requests, closing) and producer_flush.c.
//
// Any thread adds to the buffer; the loop takes from it. `lock` guards the fields that both
// use; the rest belongs to the loop.
#ifndef QUEEN_CLIENT_PRODUCER_INT_H
#define QUEEN_CLIENT_PRODUCER_INT_H

#include "base/buf.h"
#include "client_int.h"
#include "queen/producer.h"

struct item {
    STAILQ_ENTRY(item) link;
    struct buf json;
    void *tag;
    uint64_t number; // in order of acceptance, from 1
    bool alone;      // its request was refused: send it alone from now on
};
STAILQ_HEAD(item_list, item);

// A request and its messages.
struct parcel {
    struct queen_producer *producer;
    TAILQ_ENTRY(parcel) link;
    struct item_list items;
    size_t n;
    uint64_t first; // number of the first message; unlike the list, other threads may read it
    struct call *call; // until it is answered
};

struct flush {
    STAILQ_ENTRY(flush) link;
    struct mailbox_item post;
    struct queen_producer *producer;
    uint64_t up_to;
    queen_done_cb done;
    void *ctx;
};

struct queen_producer {
    struct queen_client *client;
    struct queen_producer_options conf;

    pthread_mutex_t lock; // guards from here ...
    pthread_cond_t changed;
    struct item_list waiting;            // by number
    size_t n_waiting, waiting_bytes;     // in the buffer
    size_t n_unsettled, unsettled_bytes; // including those in flight
    struct queen_producer_stats stats;
    TAILQ_HEAD(, parcel) parcels;
    unsigned n_inside; // threads that wait in queen_producer_send() or _flush()
    unsigned n_flushes_posted;
    bool wake_posted, hurry, closing, closed; // ... to here
    struct mailbox_item wake, stop;

    uv_timer_t timer; // linger timer, or the pause after a failure
    bool due, pausing, stopping, deadline_passed;
    unsigned n_in_flight, n_failed;
    STAILQ_HEAD(, flush) flushes;
    uv_timer_t patience; // while closing
    unsigned n_handles;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// ---- producer.c ----
void producer_close_if_done(struct queen_producer *p); // on the loop
void producer_wake(
    // With the lock: makes the loop check the buffer.
    struct queen_producer *p);
void producer_pump(struct queen_producer *p); // on the loop: sends batches that are due

// ---- producer_flush.c ----
// on the loop: completes flushes that are done
void producer_end_flushes(struct queen_producer *p);

#endif
