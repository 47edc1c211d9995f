// event_plan.h: what becomes of an event after its handler has spoken.
//
// An event is settled, never abandoned: it is acknowledged, dead, or left to the queue's
// policy; or it is tried again here, and after the last try it is one of these.
#ifndef QUEEN_CLIENT_EVENT_PLAN_H
#define QUEEN_CLIENT_EVENT_PLAN_H

#include "queen/message.h"
#include "queen/processor.h"

struct event_plan {
    bool again; // after pause_ms
    unsigned pause_ms;
    enum queen_ack_status status; // otherwise: how it is acknowledged
};

// tried: how often it was handled, from 1.
struct event_plan event_plan(enum queen_outcome outcome, unsigned tried,
                             const struct queen_event_retry *retry);

#endif
