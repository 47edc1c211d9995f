// GET /api/v1/analytics/retention: messages removed because of their age.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const range[] = {"from", "to", NULL};

const struct sql_endpoint api_retention = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/analytics/retention",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "retention",
              .handle = sql_endpoint_handle,
              .query = range,
              .unknown = UNKNOWN_IGNORED},
    .statement = &pg_stmt_retention_analytics,
};
