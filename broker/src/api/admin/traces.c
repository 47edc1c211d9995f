// Traces: events that clients attach to messages. The functions are in broker/sql/messages.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const page_params[] = {"limit", "offset", NULL};

static const char *const trace_members[] = {
    "transactionId", "partitionId", "data", "consumerGroup", "eventType", "traceNames", NULL};

const struct sql_endpoint api_add_trace = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/traces",
              .unaudited = true,
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PARTITION,
              .need = MAY_POP,
              .op = "add_trace",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_add_trace,
    .body = ENDPOINT_BODY,
    .members = trace_members,
};

const struct sql_endpoint api_trace_names = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/traces/names",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "trace_names",
              .handle = sql_endpoint_handle,
              .query = page_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_trace_names,
};

const struct sql_endpoint api_traces_by_name = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/traces/by-name/:traceName",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "traces_by_name",
              .handle = sql_endpoint_handle,
              .query = page_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_traces_by_name,
};

const struct sql_endpoint api_traces_of_message = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/traces/:partitionId/:transactionId",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PARTITION,
              .need = MAY_READ,
              .op = "traces_of_message",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_traces_of_message,
};
