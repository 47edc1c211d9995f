// event_plan.h: decides what happens to an event after its handler returned.
//
// Every event is settled in the end: acknowledged, dead-lettered, or left to the queue's
// policy. It may be retried here first; after the last retry it is settled.
#ifndef QUEEN_CLIENT_EVENT_PLAN_H
#define QUEEN_CLIENT_EVENT_PLAN_H

#include "queen/message.h"
#include "queen/processor.h"

struct event_plan {
    bool again; // after pause_ms
    unsigned pause_ms;
    enum queen_ack_status status; // otherwise: its acknowledgement
};

// tried: how often it was handled, from 1.
struct event_plan event_plan(enum queen_outcome outcome, unsigned tried,
                             const struct queen_event_retry *retry);

#endif
