// /streams/v1/queries and /streams/v1/state/get: streams register, are listed and read back
// their state. The endpoint that changes things is cycle.c.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const register_members[] = {"name",        "source_queue", "sink_queue",
                                               "config_hash", "reset",        NULL};

static const char *const state_members[] = {"query_id",   "partition_id",      "keys",
                                            "key_prefix", "ripe_at_or_before", NULL};

static const char *const list_params[] = {"search", "limit", "offset", NULL};

const struct sql_endpoint api_list_streams = {
    .route = {.verb = HTTP_GET,
              .path = "/streams/v1/queries",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "list_streams",
              .handle = sql_endpoint_handle,
              .query = list_params},
    .statement = &pg_stmt_list_streams,
};

const struct sql_endpoint api_stream_register = {
    .route = {.verb = HTTP_POST,
              .path = "/streams/v1/queries",
              .unaudited = true,
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_POP,
              .op = "stream_register",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_stream_register,
    .body = ENDPOINT_BODY,
    .members = register_members,
};

const struct sql_endpoint api_stream_state = {
    .route = {.verb = HTTP_POST,
              .path = "/streams/v1/state/get",
              .unaudited = true,
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "stream_state",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_stream_state,
    .body = ENDPOINT_BODY,
    .members = state_members,
};
