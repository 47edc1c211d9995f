// system.c: maintenance modes and the file buffer.
//
//      GET, POST /api/v1/system/maintenance       pushes go to the file buffer
//      GET, POST /api/v1/system/maintenance/pop   pops deliver nothing
//      GET /api/v1/system/settings                the settings of this server, without secrets
//      GET /api/v1/status/buffers                 this server's file buffer, without the
//      database
#include "api/api_int.h"
#include "db/sql.gen.h"
#include "pg/params.h"
#include "pg/reply.h"
#include "json/write.h"

// In the request's arena.
struct maintenance {
    struct http_req *req;
    struct custom_op op;
    bool of_pops, is_set;
};

static void maintenance_get(struct http_req *req);
static void maintenance_post(struct http_req *req);
static void on_system_flags(struct custom_op *op, int status, const struct pg_reply *reply);
static void system_put_answer(struct maintenance *m, unsigned flags, struct buf *out);

// ---- maintenance ----

static struct maintenance *system_begin(struct http_req *req)
{
    struct maintenance *m = arena_new(http_req_arena(req), struct maintenance);

    m->req = req;
    m->of_pops = http_req_route(req) == &api_pop_maintenance_get ||
                 http_req_route(req) == &api_pop_maintenance_set;
    m->op.done = on_system_flags;
    return m;
}

// From the database: the copy of this server may be some seconds old.
static void maintenance_get(struct http_req *req)
{
    struct api *api = http_req_app(req);
    struct maintenance *m = system_begin(req);

    m->op.statement = &pg_stmt_maintenance;
    broker_custom(api->broker, &m->op);
}

static void maintenance_post(struct http_req *req)
{
    static const span names[] = {{"enabled", 7}};
    struct api *api = http_req_app(req);
    struct maintenance *m = system_begin(req);
    struct body b = body_open(req, "");
    span raw;
    bool enabled = false;

    body_read_fields(&b, names, 1, &raw);
    if (b.j.rc == 0 && !js_bool(raw, &enabled))
        body_bad(&b, "enabled must be true or false");
    if (body_finish(&b) != 0) {
        http_reply_fault(req, &b.fault);
        return;
    }
    m->is_set = true;
    m->op.statement = &pg_stmt_set_maintenance;
    pg_param_text(&m->op.params,
                  m->of_pops ? SPAN("pop_maintenance_mode") : SPAN("maintenance_mode"));
    pg_param_bool(&m->op.params, enabled);
    broker_custom(api->broker, &m->op);
}

static void on_system_flags(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct maintenance *m = container_of(op, struct maintenance, op);
    struct api *api = http_req_app(m->req);
    struct buf out = {0};

    pg_params_free(&op->params);
    if (status == 0 && pg_reply_rows(reply) != 1)
        status = QE_PG_SHAPE;
    if (status != 0) {
        api_reply_failed(m->req, status, &op->op.why);
        return;
    }
    unsigned flags = (unsigned)pg_reply_i32(reply, 0, MAINTENANCE_COL_MAINTENANCE_FLAGS);
    if (m->is_set)
        broker_maintenance_changed(api->broker, flags);
    system_put_answer(m, flags, &out);
    http_reply_json(m->req, 200, &out);
}

static const char *word(bool v) { return v ? "true" : "false"; }

static void system_put_answer(struct maintenance *m, unsigned flags, struct buf *out)
{
    bool push_off = flags & MAINTENANCE_PUSH, pop_off = flags & MAINTENANCE_POP;
    const struct api *api = http_req_app(m->req);
    struct buffer_stats s;

    house_buffer_stats(api->shared->house, &s);
    if (m->of_pops) {
        buf_printf(out, "{\"popMaintenanceMode\":%s,\"message\":\"%s\"}", word(pop_off),
                   pop_off ? "pops deliver nothing" : "consumers may pop");
        return;
    }
    buf_printf(out, "{\"maintenanceMode\":%s", word(push_off));
    if (!m->is_set)
        buf_printf(out, ",\"popMaintenanceMode\":%s", word(pop_off));
    buf_printf(out, ",\"bufferedMessages\":%llu,\"bufferHealthy\":%s",
               (unsigned long long)s.pending, word(s.healthy));
    if (m->is_set) {
        buf_printf(out, ",\"message\":\"%s\"}",
                   push_off ? "pushes are being buffered" : "pushes are stored at once");
        return;
    }
    buf_printf(out,
               ",\"bufferStats\":{\"pendingCount\":%llu,\"failedCount\":%llu,\"dbHealthy\":%s,"
               "\"failedFiles\":{\"count\":%llu,\"totalBytes\":%llu,\"totalMB\":",
               (unsigned long long)s.pending, (unsigned long long)s.failed_files,
               word(s.db_healthy), (unsigned long long)s.failed_files,
               (unsigned long long)s.failed_bytes);
    uint64_t hundredths = s.failed_bytes * 100 / 1048576;
    js_put_number(out, (double)hundredths / 100);
    buf_printf(out, ",\"failoverCount\":%llu,\"qos0Count\":%llu}}}",
               (unsigned long long)(s.failed_files - s.failed_qos0),
               (unsigned long long)s.failed_qos0);
}

static void buffers_get(struct http_req *req)
{
    const struct api *api = http_req_app(req);
    struct buffer_stats s;
    struct buf out = {0};

    house_buffer_stats(api->shared->house, &s);
    buf_printf(&out, "{\"pending\":%llu,\"failed\":%llu,\"dbHealthy\":%s,\"worker\":%u}",
               (unsigned long long)s.pending, (unsigned long long)s.failed_files,
               word(s.db_healthy), api->index);
    http_reply_json(req, 200, &out);
}

static void settings_get(struct http_req *req)
{
    const struct api *api = http_req_app(req);

    http_reply_json_span(req, 200, api->shared->settings);
}

#define SYSTEM(verb_, path_, op_, access_, handle_)                         \
    {                                                                       \
        .verb = (verb_), .path = (path_), .access = (access_), .op = (op_), \
        .handle = (handle_), .unknown = UNKNOWN_IGNORED                     \
    }

const struct http_route api_maintenance_get = SYSTEM(
    HTTP_GET, "/api/v1/system/maintenance", "maintenance", ACCESS_ADMIN, maintenance_get);
const struct http_route api_maintenance_set = SYSTEM(
    HTTP_POST, "/api/v1/system/maintenance", "set_maintenance", ACCESS_ADMIN, maintenance_post);
const struct http_route api_pop_maintenance_get =
    SYSTEM(HTTP_GET, "/api/v1/system/maintenance/pop", "pop_maintenance", ACCESS_ADMIN,
           maintenance_get);
const struct http_route api_pop_maintenance_set =
    SYSTEM(HTTP_POST, "/api/v1/system/maintenance/pop", "set_pop_maintenance", ACCESS_ADMIN,
           maintenance_post);
const struct http_route api_buffers =
    SYSTEM(HTTP_GET, "/api/v1/status/buffers", "buffers", ACCESS_READ_ONLY, buffers_get);
const struct http_route api_settings = {
    .verb = HTTP_GET,
    .path = "/api/v1/system/settings",
    .access = ACCESS_ADMIN,
    .op = "settings",
    .handle = settings_get,
};
