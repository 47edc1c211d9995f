// /api/v1/schedules: recurring messages.  See broker/sql/procs for what each answers.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const list_params[] = {"queue", "limit", "offset", NULL};

const struct sql_endpoint api_list_schedules = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/schedules",
              .access = ACCESS_READ_ONLY,
              .op = "list_schedules",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_schedules,
    .query = list_params,
};

const struct sql_endpoint api_create_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules",
              .access = ACCESS_READ_WRITE,
              .op = "create_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_create_schedule,
    .body = ENDPOINT_BODY,
    .changes_times = true,
};

const struct sql_endpoint api_get_schedule = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_ONLY,
              .op = "get_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_get_schedule,
};

const struct sql_endpoint api_change_schedule = {
    .route = {.verb = HTTP_PATCH,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_WRITE,
              .op = "change_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_change_schedule,
    .body = ENDPOINT_BODY,
    .changes_times = true,
};

const struct sql_endpoint api_delete_schedule = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_WRITE,
              .op = "delete_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_delete_schedule,
};

const struct sql_endpoint api_pause_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/pause",
              .access = ACCESS_READ_WRITE,
              .op = "pause_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_pause_schedule,
};

const struct sql_endpoint api_resume_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/resume",
              .access = ACCESS_READ_WRITE,
              .op = "resume_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_resume_schedule,
    .changes_times = true,
};

const struct sql_endpoint api_run_schedule_now = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/run",
              .access = ACCESS_READ_WRITE,
              .op = "run_schedule_now",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_run_schedule_now,
    .changes_times = true,
};
