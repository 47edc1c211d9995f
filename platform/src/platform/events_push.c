// POST /api/v1/tenants/:tenant/events: checks one event or an array, pushes the valid ones and
// replies with a result for each.
#include <assert.h>
#include <stdlib.h>

#include <queen/message.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ingest/event.h"
#include "platform/platform_int.h"
#include "tenant/directory.h"
#include "json/scan.h"
#include "json/write.h"

enum { MAX_EVENTS = 10000 };

struct sent_event {
    span text; // as received
    struct event event;
    const char *why; // NULL: valid
    size_t at;       // index in messages
};

struct sent_events { // in the request's arena
    struct http_req *req;
    span tenant;
    struct directory_find find;
    struct sent_event *events;
    unsigned n;
    struct queen_message *messages;
    size_t n_messages;
};

static void on_events_push_found(struct directory_find *d, int status,
                                 const struct tenant_row *row);
static int count_events(span body, unsigned *n, struct fault *f);
static void read_events(struct sent_events *k, span body);
static void events_push_push(struct sent_events *k);
static void on_events_push_pushed(struct queen_push_results *r, const struct queen_error *err,
                                  void *ctx);
static void events_push_reply(struct sent_events *k, const struct queen_push_results *r);

static void push_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct sent_events *k = arena_new(http_req_arena(req), struct sent_events);
    struct fault f;

    k->req = req;
    if (!http_req_param(req, 0, &k->tenant)) {
        http_reply_errf(req, QE_TENANT_UNKNOWN, "there is no such tenant");
        return;
    }
    if (count_events(http_req_body(req), &k->n, &f) != 0) {
        http_reply_fault(req, &f);
        return;
    }
    k->find.found = on_events_push_found;
    directory_find(p->control, &k->find, k->tenant);
}

static void on_events_push_found(struct directory_find *d, int status,
                                 const struct tenant_row *row)
{
    struct sent_events *k = container_of(d, struct sent_events, find);

    if (status != 0) {
        http_reply_err(k->req, status);
    } else if (!row) {
        http_reply_errf(k->req, QE_TENANT_UNKNOWN,
                        "tenant " SPAN_FMT ": there is no such tenant", SPAN_ARG(k->tenant));
    } else {
        read_events(k, http_req_body(k->req));
        events_push_push(k);
    }
}

// ---- read ----

static int count_events(span body, unsigned *n, struct fault *f)
{
    struct js j = js_read(body);

    *n = 0;
    if (js_peek(&j) == JS_ARRAY) {
        js_enter_array(&j);
        while (js_next_item(&j) && ++*n <= MAX_EVENTS)
            js_skip(&j);
        if (*n > MAX_EVENTS)
            return fault_set(f, QE_BAD_PARAM, "must be at most %d events", MAX_EVENTS);
    } else {
        js_skip(&j);
        *n = 1;
    }
    return js_finish(&j) == 0 ? 0 : fault_set(f, QE_BAD_JSON, "Invalid JSON: %s", j.why);
}

static void read_event(struct sent_events *k, struct sent_event *e, span text)
{
    struct arena *a = http_req_arena(k->req);
    struct fault f;

    e->text = text;
    if (event_read(&e->event, text, k->tenant, a, &f) != 0 ||
        event_check_time(&e->event, (int64_t)clock_wall_us(), &f) != 0)
        e->why = arena_cstr(a, span_of(f.text));
}

static void read_events(struct sent_events *k, span body)
{
    struct js j = js_read(body);
    unsigned i = 0;

    k->events = arena_new_array(http_req_arena(k->req), struct sent_event, k->n);
    if (js_peek(&j) != JS_ARRAY) {
        read_event(k, &k->events[0], js_skip(&j));
        return;
    }
    js_enter_array(&j);
    while (js_next_item(&j) && i < k->n)
        read_event(k, &k->events[i++], js_skip(&j));
}

// ---- push ----

static const char *uuid_text(struct arena *a, const uint8_t id[16])
{
    struct buf b = {0};

    buf_put_uuid(&b, id);
    const char *text = arena_cstr(a, buf_span(&b));
    buf_free(&b);
    return text;
}

// The event as received, with the tenant added if it is absent.
static span payload_of(struct arena *a, span tenant, const struct sent_event *e)
{
    struct buf b = {0};
    span text = e->text;
    size_t brace = 0;

    if (e->event.tenant.ptr != tenant.ptr)
        return text;
    while (text.ptr[brace] != '{')
        brace++;
    buf_put_lit(&b, "{\"tenant\":");
    js_put_text(&b, tenant);
    buf_putc(&b, ',');
    buf_put_bytes(&b, text.ptr + brace + 1, text.len - brace - 1);
    span payload = arena_copy(a, buf_span(&b));
    buf_free(&b);
    return payload;
}

static void events_push_push(struct sent_events *k)
{
    struct platform *p = http_req_app(k->req);
    struct arena *a = http_req_arena(k->req);
    // All events of a tenant use one partition, so that events popped together are written
    // together.
    const char *key = arena_cstr(a, k->tenant);

    k->messages = arena_new_array(a, struct queen_message, k->n);
    for (unsigned i = 0; i < k->n; i++) {
        struct sent_event *e = &k->events[i];
        if (e->why)
            continue;
        span payload = payload_of(a, k->tenant, e);
        e->at = k->n_messages++;
        k->messages[e->at] =
            (struct queen_message){.queue = p->conf->queue,
                                   .partition_key = key,
                                   .payload = payload.ptr,
                                   .payload_len = payload.len,
                                   // The broker detects a repeated push by it.
                                   .transaction_id = uuid_text(a, e->event.id)};
    }
    if (k->n_messages == 0)
        events_push_reply(k, NULL);
    else
        queen_push_start(p->broker, k->messages, k->n_messages, on_events_push_pushed, k);
}

static void on_events_push_pushed(struct queen_push_results *r, const struct queen_error *err,
                                  void *ctx)
{
    struct sent_events *k = ctx;

    if (!r)
        http_reply_errf(k->req, QE_BROKER_AWAY, "the broker is unavailable: %s", err->text);
    else
        events_push_reply(k, r);
    queen_push_results_free(r);
}

// ---- reply ----

static void put_result(struct buf *out, const struct sent_event *e,
                       const struct queen_push_result *pushed)
{
    static const char *const words[] = {[QUEEN_QUEUED] = "accepted",
                                        [QUEEN_DUPLICATE] = "duplicate",
                                        [QUEEN_BUFFERED] = "accepted",
                                        [QUEEN_FAILED] = "refused",
                                        [QUEEN_SCHEDULED] = "accepted"};
    const char *why = e->why ? e->why : pushed->error;

    buf_put_lit(out, "{\"id\":");
    if (e->why && !e->event.type) {
        buf_put_lit(out, "null");
    } else {
        buf_putc(out, '"');
        buf_put_uuid(out, e->event.id);
        buf_putc(out, '"');
    }
    buf_printf(out, ",\"status\":\"%s\"", e->why ? "refused" : words[pushed->status]);
    if (why) {
        buf_put_lit(out, ",\"error\":");
        js_put_text(out, span_of(why));
    }
    buf_putc(out, '}');
}

static void events_push_reply(struct sent_events *k, const struct queen_push_results *r)
{
    struct buf out = {0};
    size_t refused = 0;

    buf_put_lit(&out, "{\"events\":[");
    for (unsigned i = 0; i < k->n; i++) {
        const struct sent_event *e = &k->events[i];
        assert(e->why || r); // an event that is not refused was pushed
        const struct queen_push_result *pushed = e->why ? NULL : &r->items[e->at];
        if (i > 0)
            buf_putc(&out, ',');
        put_result(&out, e, pushed);
        refused += e->why || pushed->status == QUEEN_FAILED;
    }
    buf_printf(&out, "],\"accepted\":%zu,\"refused\":%zu}", k->n - refused, refused);
    http_reply_json(k->req, k->n > 0 && refused == k->n ? 400 : 202, &out);
}

const struct http_route platform_events_push = {.verb = HTTP_POST,
                                                .path = "/api/v1/tenants/:tenant/events",
                                                .unaudited = true,
                                                .access = ACCESS_READ_WRITE,
                                                .target = TARGET_TENANT,
                                                .need = MAY_PUSH,
                                                .op = "events_push",
                                                .handle = push_handle};
