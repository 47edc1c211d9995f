// /api/v1/resources/...: what there is.  See broker/sql/procs for what each of them answers.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const list_params[] = {"namespace", "task", "limit", "offset", NULL};
static const char *const partition_params[] = {"queue", NULL};

const struct sql_endpoint api_delete_queue = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/resources/queues/:queue",
              .access = ACCESS_ADMIN,
              .op = "delete_queue",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_delete_queue,
    .changes_queue = true,
};

const struct sql_endpoint api_list_queues = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/queues",
              .access = ACCESS_READ_ONLY,
              .op = "list_queues",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_queues,
    .query = list_params,
};

const struct sql_endpoint api_get_queue = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/queues/:queue",
              .access = ACCESS_READ_ONLY,
              .op = "get_queue",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_get_queue,
};

const struct sql_endpoint api_list_namespaces = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/namespaces",
              .access = ACCESS_READ_ONLY,
              .op = "list_namespaces",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_namespaces,
};

const struct sql_endpoint api_list_tasks = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/tasks",
              .access = ACCESS_READ_ONLY,
              .op = "list_tasks",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_tasks,
};

const struct sql_endpoint api_get_overview = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/overview",
              .access = ACCESS_READ_ONLY,
              .op = "get_overview",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_get_overview,
};

const struct sql_endpoint api_list_partitions = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/resources/partitions",
              .access = ACCESS_READ_ONLY,
              .op = "list_partitions",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_partitions,
    .query = partition_params,
};
