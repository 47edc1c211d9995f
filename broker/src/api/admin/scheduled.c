// /api/v1/scheduled: messages with a future delivery time. The functions are in
// broker/sql/schedule.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

#define FILTERS \
    "queue", "partition", "from", "to", "correlationId", "transactionIdPrefix", "kind"

static const char *const list_params[] = {FILTERS, "limit", "cursor", NULL};
static const char *const count_params[] = {FILTERS, "bucketSeconds", NULL};
static const char *const cancel_params[] = {FILTERS, "all", NULL};

static const char *const time_members[] = {"scheduledAt", "delaySeconds", NULL};

const struct sql_endpoint api_list_scheduled = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/scheduled",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_QUERY,
              .need = MAY_READ,
              .op = "list_scheduled",
              .handle = sql_endpoint_handle,
              .query = list_params},
    .statement = &pg_stmt_list_scheduled,
};

const struct sql_endpoint api_count_scheduled = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/scheduled/count",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_QUERY,
              .need = MAY_READ,
              .op = "count_scheduled",
              .handle = sql_endpoint_handle,
              .query = count_params},
    .statement = &pg_stmt_count_scheduled,
};

const struct sql_endpoint api_get_scheduled = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/scheduled/:id",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "get_scheduled",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_get_scheduled,
};

const struct sql_endpoint api_cancel_scheduled_one = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/scheduled/:id",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_DELETE,
              .op = "cancel_scheduled_one",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_cancel_scheduled_one,
};

const struct sql_endpoint api_cancel_scheduled = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/scheduled",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_QUERY,
              .need = MAY_DELETE,
              .op = "cancel_scheduled",
              .handle = sql_endpoint_handle,
              .query = cancel_params,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_cancel_scheduled_where,
};

const struct sql_endpoint api_reschedule = {
    .route = {.verb = HTTP_PATCH,
              .path = "/api/v1/scheduled/:id",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_PUSH,
              .op = "reschedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_reschedule,
    .body = ENDPOINT_BODY,
    .changes_times = true,
    .members = time_members,
};
