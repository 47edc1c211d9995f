// routes.c: the table of all endpoints.
#include "api/api_int.h"
#include "api/sql_endpoint.h"

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
    &api_openapi,
    // cloudevents.c
    &api_push_queue,
    &api_push_partition,
    // resources.c
    &api_delete_queue.route,
    &api_list_queues.route,
    &api_get_queue.route,
    &api_list_namespaces.route,
    &api_list_tasks.route,
    &api_get_overview.route,
    &api_list_partitions.route,
    // status_queues.c
    &api_status_queues.route,
    &api_status_queue.route,
    &api_status_queue_messages.route,
    &api_map_partitions.route,
    &api_status_analytics.route,
    &api_refresh_stats.route,
    // messages.c
    &api_list_messages.route,
    &api_get_message.route,
    &api_list_dlq.route,
    &api_dlq_groups.route,
    // retries.c
    &api_timeline.route,
    &api_find_messages.route,
    &api_redrive.route,
    // traces.c
    &api_add_trace.route,
    &api_trace_names.route,
    &api_traces_by_name.route,
    &api_traces_of_message.route,
    // groups_read.c
    &api_list_groups.route,
    &api_list_lagging.route,
    &api_get_group.route,
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
    &api_settings,
    &api_shared_state,
    &api_shared_state_stats,
    &api_inter_instance_stats,
    &api_notify,
    // analytics.c
    &api_status.route,
    &api_system_metrics.route,
    &api_worker_metrics.route,
    &api_queue_lag.route,
    &api_queue_ops.route,
    &api_parked_replicas.route,
    &api_postgres_stats.route,
    // actions.c
    &api_delete_message.route,
    &api_retry_message.route,
    &api_move_to_dlq.route,
    &api_clear_queue.route,
    // scheduled.c
    &api_list_scheduled.route,
    &api_count_scheduled.route,
    &api_get_scheduled.route,
    &api_cancel_scheduled_one.route,
    &api_cancel_scheduled.route,
    &api_reschedule.route,
    // schedules.c
    &api_list_schedules.route,
    &api_create_schedule.route,
    &api_get_schedule.route,
    &api_change_schedule.route,
    &api_delete_schedule.route,
    &api_pause_schedule.route,
    &api_resume_schedule.route,
    &api_run_schedule_now.route,
    // groups.c
    &api_delete_group.route,
    &api_delete_group_on_queue.route,
    &api_update_subscription.route,
    &api_seek_group.route,
    &api_preview_seek.route,
    &api_seek_partition.route,
    // owners.c
    &api_list_processors.route,
    &api_list_owners.route,
    &api_claim_owners.route,
    &api_renew_owners.route,
    &api_release_owners.route,
    &api_ask_owners.route,
    &api_save_checkpoints.route,
    // identity.c
    &api_identity,
    // keys.c
    &api_list_keys.route,
    &api_create_key,
    &api_revoke_key,
    // audit.c
    &api_list_audit.route,
    // migration.c
    &api_migration_test,
    &api_migration_start,
    &api_migration_status,
    &api_migration_validate,
    &api_migration_reset,
    NULL,
};
