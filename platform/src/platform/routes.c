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
    // identity.c
    &platform_identity,
    // openapi.c
    &platform_openapi,
    // segments.c, segment_explain.c
    &platform_segment_attributes,
    &platform_segment_count,
    &platform_segment_preview,
    &platform_segment_explain,
    // saved.c, saved_count.c, subscriptions.c
    &platform_save_segment,
    &platform_list_segments,
    &platform_get_segment,
    &platform_delete_segment,
    &platform_segment_counts,
    &platform_count_saved,
    &platform_subscribe,
    &platform_unsubscribe,
    // campaigns.c, campaign_runs.c
    &platform_create_campaign,
    &platform_list_campaigns,
    &platform_get_campaign,
    &platform_delete_campaign,
    &platform_campaign_runs,
    &platform_campaign_recipient,
    // tenants.c, migrate.c
    &platform_tenant_list,
    &platform_tenant_add,
    &platform_tenant_show,
    &platform_tenant_change,
    &platform_tenant_remove,
    &platform_tenant_migrate,
    // tenant_health.c
    &platform_tenant_health,
    // pools.c
    &platform_pools,
    // refresh.c
    &platform_read_model_list,
    &platform_read_model_show,
    &platform_read_model_mode,
    &platform_read_model_refresh,
    // events_push.c, events_held.c
    &platform_events_push,
    &platform_events_held,
    // audit.c
    &platform_list_audit,
    NULL,
};
