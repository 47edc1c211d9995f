// Failed messages: their timeline, and redriving dead letters. The functions are in
// broker/sql/retry.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const timeline_params[] = {"correlationId", "transactionId", "messageId",
                                              "queue",         "partition",     "consumerGroup",
                                              "limit",         "offset",        NULL};

static const char *const redrive_members[] = {
    "ids", "queue", "partition",   "consumerGroup", "error", "exactError", "from",
    "to",  "all",   "targetQueue", "ratePerSecond", "limit", NULL};

const struct sql_endpoint api_timeline = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/messages/timeline",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "timeline",
              .handle = sql_endpoint_handle,
              .query = timeline_params},
    .statement = &pg_stmt_timeline,
};

static const char *const find_params[] = {"id", "queue", "partition", NULL};
const struct sql_endpoint api_find_messages = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/messages/find",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "find_messages",
              .handle = sql_endpoint_handle,
              .query = find_params},
    .statement = &pg_stmt_find_messages,
};

const struct sql_endpoint api_redrive = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/dlq/redrive",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_BODY,
              .need = MAY_POP,
              .op = "redrive",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_redrive,
    .body = ENDPOINT_BODY,
    .members = redrive_members,
    .group = ENDPOINT_GROUP_OR_ALL,
};
