// Whether the partitions of a group are known: the states, and all that changes them.
#include "broker/broker_int.h"

#include <stdlib.h>

void group_handle(struct group *g, enum group_event event)
{
    enum { NEVER = GROUP_STATES };
    // clang-format off
    static const uint8_t next[GROUP_EVENTS][GROUP_STATES] = {
        //                UNKNOWN            KNOWN                DISCOVERING        REDISCOVERING      STALE
        [GROUP_ASKED]   = {GROUP_DISCOVERING, GROUP_REDISCOVERING, NEVER,             NEVER,             NEVER},
        [GROUP_LEARNT]  = {NEVER,             NEVER,               GROUP_KNOWN,       GROUP_KNOWN,       GROUP_UNKNOWN},
        [GROUP_FAILED]  = {NEVER,             NEVER,               GROUP_UNKNOWN,     GROUP_KNOWN,       GROUP_UNKNOWN},
        [GROUP_MISSED]  = {GROUP_UNKNOWN,     GROUP_UNKNOWN,       GROUP_DISCOVERING, GROUP_DISCOVERING, GROUP_STALE},
        [GROUP_CHANGED] = {GROUP_UNKNOWN,     GROUP_UNKNOWN,       GROUP_STALE,       GROUP_STALE,       GROUP_STALE},
    };
    // clang-format on
    if (next[event][g->state] == NEVER)
        BUG("group in state %u: event %u", g->state, event);
    g->state = next[event][g->state];
}

void group_unsubscribe(struct group *g)
{
    free(g->checked_from);
    g->checked_from = NULL;
}

void group_forget(struct group *g)
{
    group_handle(g, GROUP_CHANGED);
    group_unsubscribe(g);
    g->empty_noted_us = 0;
}
