// routes.c: the table of all endpoints.
#include "api/api_int.h"
#include "api/report.h"

const struct http_route *const api_routes[] = {
    &api_push,
    &api_pop,
    &api_pop_queue,
    &api_pop_partition,
    &api_ack,
    &api_ack_batch,
    &api_transaction,
    &api_extend,
    &api_configure,
    &api_health,
    &api_live,
    &api_ready,
    &api_metrics,
    &api_prometheus,
    // resources.c
    &api_delete_queue.route,
    // streams.c, cycle.c
    &api_stream_register.route,
    &api_stream_state.route,
    &api_cycle,
    // retention.c
    &api_retention.route,
    // system.c
    &api_maintenance_get,
    &api_maintenance_set,
    &api_pop_maintenance_get,
    &api_pop_maintenance_set,
    &api_buffers,
    &api_shared_state,
    &api_shared_state_stats,
    &api_inter_instance_stats,
    &api_notify,
    NULL,
};
