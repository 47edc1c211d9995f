// push_int.h: a batch of pushes on its way, for push.c and stall.c.
#ifndef QUEEN_BROKER_PUSH_INT_H
#define QUEEN_BROKER_PUSH_INT_H

#include "broker/broker_int.h"
#include "broker/segs.h"

struct push_flight {
    TAILQ_ENTRY(push_flight) out; // of the broker: while it is in flight, oldest first
    struct call *call;
    struct op_list ops; // empty once it was given up
    unsigned n_ops, n_items;
    size_t n_bytes;
    bool whole;
    bool given_up; // its requests went another way: nobody waits for the answer
    struct segs segs;
};

// ---- push.c ----
void push_again(struct broker *b, struct push_op *push); // to the head of the queue

#endif
