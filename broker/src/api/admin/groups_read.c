// Reading about consumer groups. The functions are in broker/sql/groups.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const list_params[] = {"queue", "consumerGroup", "search", "sort",
                                          "limit", "offset",        NULL};
static const char *const partitions_params[] = {"limit", "offset", "search", "sort", NULL};
static const char *const lagging_params[] = {"minLagSeconds", NULL};

const struct sql_endpoint api_list_groups = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_LIST,
              .need = MAY_READ,
              .op = "list_groups",
              .handle = sql_endpoint_handle,
              .query = list_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_groups,
};

const struct sql_endpoint api_list_lagging = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups/lagging",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "list_lagging",
              .handle = sql_endpoint_handle,
              .query = lagging_params,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_list_lagging,
};

const struct sql_endpoint api_get_group = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups/:group",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "get_group",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_get_group,
};

const struct sql_endpoint api_group_partitions = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups/:group/queues/:queue/partitions",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_PATH,
              .need = MAY_READ,
              .op = "group_partitions",
              .handle = sql_endpoint_handle,
              .query = partitions_params},
    .statement = &pg_stmt_group_partitions,
};
