// audit.c: makes records of requests and passes them on to the database.
#include "auth/audit.h"

#include <stdlib.h>
#include <string.h>

#include "auth/access.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "json/scan.h"
#include "json/write.h"

enum {
    STORE_MS = 1000,
    CLOSE_MS = 1000,
    AT_ONCE = 500,
    MAX_PAUSE = 30,        // ticks between attempts while storing fails
    SCAN_BYTES = 64 << 10, // larger bodies are not searched for details
    MEMBER_BYTES = 400,
};

struct audit {
    struct audit_conf conf;
    struct audit_trail *trail;
    struct audit_records storing;
    unsigned n_storing;
    uint64_t lost; // of those that the trail has lost, already reported
    unsigned pause, waited;
    uv_timer_t timer;
    bool is_storing, closing, finished, timer_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// Steps of a request, in order.
static void audit_read_request(struct http_req *req, int status, struct audit_entry *e);
static void on_tick(uv_timer_t *timer);
static void store_some(struct audit *a);
static void put_params(struct audit *a, struct pg_params *p);
static void finish_close(struct audit *a);
static void on_timer_closed(uv_handle_t *handle);

struct audit *audit_open(uv_loop_t *loop, const struct audit_conf *conf)
{
    struct audit *a = mem_new(struct audit);

    a->conf = *conf;
    a->trail = audit_trail_new();
    STAILQ_INIT(&a->storing);
    uv_timer_init(loop, &a->timer);
    a->timer.data = a;
    return a;
}

static void log_record(const char *address, span subject, span op, span path, span target,
                       int status, uint64_t count)
{
    if (status == 401 || status == 403)
        log_warn("audit.denied",
                 "status=%d subject=\"" SPAN_FMT "\" address=\"%s\" operation=\"" SPAN_FMT
                 "\" path=\"" SPAN_FMT "\" count=%llu",
                 status, SPAN_ARG(subject), address, SPAN_ARG(op), SPAN_ARG(path),
                 (unsigned long long)count);
    else
        log_info("audit.action",
                 "status=%d subject=\"" SPAN_FMT "\" address=\"%s\" operation=\"" SPAN_FMT
                 "\" target=\"" SPAN_FMT "\" path=\"" SPAN_FMT "\" count=%llu",
                 status, SPAN_ARG(subject), address, SPAN_ARG(op), SPAN_ARG(target),
                 SPAN_ARG(path), (unsigned long long)count);
}

static void log_counted(const struct audit_record *r)
{
    char address[AUDIT_IP_TEXT];

    audit_format_ip(r->ip, address);
    log_record(address, span_of(r->text[AUDIT_SUBJECT]), span_of(r->text[AUDIT_OP]),
               span_of(r->text[AUDIT_PATH]), span_of(r->text[AUDIT_TARGET]), r->status,
               r->count);
}

static void wake(struct audit *a)
{
    if (!uv_is_active((uv_handle_t *)&a->timer) && !a->closing)
        uv_timer_start(&a->timer, on_tick, STORE_MS, STORE_MS);
}

void audit_answer(void *ctx, struct http_req *req, int status)
{
    struct audit *a = ctx;
    struct audit_entry e = {.status = status};
    char address[AUDIT_IP_TEXT];

    audit_read_request(req, status, &e);
    if (audit_trail_add(a->trail, &e, clock_mono_us(), (int64_t)clock_wall_us())) {
        audit_format_ip(e.ip, address);
        log_record(address, e.text[AUDIT_SUBJECT], e.text[AUDIT_OP], e.text[AUDIT_PATH],
                   e.text[AUDIT_TARGET], status, 1);
    }
    wake(a);
}

// ---- what a request is about ----

// The queue in the path, or else its first parameter.
static span target_of_path(struct http_req *req)
{
    span target;

    if (access_path_param(req, SPAN("queue"), &target))
        return target;
    bool has_any = strstr(http_req_route(req)->path, "/:") != NULL;
    return has_any && http_req_param(req, 0, &target) ? target : SPAN_NONE;
}

// Members that describe the action. None of them is ever a secret: URLs, passwords and payloads
// are not among them.
static bool is_described(span key)
{
    static const char *const names[] = {"queue",        "name",
                                        "targetQueue",  "consumerGroup",
                                        "partition",    "enabled",
                                        "role",         "expiresInSeconds",
                                        "timestamp",    "subscriptionMode",
                                        "host",         "port",
                                        "database",     "subscriptionFrom",
                                        "toEnd",        "namespace",
                                        "task",         "options",
                                        "allow",        "limits",
                                        "mode",         "scheduledAt",
                                        "delaySeconds", "all",
                                        "partitionId",  "tenant",
                                        "transactionId"};

    for (unsigned i = 0; i < countof(names); i++)
        if (js_key_is(key, span_of(names[i])))
            return true;
    return false;
}

// Members of the body; *name becomes its queue, or else its name.
static span describe_body(struct http_req *req, span *name)
{
    struct arena *arena = http_req_arena(req);
    span body = http_req_body(req), key, detail = SPAN_NONE;
    struct js j = js_read(body);
    struct buf out = {0};
    bool has_queue = false;

    if (body.len == 0 || body.len > SCAN_BYTES || js_peek(&j) != JS_OBJECT)
        return SPAN_NONE;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        if (!is_described(key) || raw.len > MEMBER_BYTES ||
            out.len + raw.len + key.len > AUDIT_DETAIL - 8)
            continue;
        bool is_queue = js_key_is(key, SPAN("queue"));
        if (js_type_of(raw) == JS_STRING &&
            (is_queue || (!has_queue && js_key_is(key, SPAN("name")))))
            *name = js_text(raw, arena);
        has_queue = has_queue || is_queue;
        buf_put(&out, out.len > 0 ? SPAN(",\"") : SPAN("{\""));
        buf_put(&out, key);
        buf_put_lit(&out, "\":");
        buf_put(&out, raw);
    }
    if (js_finish(&j) == 0 && out.len > 0) {
        buf_putc(&out, '}');
        detail = arena_copy(arena, buf_span(&out));
    }
    buf_free(&out);
    return detail;
}

static span verb_name(enum http_verb verb)
{
    static const char *const names[] = {
        [HTTP_GET] = "GET",       [HTTP_POST] = "POST",       [HTTP_PUT] = "PUT",
        [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS", [HTTP_HEAD] = "HEAD",
        [HTTP_PATCH] = "PATCH",   [HTTP_OTHER] = "?"};

    return span_of(names[verb]);
}

// Of denied requests only the path: what an unknown sender puts elsewhere may be anything.
static void audit_read_request(struct http_req *req, int status, struct audit_entry *e)
{
    const struct http_route *route = http_req_route(req);
    bool denied = status == 401 || status == 403;
    span target = SPAN_NONE, query = http_req_query_text(req);

    memcpy(e->ip, http_req_ip(req), sizeof e->ip);
    e->key = route;
    e->text[AUDIT_SUBJECT] = http_req_subject(req);
    e->text[AUDIT_OP] = route && route->op ? span_of(route->op) : SPAN_NONE;
    e->text[AUDIT_METHOD] = verb_name(http_req_verb(req));
    e->text[AUDIT_PATH] = http_req_path(req);
    if (route)
        target = target_of_path(req);
    if (!denied && !target.ptr)
        target = http_req_query(req, SPAN("queue"));
    if (!denied && query.len > 0) {
        struct buf path = {0};
        buf_put(&path, e->text[AUDIT_PATH]);
        buf_putc(&path, '?');
        buf_put(&path, query);
        e->text[AUDIT_PATH] = arena_copy(http_req_arena(req), buf_span(&path));
        buf_free(&path);
    }
    span name = SPAN_NONE;
    if (!denied)
        e->detail = describe_body(req, &name);
    e->text[AUDIT_TARGET] = target.ptr ? target : name;
}

// ---- storing ----

static void report_lost(struct audit *a, uint64_t n, const char *why)
{
    if (n == 0)
        return;
    counter_add(&a->conf.stats->lost, n);
    log_error("audit.lost", "records=%llu why=\"%s\"", (unsigned long long)n, why);
}

static void on_tick(uv_timer_t *timer)
{
    struct audit *a = timer->data;
    uint64_t lost = audit_trail_lost(a->trail);

    audit_trail_sweep(a->trail, clock_mono_us(), (int64_t)clock_wall_us(), false, log_counted);
    report_lost(a, lost - a->lost, "too many wait for the database");
    a->lost = lost;
    if (a->is_storing || (a->pause > 0 && ++a->waited < a->pause))
        return;
    store_some(a);
    if (!a->is_storing && audit_trail_is_idle(a->trail))
        uv_timer_stop(timer);
}

static void store_some(struct audit *a)
{
    struct pg_params params = {0};

    a->waited = 0;
    a->n_storing = audit_trail_take(a->trail, &a->storing, AT_ONCE);
    if (a->n_storing == 0)
        return;
    put_params(a, &params);
    a->is_storing = a->conf.store(a->conf.ctx, a, &params);
    if (!a->is_storing) {
        pg_params_free(&params);
        audit_trail_return(a->trail, &a->storing);
    }
}

static void put_texts(struct audit *a, struct pg_params *p, enum audit_field field)
{
    struct audit_record *r;

    pg_begin_array(p, PG_TEXT);
    STAILQ_FOREACH (r, &a->storing, link)
        pg_put_text(p, span_of(r->text[field]));
    pg_end_array(p);
}

// As queen.record_audit() takes them.
static void put_params(struct audit *a, struct pg_params *p)
{
    struct audit_record *r;
    char address[AUDIT_IP_TEXT];

    pg_begin_array(p, PG_UUID);
    STAILQ_FOREACH (r, &a->storing, link)
        pg_put_uuid(p, r->id);
    pg_end_array(p);
    pg_begin_array(p, PG_TIMESTAMPTZ);
    STAILQ_FOREACH (r, &a->storing, link)
        pg_put_unix_us(p, r->at_us);
    pg_end_array(p);
    pg_begin_array(p, PG_TEXT);
    STAILQ_FOREACH (r, &a->storing, link) {
        audit_format_ip(r->ip, address);
        pg_put_text(p, span_of(address));
    }
    pg_end_array(p);
    for (unsigned field = 0; field < AUDIT_FIELDS; field++)
        put_texts(a, p, (enum audit_field)field);
    pg_begin_array(p, PG_INT4);
    STAILQ_FOREACH (r, &a->storing, link)
        pg_put_i32(p, r->status);
    pg_end_array(p);
    pg_begin_array(p, PG_INT8);
    STAILQ_FOREACH (r, &a->storing, link)
        pg_put_i64(p, (int64_t)r->count);
    pg_end_array(p);
    pg_begin_array(p, PG_TEXT);
    STAILQ_FOREACH (r, &a->storing, link)
        pg_put_text(p, span_of(r->detail));
    pg_end_array(p);
    pg_param_text(p, a->conf.server);
}

void audit_stored(struct audit *a, int status)
{
    a->is_storing = false;
    if (status == 0 || status == QE_PG_DATA) {
        if (status == 0)
            counter_add(&a->conf.stats->stored, a->n_storing);
        else
            report_lost(a, a->n_storing, "the database does not accept them");
        audit_records_free(&a->storing);
        a->pause = 0;
    } else {
        audit_trail_return(a->trail, &a->storing);
        a->pause = a->pause == 0 ? 1 : a->pause * 2 > MAX_PAUSE ? MAX_PAUSE : a->pause * 2;
    }
    if (a->closing && status == 0 && !a->finished)
        store_some(a); // the rest
    if (a->closing && !a->is_storing)
        finish_close(a);
}

// ---- the end ----

static void on_close_limit(uv_timer_t *timer) { finish_close(timer->data); }

void audit_close(struct audit *a, void (*closed)(void *ctx), void *ctx)
{
    a->closing = true;
    a->closed = closed;
    a->closed_ctx = ctx;
    uv_timer_stop(&a->timer);
    audit_trail_sweep(a->trail, clock_mono_us(), (int64_t)clock_wall_us(), true, log_counted);
    if (!a->is_storing)
        store_some(a);
    uv_timer_start(&a->timer, on_close_limit, a->is_storing ? CLOSE_MS : 0, 0);
}

// Called when everything is stored, when storing has failed, and when time is up. The struct
// stays until an insertion in flight has come back.
static void finish_close(struct audit *a)
{
    if (!a->finished) {
        struct audit_records rest = STAILQ_HEAD_INITIALIZER(rest);
        unsigned left = audit_trail_take(a->trail, &rest, UINT32_MAX);
        report_lost(a, left + (a->is_storing ? a->n_storing : 0),
                    "the server stops and the database has not stored them");
        audit_records_free(&rest);
        a->finished = true;
        uv_close((uv_handle_t *)&a->timer, on_timer_closed);
        if (a->closed)
            a->closed(a->closed_ctx);
    } else if (!a->is_storing && a->timer_closed) {
        audit_records_free(&a->storing);
        audit_trail_free(a->trail);
        free(a);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct audit *a = handle->data;

    a->timer_closed = true;
    if (!a->is_storing)
        finish_close(a);
}
