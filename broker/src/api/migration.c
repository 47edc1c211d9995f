// /api/v1/migration/...: copy everything into another PostgreSQL (transfer/transfer.h).
//
// Connecting to the target blocks, so it is done by libuv's threads.
#include <stdio.h>
#include <stdlib.h>

#include "api/api_int.h"
#include "base/mem.h"
#include "base/str.h"
#include "pg/conninfo.h"
#include "transfer/transfer.h"
#include "json/write.h"

enum { F_HOST, F_PORT, F_DATABASE, F_USER, F_PASSWORD, F_SSL, F_SCHEMA, F_EXCLUDE, FIELDS };
static const span field_names[FIELDS] = {
    [F_HOST] = {"host", 4},         [F_PORT] = {"port", 4},
    [F_DATABASE] = {"database", 8}, [F_USER] = {"user", 4},
    [F_PASSWORD] = {"password", 8}, [F_SSL] = {"ssl", 3},
    [F_SCHEMA] = {"schema", 6},     [F_EXCLUDE] = {"excludeTableData", 16},
};
enum { CONNECT_MS = 10000, MAX_EXCLUDED = 48 };

// Our tables that are excluded together with a table of the contract.  Without messages the
// sequence numbers start at 1 in the target, so cursors and dead letters, which refer to
// sequence numbers, are excluded, too.
static const struct {
    const char *table, *ours[12];
} excludable[] = {
    {"messages",
     {"queen.segments", "queen.message_keys", "queen.consumers", "queen.consumer_states*",
      "queen.dead_letter_queue", "queen.message_traces", "queen.message_trace_names",
      "queen.skips"}},
    {"dead_letter_queue", {"queen.dead_letter_queue"}},
    {"message_traces", {"queen.message_traces", "queen.message_trace_names"}},
    {"message_trace_names", {"queen.message_trace_names"}},
    {"messages_consumed", {"queen.messages_consumed*"}},
    {"stats", {"queen.stats", "queen.lane_stats", "queen.consumer_stats"}},
    {"stats_history", {"queen.stats_history*"}},
    {"system_metrics", {"queen.system_metrics*"}},
    {"worker_metrics", {"queen.worker_metrics"}},
    {"worker_metrics_summary", {"queen.worker_metrics_summary"}},
    {"queue_lag_metrics", {"queen.queue_lag_metrics*"}},
    {"retention_history", {"queen.retention_history*"}},
};
// Numbers of transactions of this cluster, and what lives for a minute.
static const char *const never[] = {"queen.changes*", "queen.stats_pass",
                                    "queen_streams.receipts*"};

// In the request's arena; target from malloc.
struct migration {
    struct http_req *req;
    struct pg_transfer *transfer;
    char *target; // conninfo, with the password
    const char *excluded[MAX_EXCLUDED];
    unsigned n_excluded;
    uv_work_t work;
    int rc;
    struct fault fault;
    char version[64];
    struct pg_count here[PG_MAX_COUNTS], there[PG_MAX_COUNTS];
    unsigned n_here, n_there;
};

static struct migration *read_request(struct http_req *req);
static void read_excluded(struct migration *m, struct body *b, span raw);
static void test_connection(uv_work_t *work);
static void on_tested(uv_work_t *work, int status);
static void count_both(uv_work_t *work);
static void on_counted(uv_work_t *work, int status);

static struct pg_transfer *transfer_of(struct http_req *req)
{
    const struct api *api = http_req_app(req);
    return api->shared->transfer;
}

static const char *required(struct body *b, span raw, const char *name)
{
    span text = body_text(b, raw, name);

    if (text.len == 0)
        body_bad(b, "%s must be a string that is not empty", name);
    return arena_cstr(b->arena, text);
}

// NULL: answered with 400.
static struct migration *read_request(struct http_req *req)
{
    struct migration *m = arena_new(http_req_arena(req), struct migration);
    struct body b = body_open(req, "");
    span raw[FIELDS];
    struct pg_conninfo info = {.connect_timeout_ms = CONNECT_MS, .no_options = true};
    int64_t port = 5432;
    bool ssl = false;

    m->req = req;
    m->transfer = transfer_of(req);
    body_read_fields(&b, field_names, FIELDS, raw);
    if (body_finish(&b) == 0) {
        info.hosts = required(&b, raw[F_HOST], "host");
        info.db = required(&b, raw[F_DATABASE], "database");
        info.user = required(&b, raw[F_USER], "user");
        info.password = arena_cstr(b.arena, body_text(&b, raw[F_PASSWORD], "password"));
        if (js_type_of(raw[F_PORT]) != JS_NONE && js_type_of(raw[F_PORT]) != JS_NULL &&
            (!js_int(raw[F_PORT], &port) || port < 1 || port > 65535))
            body_bad(&b, "port must be a number of 1 to 65535");
        if (js_type_of(raw[F_SSL]) != JS_NONE && js_type_of(raw[F_SSL]) != JS_NULL &&
            !js_bool(raw[F_SSL], &ssl))
            body_bad(&b, "ssl must be true or false");
        span schema = body_text(&b, raw[F_SCHEMA], "schema");
        if (schema.len > 0 && !span_eq(schema, SPAN("queen")))
            body_bad(&b, "schema must be queen: no other one is ours to copy");
        read_excluded(m, &b, raw[F_EXCLUDE]);
    }
    if (b.j.rc != 0 || b.fault.code != 0) {
        http_reply_fault(req, &b.fault);
        return NULL;
    }
    info.port = (unsigned)port;
    info.sslmode = ssl ? "require" : "prefer";
    info.application_name = "queen migration";
    m->target = pg_conninfo_format(&info);
    return m;
}

static void exclude(struct migration *m, const char *pattern)
{
    if (m->n_excluded < MAX_EXCLUDED)
        m->excluded[m->n_excluded++] = pattern;
}

static void read_excluded(struct migration *m, struct body *b, span raw)
{
    enum js_type type = js_type_of(raw);

    for (unsigned i = 0; i < countof(never); i++)
        exclude(m, never[i]);
    if (type == JS_NONE || type == JS_NULL)
        return;
    if (type != JS_ARRAY) {
        body_bad(b, "excludeTableData must be an array");
        return;
    }
    struct js j = js_read(raw);
    bool taken[countof(excludable)] = {false};
    js_enter_array(&j);
    while (js_next_item(&j)) {
        span name = body_text_or_none(b, js_skip(&j));
        for (unsigned i = 0; i < countof(excludable); i++) {
            if (taken[i] || !span_eq(name, span_of(excludable[i].table)))
                continue;
            taken[i] = true;
            for (const char *const *t = excludable[i].ours; *t; t++)
                exclude(m, *t);
        }
    }
}

static void in_background(struct migration *m, uv_work_cb work, uv_after_work_cb done)
{
    m->work.data = m;
    int rc = uv_queue_work(http_req_loop(m->req), &m->work, work, done);
    if (rc != 0) {
        free(m->target);
        http_reply_errf(m->req, QE_INTERNAL, "no thread: %s", uv_strerror(rc));
    }
}

// ---- test-connection ----

static void handle_test(struct http_req *req)
{
    struct migration *m = read_request(req);

    if (m)
        in_background(m, test_connection, on_tested);
}

static void test_connection(uv_work_t *work)
{
    struct migration *m = work->data;

    m->rc = pg_target_version(m->target, m->version, &m->fault);
}

static void on_tested(uv_work_t *work, int status)
{
    struct migration *m = work->data;
    struct buf out = {0};

    (void)status; // only we could cancel it
    free(m->target);
    if (m->rc == 0) {
        buf_put_lit(&out, "{\"success\":true,\"message\":\"connected\",\"version\":");
        js_put_text(&out, span_of(m->version));
    } else {
        buf_put_lit(&out, "{\"success\":false,\"message\":\"cannot connect\",\"error\":");
        js_put_text(&out, str_trim(span_of(m->fault.text)));
    }
    buf_putc(&out, '}');
    http_reply_json(m->req, 200, &out);
}

// ---- validate ----

static void handle_validate(struct http_req *req)
{
    struct migration *m = read_request(req);

    if (m)
        in_background(m, count_both, on_counted);
}

static void count_both(uv_work_t *work)
{
    struct migration *m = work->data;

    m->rc = pg_target_counts(m->target, m->there, &m->n_there, &m->fault);
    if (m->rc == 0)
        m->rc =
            pg_target_counts(pg_transfer_source(m->transfer), m->here, &m->n_here, &m->fault);
}

static int64_t count_there(const struct migration *m, const char *name)
{
    for (unsigned i = 0; i < m->n_there; i++)
        if (strcmp(m->there[i].name, name) == 0)
            return m->there[i].n;
    return -1;
}

static void on_counted(uv_work_t *work, int status)
{
    struct migration *m = work->data;
    struct buf out = {0};
    bool all = true;

    (void)status;
    free(m->target);
    if (m->rc != 0) {
        buf_put_lit(&out, "{\"success\":false,\"error\":");
        js_put_text(&out, str_trim(span_of(m->fault.text)));
        buf_putc(&out, '}');
        http_reply_json(m->req, 500, &out);
        return;
    }
    for (unsigned i = 0; i < m->n_here; i++)
        all = all && m->here[i].n == count_there(m, m->here[i].name);
    buf_printf(&out, "{\"success\":true,\"allMatch\":%s,\"tables\":[", all ? "true" : "false");
    for (unsigned i = 0; i < m->n_here; i++) {
        int64_t there = count_there(m, m->here[i].name);
        buf_printf(
            &out, "%s{\"table\":\"%s\",\"sourceCount\":%lld,\"targetCount\":%lld,\"match\":%s}",
            i > 0 ? "," : "", m->here[i].name, (long long)m->here[i].n, (long long)there,
            m->here[i].n == there ? "true" : "false");
    }
    buf_put_lit(&out, "]}");
    http_reply_json(m->req, 200, &out);
}

// ---- start, status, reset ----

static void reply_running(struct http_req *req)
{
    http_reply_json_span(req, 409, SPAN("{\"error\":\"a migration is running\"}"));
}

static void handle_start(struct http_req *req)
{
    struct migration *m = read_request(req);

    if (!m)
        return;
    int rc = pg_transfer_start(m->transfer, m->target, m->excluded, m->n_excluded, &m->fault);
    free(m->target);
    if (rc == QE_BUSY)
        reply_running(req);
    else if (rc != 0) // a retry would not install them
        http_reply_errf(req, QE_BAD_REQUEST, "%s", m->fault.text);
    else
        http_reply_json_span(req, 202,
                             SPAN("{\"status\":\"started\",\"message\":\"copy running\"}"));
}

static void put_output(struct buf *out, const char *name, const char *text)
{
    if (!*text)
        return;
    buf_printf(out, ",\"%s\":", name);
    js_put_text(out, str_is_utf8(span_of(text)) ? span_of(text) : SPAN("(not UTF-8)"));
}

static void handle_status(struct http_req *req)
{
    static const struct {
        const char *name, *step;
    } phases[] = {
        [TRANSFER_IDLE] = {"idle", ""},
        [TRANSFER_DUMPING] = {"dumping", "copying tables"},
        [TRANSFER_RESTORING] = {"restoring", "building indexes and committing"},
        [TRANSFER_COMPLETE] = {"complete", "done"},
        [TRANSFER_ERROR] = {"error", "failed"},
    };
    struct pg_transfer_status s;
    struct buf out = {0};

    pg_transfer_status(transfer_of(req), &s);
    buf_printf(&out, "{\"status\":\"%s\",\"currentStep\":\"%s\",\"elapsedSeconds\":%.1f",
               phases[s.phase].name, phases[s.phase].step, s.seconds);
    put_output(&out, "error", s.error);
    put_output(&out, "dumpOutput", s.dump_output);
    put_output(&out, "restoreOutput", s.restore_output);
    buf_putc(&out, '}');
    http_reply_json(req, 200, &out);
}

static void handle_reset(struct http_req *req)
{
    if (pg_transfer_reset(transfer_of(req)) != 0)
        reply_running(req);
    else
        http_reply_json_span(req, 200, SPAN("{\"status\":\"idle\",\"message\":\"ready\"}"));
}

const struct http_route api_migration_test = {
    .verb = HTTP_POST,
    .path = "/api/v1/migration/test-connection",
    .access = ACCESS_ADMIN,
    .op = "migration_test",
    .handle = handle_test,
};
const struct http_route api_migration_start = {
    .verb = HTTP_POST,
    .path = "/api/v1/migration/start",
    .access = ACCESS_ADMIN,
    .op = "migration_start",
    .handle = handle_start,
};
const struct http_route api_migration_status = {
    .verb = HTTP_GET,
    .path = "/api/v1/migration/status",
    .access = ACCESS_ADMIN,
    .op = "migration_status",
    .handle = handle_status,
};
const struct http_route api_migration_validate = {
    .verb = HTTP_POST,
    .path = "/api/v1/migration/validate",
    .access = ACCESS_ADMIN,
    .op = "migration_validate",
    .handle = handle_validate,
};
const struct http_route api_migration_reset = {
    .verb = HTTP_POST,
    .path = "/api/v1/migration/reset",
    .access = ACCESS_ADMIN,
    .op = "migration_reset",
    .handle = handle_reset,
};
