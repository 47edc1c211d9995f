// Failed messages: their timeline, and dead letters sent on their way
// again. See broker/sql/procs for what each answers.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const timeline_params[] = {
    "correlationId", "transactionId", "messageId", "queue", "partition", "consumerGroup", NULL};

const struct sql_endpoint api_timeline = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/messages/timeline",
              .access = ACCESS_READ_ONLY,
              .op = "timeline",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_timeline,
    .query = timeline_params,
};

const struct sql_endpoint api_redrive = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/dlq/redrive",
              .access = ACCESS_READ_WRITE,
              .op = "redrive",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_redrive,
    .body = ENDPOINT_BODY,
};
