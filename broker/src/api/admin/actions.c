// Actions on messages: delete, retry or dead-letter one; clear a queue. The functions are in
// broker/sql/messages, broker/sql/retry and broker/sql/admin.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const move_members[] = {"consumerGroup", "error", NULL};

const struct sql_endpoint api_delete_message = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/messages/:partitionId/:transactionId",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PARTITION,
              .need = MAY_DELETE,
              .op = "delete_message",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_delete_message,
    .group = ENDPOINT_ALL_GROUPS,
    .changes_queue = true,
};

const struct sql_endpoint api_retry_message = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/messages/:partitionId/:transactionId/retry",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PARTITION,
              .need = MAY_POP,
              .op = "retry_message",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_retry_message,
    .group = ENDPOINT_ALL_GROUPS,
    .changes_queue = true,
};

const struct sql_endpoint api_move_to_dlq = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/messages/:partitionId/:transactionId/dlq",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PARTITION,
              .need = MAY_POP,
              .op = "move_to_dlq",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_move_to_dlq,
    .body = ENDPOINT_MAY_BODY,
    .changes_queue = true,
    .members = move_members,
    .group = ENDPOINT_GROUP_OR_QUEUE_MODE,
};

static const char *const clear_params[] = {"partition", NULL};

const struct sql_endpoint api_clear_queue = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/queues/:queue/clear",
              .access = ACCESS_ADMIN,
              .target = TARGET_PATH,
              .need = MAY_DELETE,
              .op = "clear_queue",
              .handle = sql_endpoint_handle,
              .query = clear_params,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_clear_queue,
    .changes_queue = true,
};
