// Actions on consumer groups: delete, seek, change the subscription.  See broker/sql/procs.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const delete_params[] = {"deleteMetadata", NULL};

const struct sql_endpoint api_delete_group = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/consumer-groups/:group",
              .access = ACCESS_ADMIN,
              .op = "delete_group",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_delete_group,
    .query = delete_params,
    .changes_queue = true,
};

const struct sql_endpoint api_delete_group_on_queue = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/consumer-groups/:group/queues/:queue",
              .access = ACCESS_ADMIN,
              .op = "delete_group_on_queue",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_delete_group,
    .query = delete_params,
    .changes_queue = true,
};

const struct sql_endpoint api_update_subscription = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/consumer-groups/:group/subscription",
              .access = ACCESS_READ_WRITE,
              .op = "update_subscription",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_update_subscription,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
};

const struct sql_endpoint api_seek_group = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/consumer-groups/:group/queues/:queue/seek",
              .access = ACCESS_READ_WRITE,
              .op = "seek_group",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_seek_group,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
};

const struct sql_endpoint api_seek_partition = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek",
              .access = ACCESS_READ_WRITE,
              .op = "seek_partition",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_seek_partition,
    .changes_queue = true,
};
