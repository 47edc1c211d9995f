// GET /api/v1/events/held: events that wait for a tenant whose database is unavailable.
//
// The lanes come from the control database, the number of events in each from the broker.
#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/str.h"
#include "platform/platform_int.h"
#include "tenant/sql.gen.h"
#include "json/scan.h"
#include "json/write.h"

struct held_tenant {
    span name;
    uint64_t events;
    int64_t n_lanes, attempts, since_us, next_us;
    span error;
    UT_hash_handle hh;
};

struct held { // in the request's arena
    struct http_req *req;
    struct held_tenant *tenants;
    struct pg_call call;
    struct pg_params params;
};

static void on_lanes(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_figures(struct queen_response *r, const struct queen_error *err, void *ctx);
static void read_partition(struct held *h, span object);
static void held_reply(struct held *h);

static void held_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct held *h = arena_new(http_req_arena(req), struct held);

    h->req = req;
    pg_param_text(&h->params, span_of(p->conf->queue));
    h->call = (struct pg_call){.statement = &pg_stmt_platform_held_list,
                               .params = &h->params,
                               .done = on_lanes,
                               .owner = h};
    pg_pool_exec(p->control, &h->call);
}

static void on_lanes(struct pg_call *call, int status, const struct pg_reply *reply_)
{
    struct held *h = call->owner;
    struct platform *p = http_req_app(h->req);
    struct arena *a = http_req_arena(h->req);

    pg_params_free(&h->params);
    if (status != 0) {
        http_reply_err(h->req, status);
        return;
    }
    for (unsigned i = 0; i < pg_reply_rows(reply_); i++) {
        struct held_tenant *t = arena_new(a, struct held_tenant);
        t->name = arena_copy(a, pg_reply_bytes(reply_, i, PLATFORM_HELD_LIST_COL_TENANT));
        t->n_lanes = pg_reply_i64(reply_, i, PLATFORM_HELD_LIST_COL_LANES);
        t->since_us = pg_reply_unix_us(reply_, i, PLATFORM_HELD_LIST_COL_SINCE);
        t->attempts = pg_reply_i64(reply_, i, PLATFORM_HELD_LIST_COL_ATTEMPTS);
        t->next_us = pg_reply_unix_us(reply_, i, PLATFORM_HELD_LIST_COL_NEXT_AT);
        t->error = arena_copy(a, pg_reply_bytes(reply_, i, PLATFORM_HELD_LIST_COL_ERROR));
        HASH_ADD_KEYPTR(hh, h->tenants, t->name.ptr, t->name.len, t);
    }
    if (!h->tenants) {
        held_reply(h);
        return;
    }
    char *queue = queen_escape(p->conf->queue);
    struct buf path = {0};
    buf_printf(&path, "/api/v1/resources/partitions?queue=%s.held", queue);
    buf_putc(&path, '\0');
    queen_request_start(p->broker, &(struct queen_request){.path = path.ptr}, on_figures, h);
    buf_free(&path);
    free(queue);
}

static void on_figures(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct held *h = ctx;
    span key;

    if (!r || err->code != 0) {
        http_reply_errf(h->req, QE_BROKER_AWAY, "the broker is unavailable: %s", err->text);
    } else {
        struct js j = js_read((span){r->body, r->body_len});
        js_enter_object(&j);
        while (js_next_key(&j, &key)) {
            if (!span_eq(key, SPAN("partitions"))) {
                js_skip(&j);
                continue;
            }
            js_enter_array(&j);
            while (js_next_item(&j))
                read_partition(h, js_skip(&j));
        }
        if (js_finish(&j) == 0)
            held_reply(h);
        else
            http_reply_errf(h->req, QE_BROKER_AWAY, "unexpected reply from the broker");
    }
    HASH_CLEAR(hh, h->tenants);
    queen_response_free(r);
}

static void add_count(span raw, int64_t *n)
{
    int64_t v;

    if (js_int(raw, &v))
        *n += v;
}

// {"name": "7/acme", "messages": {"pending": 3, "processing": 1, ...}, ...}
static void read_partition(struct held *h, span object)
{
    struct js j = js_read(object);
    span key, name = SPAN_NONE, partition;
    int64_t n = 0;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (span_eq(key, SPAN("name"))) {
            name = js_text(js_skip(&j), http_req_arena(h->req));
        } else if (span_eq(key, SPAN("messages"))) {
            js_enter_object(&j);
            while (js_next_key(&j, &key)) {
                span raw = js_skip(&j);
                if (span_eq(key, SPAN("pending")) || span_eq(key, SPAN("processing")))
                    add_count(raw, &n);
            }
        } else {
            js_skip(&j);
        }
    }
    struct held_tenant *t = NULL;
    if (str_split(&name, '/', &partition) && name.ptr)
        HASH_FIND(hh, h->tenants, name.ptr, name.len, t);
    if (t)
        t->events += (uint64_t)n;
}

static void held_put_time(struct buf *out, const char *name, int64_t us)
{
    char text[STR_TS_MS];

    str_format_ts_ms(us, text);
    buf_printf(out, ",\"%s\":\"%.*s\"", name, STR_TS_MS, text);
}

static void held_reply(struct held *h)
{
    struct buf out = {0};

    buf_put_lit(&out, "{\"tenants\":[");
    for (struct held_tenant *t = h->tenants; t; t = t->hh.next) {
        if (t != h->tenants)
            buf_putc(&out, ',');
        buf_put_lit(&out, "{\"tenant\":");
        js_put_text(&out, t->name);
        buf_printf(&out, ",\"events\":%" PRIu64 ",\"lanes\":%" PRIi64 ",\"attempts\":%" PRIi64,
                   t->events, t->n_lanes, t->attempts);
        held_put_time(&out, "since", t->since_us);
        held_put_time(&out, "nextAttemptAt", t->next_us);
        buf_put_lit(&out, ",\"lastError\":");
        js_put_text(&out, t->error);
        buf_putc(&out, '}');
    }
    buf_put_lit(&out, "]}");
    http_reply_json(h->req, 200, &out);
}

const struct http_route platform_events_held = {.verb = HTTP_GET,
                                                .path = "/api/v1/events/held",
                                                .access = ACCESS_READ_ONLY,
                                                .op = "events_held",
                                                .handle = held_handle};
