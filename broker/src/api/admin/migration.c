// /api/v1/migration/...: copy everything into another PostgreSQL (transfer/transfer.h).
//
// Off unless QUEEN_MIGRATION_TARGETS lists allowed targets: a copy contains every message, and
// a connection test shows which ports of the network are open. Every request is logged with
// its target and sender.
#include <stdio.h>
#include <stdlib.h>

#include "api/api_int.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pg/conninfo.h"
#include "transfer/probe.h"
#include "transfer/targets.h"
#include "transfer/transfer.h"
#include "json/write.h"

enum { F_HOST, F_PORT, F_DATABASE, F_USER, F_PASSWORD, F_SSL, F_SCHEMA, F_EXCLUDE, FIELDS };
static const span field_names[FIELDS] = {
    [F_HOST] = {"host", 4},         [F_PORT] = {"port", 4},
    [F_DATABASE] = {"database", 8}, [F_USER] = {"user", 4},
    [F_PASSWORD] = {"password", 8}, [F_SSL] = {"ssl", 3},
    [F_SCHEMA] = {"schema", 6},     [F_EXCLUDE] = {"excludeTableData", 16},
};
enum { CONNECT_MS = 10000, COUNT_MS = 120000, MAX_EXCLUDED = 48 };

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
    struct probe probe;
};

static struct migration *migration_read_request(struct http_req *req, const char *action);
static void read_excluded(struct migration *m, struct body *b, span raw);
static void on_tested(struct probe *p);
static void on_migration_counted(struct probe *p);

static struct pg_transfer *transfer_of(struct http_req *req)
{
    const struct api *api = http_req_app(req);
    return api->shared->transfer;
}

// False: the endpoints are off, and the request is answered.
static bool is_on(struct http_req *req)
{
    bool on = pg_transfer_targets(transfer_of(req))[0] != '\0';

    if (!on)
        http_reply_errf(
            req, QE_NOT_FOUND,
            "migration is off: list the allowed targets in QUEEN_MIGRATION_TARGETS");
    return on;
}

// Names come from the request: anything that could break a log line becomes '?'.
static const char *log_safe(struct arena *a, const char *text)
{
    char *copy = arena_alloc(a, strlen(text) + 1), *at = copy;

    for (; *text; text++)
        *at++ =
            (char)(*text > ' ' && *text <= '~' && *text != '"' && *text != '\\' ? *text : '?');
    *at = '\0';
    return copy;
}

// Whether the target is listed; logged either way.
static bool is_allowed(struct migration *m, const struct pg_conninfo *info, const char *action)
{
    struct arena *a = http_req_arena(m->req);
    span subject = http_req_subject(m->req);
    bool allowed = transfer_targets_allow(pg_transfer_targets(m->transfer),
                                          span_of(info->hosts), info->port, span_of(info->db));

    const char *host = log_safe(a, info->hosts), *db = log_safe(a, info->db),
               *user = log_safe(a, info->user), *who = log_safe(a, arena_cstr(a, subject));
    if (allowed)
        log_info("migration.requested",
                 "action=%s target=\"%s:%u/%s\" user=\"%s\" subject=\"%s\"", action, host,
                 info->port, db, user, who);
    else
        log_warn("migration.refused",
                 "action=%s target=\"%s:%u/%s\" user=\"%s\" subject=\"%s\"", action, host,
                 info->port, db, user, who);
    if (!allowed)
        http_reply_errf(m->req, QE_FORBIDDEN,
                        "host, port and database are not listed in QUEEN_MIGRATION_TARGETS");
    return allowed;
}

static const char *required(struct body *b, span raw, const char *name)
{
    span text = body_text(b, raw, name);

    if (text.len == 0)
        body_bad(b, "%s must be a string that is not empty", name);
    return arena_cstr(b->arena, text);
}

// NULL: answered.
static struct migration *migration_read_request(struct http_req *req, const char *action)
{
    if (!is_on(req))
        return NULL;
    struct migration *m = arena_new(http_req_arena(req), struct migration);
    struct body b = body_open(req, "");
    span raw[FIELDS];
    struct pg_conninfo info = {.connect_timeout_ms = CONNECT_MS, .no_options = true};
    int64_t port = 5432;
    bool ssl = false;

    m->req = req;
    m->transfer = transfer_of(req);
    body_read_fields(&b, field_names, FIELDS, raw);
    bool is_object = body_finish(&b) == 0;
    if (is_object) {
        info.hosts = required(&b, raw[F_HOST], "host");
        info.db = required(&b, raw[F_DATABASE], "database");
        info.user = required(&b, raw[F_USER], "user");
        info.password = arena_cstr(b.arena, body_text(&b, raw[F_PASSWORD], "password"));
        if (js_type_of(raw[F_PORT]) != JS_NONE && js_type_of(raw[F_PORT]) != JS_NULL &&
            (!js_int(raw[F_PORT], &port) || port < 1 || port > 65535))
            body_bad(&b, "port must be a whole number from 1 to 65535");
        if (js_type_of(raw[F_SSL]) != JS_NONE && js_type_of(raw[F_SSL]) != JS_NULL &&
            !js_bool(raw[F_SSL], &ssl))
            body_bad(&b, "ssl must be true or false");
        span schema = body_text(&b, raw[F_SCHEMA], "schema");
        if (schema.len > 0 && !span_eq(schema, SPAN("queen")))
            body_bad(&b, "schema must be queen: no other one is ours to copy");
        read_excluded(m, &b, raw[F_EXCLUDE]);
    }
    if (!is_object || b.j.rc != 0 || b.fault.code != 0) {
        http_reply_fault(req, &b.fault);
        return NULL;
    }
    info.port = (unsigned)port;
    if (!is_allowed(m, &info, action))
        return NULL;
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

static void start_probe(struct migration *m, void (*done)(struct probe *p))
{
    const struct api *api = http_req_app(m->req);
    struct probe *p = &m->probe;

    p->target = m->target;
    p->stopping = &api->shared->stopping;
    p->done = done;
    int rc = probe_start(p, http_req_loop(m->req));
    if (rc != 0) {
        free(m->target);
        http_reply_fault(m->req, &p->fault);
    }
}

// ---- test-connection ----

static void handle_test(struct http_req *req)
{
    struct migration *m = migration_read_request(req, "test-connection");

    if (!m)
        return;
    m->probe.timeout_ms = CONNECT_MS;
    start_probe(m, on_tested);
}

// The text comes from the target.
static void put_reason(struct buf *out, const struct probe *p)
{
    span text = str_trim(span_of(p->fault.text));

    js_put_text(out, str_is_utf8(text) ? text : SPAN("(not UTF-8)"));
}

static void on_tested(struct probe *p)
{
    struct migration *m = container_of(p, struct migration, probe);
    struct buf out = {0};

    free(m->target);
    if (p->rc == 0) {
        buf_put_lit(&out, "{\"success\":true,\"message\":\"connected\",\"version\":");
        js_put_text(&out, span_of(p->version));
    } else {
        buf_put_lit(&out, "{\"success\":false,\"message\":\"cannot connect\",\"error\":");
        put_reason(&out, p);
    }
    buf_putc(&out, '}');
    http_reply_json(m->req, 200, &out);
}

// ---- validate ----

static void handle_validate(struct http_req *req)
{
    struct migration *m = migration_read_request(req, "validate");

    if (!m)
        return;
    m->probe.source = pg_transfer_source(m->transfer);
    m->probe.timeout_ms = COUNT_MS;
    start_probe(m, on_migration_counted);
}

static int64_t count_there(const struct probe *p, const char *name)
{
    for (unsigned i = 0; i < p->n_there; i++)
        if (strcmp(p->there[i].name, name) == 0)
            return p->there[i].n;
    return -1;
}

static void on_migration_counted(struct probe *p)
{
    struct migration *m = container_of(p, struct migration, probe);
    struct buf out = {0};
    bool all = true;

    free(m->target);
    if (p->rc != 0) {
        buf_put_lit(&out, "{\"success\":false,\"error\":");
        put_reason(&out, p);
        buf_putc(&out, '}');
        http_reply_json(m->req, 500, &out);
        return;
    }
    for (unsigned i = 0; i < p->n_here; i++)
        all = all && p->here[i].n == count_there(p, p->here[i].name);
    buf_printf(&out, "{\"success\":true,\"allMatch\":%s,\"tables\":[", all ? "true" : "false");
    for (unsigned i = 0; i < p->n_here; i++) {
        int64_t there = count_there(p, p->here[i].name);
        buf_printf(
            &out, "%s{\"table\":\"%s\",\"sourceCount\":%lld,\"targetCount\":%lld,\"match\":%s}",
            i > 0 ? "," : "", p->here[i].name, (long long)p->here[i].n, (long long)there,
            p->here[i].n == there ? "true" : "false");
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
    struct migration *m = migration_read_request(req, "start");
    struct fault f;

    if (!m)
        return;
    int rc = pg_transfer_start(m->transfer, m->target, m->excluded, m->n_excluded, &f);
    free(m->target);
    if (rc == QE_BUSY)
        reply_running(req);
    else if (rc != 0) // a retry would not install them
        http_reply_errf(req, QE_BAD_REQUEST, "%s", f.text);
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

    if (!is_on(req))
        return;
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
    if (!is_on(req))
        return;
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
    .unknown = UNKNOWN_IGNORED,
};
const struct http_route api_migration_start = {
    .verb = HTTP_POST,
    .path = "/api/v1/migration/start",
    .access = ACCESS_ADMIN,
    .op = "migration_start",
    .handle = handle_start,
    .unknown = UNKNOWN_IGNORED,
};
const struct http_route api_migration_status = {
    .verb = HTTP_GET,
    .path = "/api/v1/migration/status",
    .access = ACCESS_ADMIN,
    .op = "migration_status",
    .handle = handle_status,
    .unknown = UNKNOWN_IGNORED,
};
const struct http_route api_migration_validate = {
    .verb = HTTP_POST,
    .path = "/api/v1/migration/validate",
    .access = ACCESS_ADMIN,
    .op = "migration_validate",
    .handle = handle_validate,
    .unknown = UNKNOWN_IGNORED,
};
const struct http_route api_migration_reset = {
    .verb = HTTP_POST,
    .path = "/api/v1/migration/reset",
    .access = ACCESS_ADMIN,
    .op = "migration_reset",
    .handle = handle_reset,
    .unknown = UNKNOWN_IGNORED,
};
