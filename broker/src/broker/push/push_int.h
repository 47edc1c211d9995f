// push_int.h: a batch of pushes on its way, for push.c, push_result.c, mixed.c and
// pg_watchdog.c.
#ifndef QUEEN_BROKER_PUSH_INT_H
#define QUEEN_BROKER_PUSH_INT_H

#include "broker/broker_int.h"
#include "broker/segments/segs.h"

struct push_flight {
    TAILQ_ENTRY(push_flight) out; // of the broker: while it is in flight, oldest first
    struct call *call;
    struct op_list ops; // empty once it was given up
    unsigned n_ops, n_items;
    size_t n_bytes;
    bool whole;
    bool given_up; // its requests went to the file buffer: the answer is ignored
    struct segs segs;
    struct claim_flight *claims; // of pops that wait for these messages; NULL: none do
    struct push_item **later;    // of a request that mixes; NULL: there are none
    unsigned n_later;
};

// ---- push.c ----
void push_again(struct broker *b, struct push_op *push); // to the head of the queue

// The request is no longer in flight: the lanes of the parts that it left behind may be freed.
void push_landed(struct broker *b, struct push_op *push);

// ---- push_result.c ----
// Settles all requests of the flight, or sends them again; the flight stays the caller's.
void push_result(struct broker *b, struct push_flight *f, int status,
                 const struct pg_reply *reply);

// ---- mixed.c: a request with items for now and for later, alone in its flight ----
void mixed_fill(struct broker *b, struct push_flight *f, struct pg_params *p);
// Whether a row is about a later item.
bool mixed_is_later(const struct push_flight *f, const struct pg_reply *reply, unsigned row);
// The rows about later items.  false: there are none, or not all of them were taken; then
// nothing was stored.
MUST_USE bool mixed_read(struct broker *b, struct push_flight *f, const struct pg_reply *reply);

#endif
