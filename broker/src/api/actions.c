// Actions on messages: delete one, retry or bury one, clear a queue.  See broker/sql/procs.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

const struct sql_endpoint api_delete_message = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/messages/:partitionId/:transactionId",
              .access = ACCESS_READ_WRITE,
              .op = "delete_message",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_delete_message,
    .changes_queue = true,
};

const struct sql_endpoint api_retry_message = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/messages/:partitionId/:transactionId/retry",
              .access = ACCESS_READ_WRITE,
              .op = "retry_message",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_retry_message,
    .changes_queue = true,
};

const struct sql_endpoint api_move_to_dlq = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/messages/:partitionId/:transactionId/dlq",
              .access = ACCESS_READ_WRITE,
              .op = "move_to_dlq",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_move_to_dlq,
    .body = ENDPOINT_MAY_BODY,
    .changes_queue = true,
};

static const char *const clear_params[] = {"partition", NULL};

const struct sql_endpoint api_clear_queue = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/queues/:queue/clear",
              .access = ACCESS_ADMIN,
              .op = "clear_queue",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_clear_queue,
    .query = clear_params,
    .changes_queue = true,
};
