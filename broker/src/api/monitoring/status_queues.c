// /api/v1/status/queues..., /status/analytics and /stats/refresh: statistics. The functions are
// in broker/sql/stats.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const queues_params[] = {"limit", "offset", "namespace", "task", "search",
                                            "sort",  "order",  "history",   NULL};
static const char *const partitions_params[] = {"limit", "offset", "search", "sort", NULL};
static const char *const map_params[] = {"cells", "from", "to", "group", NULL};
static const char *const messages_params[] = {"limit", "offset", NULL};
static const char *const analytics_params[] = {"interval",  "from", "to", "queue",
                                               "namespace", "task", NULL};

const struct sql_endpoint api_status_queues = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/status/queues",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "status_queues",
              .handle = sql_endpoint_handle,
              .query = queues_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_status_queues,
};

const struct sql_endpoint api_status_queue = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/status/queues/:queue",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "status_queue",
              .handle = sql_endpoint_handle,
              .query = partitions_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_status_queue,
};

const struct sql_endpoint api_map_partitions = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/status/queues/:queue/map",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "map_partitions",
              .handle = sql_endpoint_handle,
              .query = map_params},
    .statement = &pg_stmt_map_partitions,
};

const struct sql_endpoint api_status_queue_messages = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/status/queues/:queue/messages",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "status_queue_messages",
              .handle = sql_endpoint_handle,
              .query = messages_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_status_queue_messages,
};

const struct sql_endpoint api_status_analytics = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/status/analytics",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_QUERY,
              .need = MAY_READ,
              .op = "status_analytics",
              .handle = sql_endpoint_handle,
              .query = analytics_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_status_analytics,
};

const struct sql_endpoint api_refresh_stats = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/stats/refresh",
              .unaudited = true,
              .access = ACCESS_ADMIN,
              .op = "refresh_stats",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_refresh_stats,
};
