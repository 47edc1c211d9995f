// /api/v1/schedules: recurring messages. The functions are in broker/sql/schedule.
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"

static const char *const list_params[] = {"queue", "limit", "offset", NULL};
static const char *const get_params[] = {"runs", NULL};

static const char *const schedule_members[] = {
    "name", "queue", "partition", "cron", "timezone", "payload", "missed", "paused", NULL};

const struct sql_endpoint api_list_schedules = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/schedules",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_QUERY,
              .need = MAY_READ,
              .op = "list_schedules",
              .handle = sql_endpoint_handle,
              .query = list_params},
    .statement = &pg_stmt_list_schedules,
};

const struct sql_endpoint api_create_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_BODY,
              .need = MAY_PUSH,
              .op = "create_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_create_schedule,
    .body = ENDPOINT_BODY,
    .changes_times = true,
    .members = schedule_members,
};

const struct sql_endpoint api_get_schedule = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_ONLY,
              .target = TARGET_ALL,
              .need = MAY_READ,
              .op = "get_schedule",
              .handle = sql_endpoint_handle,
              .query = get_params},
    .statement = &pg_stmt_get_schedule,
};

const struct sql_endpoint api_change_schedule = {
    .route = {.verb = HTTP_PATCH,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_PUSH | MAY_CONFIGURE,
              .op = "change_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_change_schedule,
    .body = ENDPOINT_BODY,
    .changes_times = true,
    .members = schedule_members,
};

const struct sql_endpoint api_delete_schedule = {
    .route = {.verb = HTTP_DELETE,
              .path = "/api/v1/schedules/:id",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_DELETE,
              .op = "delete_schedule",
              .handle = sql_endpoint_handle,
              .unknown = UNKNOWN_OR_EMPTY_REFUSED},
    .statement = &pg_stmt_delete_schedule,
};

const struct sql_endpoint api_pause_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/pause",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_CONFIGURE,
              .op = "pause_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_pause_schedule,
};

const struct sql_endpoint api_resume_schedule = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/resume",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_CONFIGURE,
              .op = "resume_schedule",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_resume_schedule,
    .changes_times = true,
};

const struct sql_endpoint api_run_schedule_now = {
    .route = {.verb = HTTP_POST,
              .path = "/api/v1/schedules/:id/run",
              .access = ACCESS_READ_WRITE,
              .target = TARGET_ALL,
              .need = MAY_PUSH,
              .op = "run_schedule_now",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_run_schedule_now,
    .changes_times = true,
};
