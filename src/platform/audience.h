// audience.h: what the platform keeps for segments and campaigns.
#ifndef QUEEN_PLATFORM_AUDIENCE_H
#define QUEEN_PLATFORM_AUDIENCE_H

#include "audience/cache.h"
#include "base/metric.h"

struct trigger_crew;

struct audience_state {
    struct audience_cache *counts;
    struct trigger_crew *triggers; // consumes what is scheduled; NULL: not running
    struct counter asked[3];       // by enum audience_path
    struct counter cached;
};

#endif
