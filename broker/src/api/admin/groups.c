// Actions on consumer groups: delete, seek, change the subscription. The functions are in
// broker/sql/groups.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const delete_params[] = {"deleteMetadata", NULL};

static const char *const seek_partition_members[] = {"toEnd", NULL};
static const char *const seek_params[] = {"timestamp", "toEnd", NULL};
static const char *const seek_members[] = {"timestamp", "toEnd", NULL};

static const char *const subscription_members[] = {"subscriptionTimestamp", NULL};

const struct sql_endpoint api_delete_group = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/consumer-groups/:group",
              .access = ACCESS_ADMIN,
              .target = TARGET_ALL,
              .need = MAY_DELETE,
              .op = "delete_group",
              .handle = sql_endpoint_handle,
              .query = delete_params,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_delete_group,
    .changes_queue = true,
};

const struct sql_endpoint api_delete_group_on_queue = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/consumer-groups/:group/queues/:queue",
              .access = ACCESS_ADMIN,
              .target = TARGET_PATH,
              .need = MAY_DELETE,
              .op = "delete_group_on_queue",
              .handle = sql_endpoint_handle,
              .query = delete_params,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_delete_group,
    .changes_queue = true,
};

const struct sql_endpoint api_update_subscription = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/consumer-groups/:group/subscription",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_POP,
              .op = "update_subscription",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_update_subscription,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
    .members = subscription_members,
};

const struct sql_endpoint api_seek_group = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/consumer-groups/:group/queues/:queue/seek",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PATH,
              .need = MAY_POP,
              .op = "seek_group",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_seek_group,
    .body = ENDPOINT_BODY,
    .changes_queue = true,
    .members = seek_members,
};

const struct sql_endpoint api_preview_seek = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups/:group/queues/:queue/seek",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "preview_seek",
              .handle = sql_endpoint_handle,
              .query = seek_params},
    .statement = &pg_stmt_preview_seek,
};

const struct sql_endpoint api_seek_partition = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/consumer-groups/:group/queues/:queue/partitions/:partition/seek",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_PATH,
              .need = MAY_POP,
              .op = "seek_partition",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_seek_partition,
    .body = ENDPOINT_MAY_BODY,
    .members = seek_partition_members,
    .changes_queue = true,
};
