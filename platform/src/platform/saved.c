// /api/v1/tenants/:tenant/segments: saved segments.
#include "platform/saved.h"

#include "platform/members.h"
#include "platform/segment_request.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

enum { MAX_PAGE = 1000 };

struct tenant_task *saved_task(struct http_req *req, const struct pg_statement *statement)
{
    struct tenant_task *t = arena_new(http_req_arena(req), struct tenant_task);

    t->req = req;
    t->statement = statement;
    return segment_request_tenant(req, &t->tenant) ? t : NULL;
}

void saved_task_start(struct tenant_task *t)
{
    struct buf args = {0};

    if (t == NULL)
        return;
    buf_putc(&args, '{');
    tenant_task_put_query(t->req, &args, "before");
    if (tenant_task_put_path(t->req, &args, 1, "segment") &&
        tenant_task_put_count(t->req, &args, "limit", MAX_PAGE)) {
        buf_putc(&args, '}');
        tenant_task_start(t, buf_span(&args));
    }
    buf_free(&args);
}

// ---- save ----

static void save_handle(struct http_req *req)
{
    static const char *const names[] = {"name", "filter", NULL};
    struct tenant_task *t = saved_task(req, &pg_stmt_tenant_save_segment);
    struct segment_request *s = arena_new(http_req_arena(req), struct segment_request);
    span raw[2] = {{0}}, name;
    struct buf args = {0};

    s->req = req;
    if (t == NULL || !members_read(req, names, raw) ||
        !members_name(req, raw[0], "name", &name) || !segment_request_filter(s, raw[1]))
        return;
    if (!compile_is_possible(s->filter, &s->query.facts)) {
        http_reply_errf(req, QE_BAD_PARAM, "filter: has too many values: at most %d",
                        COMPILE_MAX_PARAMS - 2);
        return;
    }
    buf_put_lit(&args, "{\"name\":");
    js_put_text(&args, name);
    buf_put_lit(&args, ",\"filter\":");
    buf_put(&args, s->filter_text);
    buf_putc(&args, '}');
    tenant_task_start(t, buf_span(&args));
    buf_free(&args);
}

// ---- list, get, history ----

static void saved_list_handle(struct http_req *req)
{
    struct tenant_task *t = saved_task(req, &pg_stmt_tenant_list_segments);
    struct buf args = {0};

    if (t == NULL)
        return;
    buf_putc(&args, '{');
    tenant_task_put_query(req, &args, "after");
    if (tenant_task_put_count(req, &args, "limit", MAX_PAGE)) {
        buf_putc(&args, '}');
        tenant_task_start(t, buf_span(&args));
    }
    buf_free(&args);
}

static void saved_get_handle(struct http_req *req)
{
    saved_task_start(saved_task(req, &pg_stmt_tenant_get_segment));
}

static void counts_handle(struct http_req *req)
{
    saved_task_start(saved_task(req, &pg_stmt_tenant_segment_counts));
}

// ---- delete, which ends the checks ----

static void on_saved_deleted(struct tenant_task *t, int status, span body)
{
    segment_watch_end(t, status, body, "deleted");
}

static void saved_delete_handle(struct http_req *req)
{
    if (!members_read_none(req))
        return;
    struct tenant_task *t = saved_task(req, &pg_stmt_tenant_delete_segment);
    if (t != NULL)
        t->done = on_saved_deleted;
    saved_task_start(t);
}

#define SEGMENTS "/api/v1/tenants/:tenant/segments"
static const char *const list_params[] = {"after", "limit", NULL};
static const char *const counts_params[] = {"before", "limit", NULL};

const struct http_route platform_save_segment = {.verb = HTTP_POST,
                                                 .path = SEGMENTS,
                                                 .access = ACCESS_READ_WRITE,
                                                 .target = TARGET_TENANT,
                                                 .need = MAY_CONFIGURE,
                                                 .op = "save_segment",
                                                 .handle = save_handle};
const struct http_route platform_list_segments = {.verb = HTTP_GET,
                                                  .path = SEGMENTS,
                                                  .access = ACCESS_READ_ONLY,
                                                  .target = TARGET_TENANT,
                                                  .need = MAY_READ,
                                                  .op = "list_segments",
                                                  .handle = saved_list_handle,
                                                  .query = list_params};
const struct http_route platform_get_segment = {.verb = HTTP_GET,
                                                .path = SEGMENTS "/:segment",
                                                .access = ACCESS_READ_ONLY,
                                                .target = TARGET_TENANT,
                                                .need = MAY_READ,
                                                .op = "get_segment",
                                                .handle = saved_get_handle};
const struct http_route platform_delete_segment = {.verb = HTTP_DELETE,
                                                   .path = SEGMENTS "/:segment",
                                                   .access = ACCESS_READ_WRITE,
                                                   .target = TARGET_TENANT,
                                                   .need = MAY_DELETE,
                                                   .op = "delete_segment",
                                                   .handle = saved_delete_handle};
const struct http_route platform_segment_counts = {.verb = HTTP_GET,
                                                   .path = SEGMENTS "/:segment/counts",
                                                   .access = ACCESS_READ_ONLY,
                                                   .target = TARGET_TENANT,
                                                   .need = MAY_READ,
                                                   .op = "segment_counts",
                                                   .handle = counts_handle,
                                                   .query = counts_params};
