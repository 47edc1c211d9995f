// parts.c: what goes on without being asked.  Started in this order, stopped all together.
#include "platform/platform_int.h"
#include "platform/trigger.h"

const struct platform_part *const platform_parts[] = {
    &platform_triggers, // triggers.c
    &platform_pools_part, &platform_readmodel_part, &platform_events, NULL,
};
