// /api/v1/scheduled: messages that wait for their time.  See broker/sql/procs for what each
// answers.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

#define FILTERS \
    "queue", "partition", "from", "to", "correlationId", "transactionIdPrefix", "kind"

static const char *const list_params[] = {FILTERS, "limit", "cursor", NULL};
static const char *const count_params[] = {FILTERS, NULL};
static const char *const cancel_params[] = {FILTERS, "all", NULL};

const struct sql_endpoint api_list_scheduled = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/scheduled",
              .access = ACCESS_READ_ONLY,
              .op = "list_scheduled",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_scheduled,
    .query = list_params,
};

const struct sql_endpoint api_count_scheduled = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/scheduled/count",
              .access = ACCESS_READ_ONLY,
              .op = "count_scheduled",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_count_scheduled,
    .query = count_params,
};

const struct sql_endpoint api_get_scheduled = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/scheduled/:id",
              .access = ACCESS_READ_ONLY,
              .op = "get_scheduled",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_get_scheduled,
};

const struct sql_endpoint api_cancel_scheduled_one = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/scheduled/:id",
              .access = ACCESS_READ_WRITE,
              .op = "cancel_scheduled_one",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_cancel_scheduled_one,
};

const struct sql_endpoint api_cancel_scheduled = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/scheduled",
              .access = ACCESS_READ_WRITE,
              .op = "cancel_scheduled",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_cancel_scheduled_where,
    .query = cancel_params,
};

const struct sql_endpoint api_reschedule = {
    .route = {.verb = HTTP_PATCH,
              .path = "/api/v1/scheduled/:id",
              .access = ACCESS_READ_WRITE,
              .op = "reschedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_reschedule,
    .body = ENDPOINT_BODY,
    .changes_times = true,
};
