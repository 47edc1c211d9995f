// /api/v1/resources/...: queues, namespaces, tasks, partitions. The functions are in
// broker/sql/admin.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const list_params[] = {"namespace", "task", "limit", "offset", NULL};
static const char *const partition_params[] = {"queue", NULL};

const struct sql_endpoint api_delete_queue = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/resources/queues/:queue",
              .access = ACCESS_ADMIN,
              .target = TARGET_PATH,
              .need = MAY_DELETE,
              .op = "delete_queue",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_delete_queue,
    .changes_queue = true,
};

const struct sql_endpoint api_list_queues = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/queues",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "list_queues",
              .handle = sql_endpoint_handle,
              .query = list_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_queues,
};

const struct sql_endpoint api_get_queue = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/queues/:queue",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "get_queue",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_get_queue,
};

const struct sql_endpoint api_list_namespaces = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/namespaces",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "list_namespaces",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_namespaces,
};

const struct sql_endpoint api_list_tasks = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/tasks",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "list_tasks",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_tasks,
};

const struct sql_endpoint api_get_overview = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/overview",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "get_overview",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_get_overview,
};

const struct sql_endpoint api_list_partitions = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/partitions",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "list_partitions",
              .handle = sql_endpoint_handle,
              .query = partition_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_partitions,
};
