// Reading about consumer groups.  See broker/sql/procs for what each answers.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const lagging_params[] = {"minLagSeconds", NULL};

const struct sql_endpoint api_list_groups = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups",
              .access = ACCESS_READ_ONLY,
              .op = "list_groups",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_groups,
};

const struct sql_endpoint api_list_lagging = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups/lagging",
              .access = ACCESS_READ_ONLY,
              .op = "list_lagging",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_lagging,
    .query = lagging_params,
};

const struct sql_endpoint api_get_group = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/consumer-groups/:group",
              .access = ACCESS_READ_ONLY,
              .op = "get_group",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_get_group,
};
