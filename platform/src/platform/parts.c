// parts.c: the list of background parts, started in this order and stopped all at once.
#include "platform/platform_int.h"
#include "platform/trigger.h"

const struct platform_part *const platform_parts[] = {
    &platform_triggers, // triggers.c
    &platform_pools_part,
    &platform_readmodel_part,
    &platform_events,
    &platform_audit_part,
    NULL,
};
