// Reading messages and dead letters. The functions are in broker/sql/messages.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const list_params[] = {"queue",    "partition", "ns", "namespace", "task",
                                          "status",   "from",      "to", "limit",     "offset",
                                          "contains", "search",    NULL};
static const char *const dlq_params[] = {
    "queue", "partition", "consumerGroup", "exactError", "from", "to", "limit", "offset", NULL};
static const char *const dlq_groups_params[] = {
    "queue", "partition", "consumerGroup", "from", "to", "limit", NULL};

const struct sql_endpoint api_list_messages = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/messages",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_QUERY,
              .need = MAY_READ,
              .op = "list_messages",
              .handle = sql_endpoint_handle,
              .query = list_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_messages,
};

const struct sql_endpoint api_get_message = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/messages/:partitionId/:transactionId",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PARTITION,
              .need = MAY_READ,
              .op = "get_message",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_get_message,
};

const struct sql_endpoint api_list_dlq = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/dlq",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_QUERY,
              .need = MAY_READ,
              .op = "list_dlq",
              .handle = sql_endpoint_handle,
              .query = dlq_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_dead_letters,
};

const struct sql_endpoint api_dlq_groups = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/dlq/groups",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_QUERY,
              .need = MAY_READ,
              .op = "group_dead_letters",
              .handle = sql_endpoint_handle,
              .query = dlq_groups_params},
    .statement = &pg_stmt_group_dead_letters,
};
