// Traces: events that clients attach to messages.  See broker/sql/procs for what each answers.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const page_params[] = {"limit", "offset", NULL};

const struct sql_endpoint api_add_trace = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/traces",
              .access = ACCESS_READ_WRITE,
              .op = "add_trace",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_add_trace,
    .body = ENDPOINT_BODY,
};

const struct sql_endpoint api_trace_names = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/traces/names",
              .access = ACCESS_READ_ONLY,
              .op = "trace_names",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_trace_names,
    .query = page_params,
};

const struct sql_endpoint api_traces_by_name = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/traces/by-name/:traceName",
              .access = ACCESS_READ_ONLY,
              .op = "traces_by_name",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_traces_by_name,
    .query = page_params,
};

const struct sql_endpoint api_traces_of_message = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/traces/:partitionId/:transactionId",
              .access = ACCESS_READ_ONLY,
              .op = "traces_of_message",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_traces_of_message,
};
