// /api/v1/schedules: recurring messages.  See broker/sql/procs for what each answers.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const list_params[] = {"queue", "limit", "offset", NULL};

const struct report api_list_schedules = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/schedules",
              .access = ACCESS_READ_ONLY,
              .op = "list_schedules",
              .handle = report_handle},
    .statement = &pg_stmt_list_schedules,
    .query = list_params,
};

const struct report api_create_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules",
              .access = ACCESS_READ_WRITE,
              .op = "create_schedule",
              .handle = report_handle},
    .statement = &pg_stmt_create_schedule,
    .body = REPORT_BODY,
    .changes_times = true,
};

const struct report api_get_schedule = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_ONLY,
              .op = "get_schedule",
              .handle = report_handle},
    .statement = &pg_stmt_get_schedule,
};

const struct report api_change_schedule = {
    .route = {.verb = HTTP_PATCH,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_WRITE,
              .op = "change_schedule",
              .handle = report_handle},
    .statement = &pg_stmt_change_schedule,
    .body = REPORT_BODY,
    .changes_times = true,
};

const struct report api_delete_schedule = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_WRITE,
              .op = "delete_schedule",
              .handle = report_handle},
    .statement = &pg_stmt_delete_schedule,
};

const struct report api_pause_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/pause",
              .access = ACCESS_READ_WRITE,
              .op = "pause_schedule",
              .handle = report_handle},
    .statement = &pg_stmt_pause_schedule,
};

const struct report api_resume_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/resume",
              .access = ACCESS_READ_WRITE,
              .op = "resume_schedule",
              .handle = report_handle},
    .statement = &pg_stmt_resume_schedule,
    .changes_times = true,
};

const struct report api_run_schedule_now = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/run",
              .access = ACCESS_READ_WRITE,
              .op = "run_schedule_now",
              .handle = report_handle},
    .statement = &pg_stmt_run_schedule_now,
    .changes_times = true,
};
