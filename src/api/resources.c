// /api/v1/resources/...: what there is.  See sql/procs for what each of them answers.
#include "api/api_int.h"
#include "api/report.h"
#include "pg/sql.gen.h"

const struct report api_delete_queue = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/resources/queues/:queue",
              .access = ACCESS_ADMIN,
              .op = "delete_queue",
              .handle = report_handle},
    .statement = &pg_stmt_delete_queue,
    .changes_queue = true,
};
