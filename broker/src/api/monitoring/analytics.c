// /api/v1/status and /api/v1/analytics/...: metrics over time.  See
// docs/reference/api-analytics.md.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const by_labels[] = {"from", "to", "queue", "namespace", "task", NULL};
static const char *const by_queue[] = {"from", "to", "queue", NULL};
static const char *const by_process[] = {"from", "to", "hostname", "workerId", NULL};
static const char *const by_time[] = {"from", "to", NULL};

#define READ(where, name, params, of)                                                       \
    {                                                                                       \
        .verb = HTTP_GET, .path = "/api/v1/" where, .access = ACCESS_READ_ONLY, .op = name, \
        .target = TARGET_##of, .need = MAY_READ, .handle = sql_endpoint_handle,             \
        .query = params, .unknown = UNKNOWN_IGNORED                                         \
    }

const struct sql_endpoint api_status = {.route = READ("status", "status", by_labels, ALL),
                                        .statement = &pg_stmt_report_status};
const struct sql_endpoint api_system_metrics = {
    .route = READ("analytics/system-metrics", "system_metrics", by_process, ALL),
    .statement = &pg_stmt_report_system_metrics};
const struct sql_endpoint api_worker_metrics = {
    .route = READ("analytics/worker-metrics", "worker_metrics", by_time, ALL),
    .statement = &pg_stmt_report_worker_metrics};
const struct sql_endpoint api_queue_lag = {
    .route = READ("analytics/queue-lag", "queue_lag", by_queue, QUERY),
    .statement = &pg_stmt_report_queue_lag};
const struct sql_endpoint api_queue_ops = {
    .route = READ("analytics/queue-ops", "queue_ops", by_queue, QUERY),
    .statement = &pg_stmt_report_queue_ops};
const struct sql_endpoint api_parked_replicas = {
    .route = READ("analytics/queue-parked-replicas", "queue_parked_replicas", by_queue, QUERY),
    .statement = &pg_stmt_report_parked};
const struct sql_endpoint api_postgres_stats = {
    .route = READ("analytics/postgres-stats", "postgres_stats", NULL, ALL),
    .statement = &pg_stmt_report_postgres};
