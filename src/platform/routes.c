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
    // tenants.c, migrate.c
    &platform_tenant_list,
    &platform_tenant_add,
    &platform_tenant_show,
    &platform_tenant_change,
    &platform_tenant_remove,
    &platform_tenant_migrate,
    // pools.c
    &platform_pools,
    NULL,
};
