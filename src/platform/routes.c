// routes.c: the table of endpoints.
#include "platform/platform_int.h"

const struct http_route *const platform_routes[] = {
    // health.c
    &platform_health,
    &platform_live,
    &platform_ready,
    // metrics.c
    &platform_metrics,
    &platform_prometheus,
    // openapi.c
    &platform_openapi,
    NULL,
};
