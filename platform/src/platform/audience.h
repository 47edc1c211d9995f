// audience.h: the platform's state for segments and campaigns.
#ifndef QUEEN_PLATFORM_AUDIENCE_H
#define QUEEN_PLATFORM_AUDIENCE_H

#include "audience/cache.h"
#include "audience/query.h"
#include "base/metric.h"

struct platform;
struct trigger_worker;

struct audience_state {
    struct audience_cache *counts;
    struct trigger_worker *triggers; // consumes due triggers; NULL: not running
    struct audience_stats queries;
    struct counter cached; // counts that were served from the cache
    // outcomes of triggers: [0] campaigns, [1] checks of watched segments
    struct counter done[2], failed[2], hopeless[2];
};

// audience_metrics.c: for struct platform_part
void audience_expose(struct platform *p, struct buf *out);
void audience_put_json(struct platform *p, struct buf *out);

#endif
