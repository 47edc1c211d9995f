// event_plan.c: decides what happens to an event after its handler returned.
#include "event_plan.h"

struct event_plan event_plan(enum queen_outcome outcome, unsigned tried,
                             const struct queen_event_retry *retry)
{
    if (outcome == QUEEN_HANDLED)
        return (struct event_plan){.status = QUEEN_ACK_COMPLETED};
    if (outcome == QUEEN_HOPELESS)
        return (struct event_plan){.status = QUEEN_ACK_DLQ};
    if (retry->by_queue)
        return (struct event_plan){.status = QUEEN_ACK_FAILED};
    if (tried <= retry->n_pauses)
        return (struct event_plan){.again = true, .pause_ms = retry->pauses_ms[tried - 1]};
    return (struct event_plan){.status = QUEEN_ACK_DLQ};
}
