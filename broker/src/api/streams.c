// POST /streams/v1/queries and /streams/v1/state/get: what streams register and read back.
// Their third endpoint, which changes things, is cycle.c.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

const struct sql_endpoint api_stream_register = {
    .route = {.verb = HTTP_POST,
              .path = "/streams/v1/queries",
              .access = ACCESS_READ_WRITE,
              .op = "stream_register",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_stream_register,
    .body = ENDPOINT_BODY,
};

const struct sql_endpoint api_stream_state = {
    .route = {.verb = HTTP_POST,
              .path = "/streams/v1/state/get",
              .access = ACCESS_READ_ONLY,
              .op = "stream_state",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_stream_state,
    .body = ENDPOINT_BODY,
};
