// trigger.c: creates triggers at the broker.
#include "platform/trigger.h"

#include <stdlib.h>

#include "auth/access.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/write.h"

struct trigger_request {
    struct platform *p;
    trigger_cb done;
    void *ctx;
    struct buf name, body; // of a schedule, for changing an existing one
    bool absent_is_fine;
};

bool trigger_may_deliver(const struct platform *p, span queue)
{
    span events = span_of(p->conf->queue);

    // "platform.events" and "platform.events.held"
    return !span_eq(queue, span_of(p->conf->trigger_queue)) && !span_eq(queue, events) &&
           !(str_starts(queue, events) &&
             span_eq((span){queue.ptr + events.len, queue.len - events.len}, SPAN(".held")));
}

bool trigger_check_queue(struct http_req *req, span queue)
{
    const struct access_rules *rules = access_rules_of(req);

    if (!trigger_may_deliver(http_req_app(req), queue)) {
        http_reply_errf(req, QE_BAD_PARAM,
                        "queue must not be one of the platform's own queues");
        return false;
    }
    if (!rules || access_rules_permit(rules, MAY_PUSH, queue, SPAN_NONE))
        return true;
    http_reply_errf(req, QE_FORBIDDEN, "the rules do not permit pushing to queue \"%.*s\"",
                    (int)(queue.len < 100 ? queue.len : 100), queue.ptr);
    return false;
}

static void on_trigger_answer(struct queen_response *r, const struct queen_error *err,
                              void *ctx);

static struct trigger_request *asking_new(struct platform *p, trigger_cb done, void *ctx)
{
    struct trigger_request *a = mem_new(struct trigger_request);

    a->p = p;
    a->done = done;
    a->ctx = ctx;
    return a;
}

static void finish_request(struct trigger_request *a, const struct queen_error *why)
{
    trigger_cb done = a->done;
    void *ctx = a->ctx;

    buf_free(&a->name);
    buf_free(&a->body);
    free(a);
    done(ctx, why);
}

bool trigger_is_refused(const struct queen_error *why)
{
    return why->http_status >= 400 && why->http_status < 500 && !why->retryable;
}

static void send_request(struct trigger_request *a, const char *method, const char *path,
                         span body)
{
    struct queen_request req = {
        .method = method, .path = path, .body = body.ptr, .body_len = body.len};

    queen_request_start(a->p->broker, &req, on_trigger_answer, a);
}

void trigger_put_name(struct buf *out, const char *noun, span tenant, span id)
{
    buf_printf(out, "%s:" SPAN_FMT ":" SPAN_FMT, noun, SPAN_ARG(tenant), SPAN_ARG(id));
}

void trigger_put_payload(struct buf *out, const char *kind, span tenant, span id)
{
    buf_printf(out, "{\"kind\":\"%s\",\"tenant\":", kind);
    js_put_text(out, tenant);
    buf_put_lit(out, ",\"id\":");
    js_put_text(out, id);
    buf_putc(out, '}');
}

static void trigger_put_path(struct buf *out, span name)
{
    char *text = mem_strndup(name.ptr, name.len), *escaped = queen_escape(text);

    buf_printf(out, "/api/v1/schedules/%s", escaped);
    buf_putc(out, '\0');
    free(escaped);
    free(text);
}

void trigger_repeat(struct platform *p, span name, span cron, span zone, span tenant,
                    span payload, trigger_cb done, void *ctx)
{
    struct trigger_request *a = asking_new(p, done, ctx);

    buf_put(&a->name, name);
    buf_put_lit(&a->body, "{\"name\":");
    js_put_text(&a->body, name);
    buf_put_lit(&a->body, ",\"queue\":");
    js_put_text(&a->body, span_of(p->conf->trigger_queue));
    buf_put_lit(&a->body, ",\"partition\":");
    js_put_text(&a->body, tenant);
    buf_put_lit(&a->body, ",\"cron\":");
    js_put_text(&a->body, cron);
    if (zone.len > 0) {
        buf_put_lit(&a->body, ",\"timezone\":");
        js_put_text(&a->body, zone);
    }
    buf_put_lit(&a->body, ",\"payload\":");
    buf_put(&a->body, payload);
    buf_putc(&a->body, '}');
    send_request(a, "POST", "/api/v1/schedules", buf_span(&a->body));
}

static void on_trigger_answer(struct queen_response *r, const struct queen_error *err,
                              void *ctx)
{
    struct trigger_request *a = ctx;
    struct buf path = {0};

    queen_response_free(r);
    if (err->code == QUEEN_E_CONFLICT && a->name.len > 0 && a->body.len > 0) {
        // A schedule of the name exists: keep the name and replace the rest.
        trigger_put_path(&path, buf_span(&a->name));
        buf_reset(&a->name);
        send_request(a, "PATCH", path.ptr, buf_span(&a->body));
        buf_free(&path);
        return;
    }
    bool fine = err->code == QUEEN_OK || (a->absent_is_fine && err->code == QUEEN_E_NOT_FOUND);
    finish_request(a, fine ? NULL : err);
}

void trigger_end(struct platform *p, span name, trigger_cb done, void *ctx)
{
    struct trigger_request *a = asking_new(p, done, ctx);
    struct buf path = {0};

    a->absent_is_fine = true;
    trigger_put_path(&path, name);
    send_request(a, "DELETE", path.ptr, SPAN_NONE);
    buf_free(&path);
}

void trigger_push(struct platform *p, span key, span at, span tenant, span payload,
                  trigger_cb done, void *ctx)
{
    struct trigger_request *a = asking_new(p, done, ctx);
    struct buf *b = &a->body;

    buf_put_lit(b, "{\"items\":[{\"queue\":");
    js_put_text(b, span_of(p->conf->trigger_queue));
    buf_put_lit(b, ",\"partition\":");
    js_put_text(b, tenant);
    buf_put_lit(b, ",\"transactionId\":");
    js_put_text(b, key);
    buf_put_lit(b, ",\"correlationId\":");
    js_put_text(b, key);
    if (at.ptr) {
        buf_put_lit(b, ",\"scheduledAt\":");
        js_put_text(b, at);
    }
    buf_put_lit(b, ",\"payload\":");
    buf_put(b, payload);
    buf_put_lit(b, "}]}");
    send_request(a, "POST", "/api/v1/push", buf_span(b));
}
