// call.c: performs the attempts of a call, one after another.
#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "base/clock.h"
#include "base/mem.h"
#include "call_int.h"
#include "fail.h"
#include "http/gzip.h"

enum {
    WORTH_PACKING = 4096,
    HANG_UP_MS = 1000, // limit for servers and proxies that ignore a half-closed connection
};

// Steps of a call, in order.
static void on_delivered(struct mailbox_item *item);
static void attempt(struct call *call);
static void on_conn(struct pool_wait *w, struct server_conn *l);
static void on_outcome(const struct server_conn_outcome *o, void *owner);
static void on_timer(uv_timer_t *timer);
static void leave_conn(struct call *call);
static void try_again_or_finish(struct call *call, bool again);
static void call_finish(struct call *call);
static void on_call_timer_closed(uv_handle_t *handle);

static char *call_copy(const char *text)
{
    return text ? mem_strndup(text, strlen(text)) : NULL;
}

static void copy_headers(struct call *call, const struct queen_request *req)
{
    call->headers = mem_new_array(struct call_header, req->n_headers);
    call->n_headers = req->n_headers;
    for (size_t i = 0; i < req->n_headers; i++) {
        call->headers[i].name = call_copy(req->headers[i].name);
        call->headers[i].value = call_copy(req->headers[i].value);
    }
}

static void copy_body(struct call *call, const struct queen_request *req)
{
    span body = {req->body, req->body_len};

    if (call->client->conf.compress && body.len > WORTH_PACKING &&
        !request_has_header(call, "Content-Encoding"))
        call->is_packed = gzip_pack(body, &call->body) == 0;
    if (!call->is_packed) {
        buf_reset(&call->body);
        buf_put(&call->body, body);
    }
}

struct call *call_new(struct queen_client *c, const struct queen_request *req,
                      queen_response_cb done, void *ctx)
{
    struct call *call = mem_new(struct call);

    call->client = c;
    call->method = call_copy(req->method ? req->method : "GET");
    call->path = call_copy(req->path ? req->path : "/");
    call->key = call_copy(req->key);
    call->traceparent = call_copy(req->traceparent);
    call->has_body = req->body != NULL;
    call->once = req->once;
    call->timeout_ms = req->timeout_ms > 0 ? req->timeout_ms : c->conf.request_timeout_ms;
    call->attempts = req->attempts > 0 ? req->attempts : c->conf.attempts;
    call->done = done;
    call->ctx = ctx;
    call->post.deliver = on_delivered;
    call->wait.ready = on_conn;
    copy_headers(call, req);
    copy_body(call, req);
    return call;
}

struct call *call_new_failed(struct queen_client *c, const struct queen_error *err,
                             queen_response_cb done, void *ctx)
{
    struct call *call = call_new(c, &(struct queen_request){.path = "/"}, done, ctx);

    call->err = *err;
    return call;
}

static void call_free(struct call *call)
{
    for (size_t i = 0; i < call->n_headers; i++) {
        free(call->headers[i].name);
        free(call->headers[i].value);
    }
    free(call->headers);
    free(call->method);
    free(call->path);
    free(call->key);
    free(call->traceparent);
    buf_free(&call->body);
    free(call);
}

void call_submit(struct call *call)
{
    if (client_is_here(call->client))
        call_begin(call);
    else
        client_post(call->client, &call->post);
}

static void on_delivered(struct mailbox_item *item)
{
    call_begin(container_of(item, struct call, post));
}

void call_may_park(struct call *call) { call->wait.may_park = true; }

void call_begin(struct call *call)
{
    struct queen_client *c = call->client;

    TAILQ_INSERT_TAIL(&c->calls, call, entry);
    uv_timer_init(c->loop, &call->timer);
    call->timer.data = call;
    if (call->err.code == 0 && call->body.failed)
        fail_set(&call->err, QUEEN_E_MEMORY, "no memory for the request");
    else if (call->err.code == 0 && !request_is_sound(call))
        fail_set(&call->err, QUEEN_E_ARGUMENT, "method, path or a header is invalid");

    if (call->err.code != 0)
        call_finish(call);
    else if (c->closing)
        call_cancel(call);
    else
        attempt(call);
}

static void attempt(struct call *call)
{
    struct queen_client *c = call->client;

    call->server =
        servers_choose(&c->servers, span_of(call->key), call->tried, clock_mono_us());
    call->pausing = false;
    queen_response_free(call->response); // of the previous attempt
    call->response = NULL;
    // After a long callback the loop's time is stale, and the timer would fire early.
    uv_update_time(c->loop);
    if (call->wait.may_park)
        uv_timer_stop(&call->timer); // of the previous attempt
    else
        uv_timer_start(&call->timer, on_timer, call->timeout_ms, 0);
    pool_acquire(&c->pools[call->server], &call->wait);
}

static void on_conn(struct pool_wait *w, struct server_conn *l)
{
    struct call *call = container_of(w, struct call, wait);
    struct buf bytes = {0};

    call->conn = l;
    if (w->may_park)
        uv_timer_start(&call->timer, on_timer, call->timeout_ms, 0);
    request_write(call, &bytes);
    server_conn_send(l, &bytes, strcmp(call->method, "HEAD") == 0, on_outcome, call);
}

static void on_outcome(const struct server_conn_outcome *o, void *owner)
{
    struct call *call = owner;
    struct queen_client *c = call->client;
    bool well = o->response && o->response->status < 500;

    if (o->open)
        pool_give_back(&c->pools[call->server], call->conn);
    call->conn = NULL;
    if (call->hung_up && !o->response) {
        call_cancel(call);
        return;
    }
    servers_note(&c->servers, call->server, well, clock_mono_us());
    call->response = o->response;
    call->err = o->err;
    try_again_or_finish(call, !well && o->err.retryable && !call->hung_up &&
                                  !(call->once && o->sent));
}

// The end of a pause, or the timeout of an attempt.
static void on_timer(uv_timer_t *timer)
{
    struct call *call = timer->data;
    struct queen_client *c = call->client;

    if (call->pausing) {
        attempt(call);
        return;
    }
    if (call->hung_up) {
        call_cancel(call);
        return;
    }
    leave_conn(call);
    servers_note(&c->servers, call->server, false, clock_mono_us());
    fail_set(&call->err, QUEEN_E_TIMEOUT, "%s: no answer within %u ms",
             c->servers.list[call->server].address.authority, call->timeout_ms);
    try_again_or_finish(call, !call->once);
}

static void leave_conn(struct call *call)
{
    pool_cancel(&call->client->pools[call->server], &call->wait);
    if (call->conn)
        server_conn_close(call->conn);
    call->conn = NULL;
}

static void try_again_or_finish(struct call *call, bool again)
{
    const struct queen_client *c = call->client;
    bool several = c->servers.n > 1;

    call->n_failed++;
    call->tried |= (uint64_t)1 << call->server;
    if (!again || call->attempts == 1 ||
        call->n_failed >= (several ? c->servers.n : call->attempts)) {
        call_finish(call);
    } else if (several) {
        attempt(call);
    } else {
        call->pausing = true;
        uv_timer_start(&call->timer, on_timer,
                       backoff_ms(c->conf.retry_delay_ms, call->n_failed), 0);
    }
}

void call_cancel(struct call *call)
{
    if (call->ended)
        return;
    leave_conn(call);
    queen_response_free(call->response);
    call->response = NULL;
    fail_set(&call->err, QUEEN_E_CLOSED, "the request was cancelled: the client is closing");
    call_finish(call);
}

void call_hang_up(struct call *call)
{
    if (call->ended || call->hung_up)
        return;
    if (!call->conn || !server_conn_hang_up(call->conn)) {
        call_cancel(call);
        return;
    }
    call->hung_up = true;
    uv_update_time(call->client->loop);
    uv_timer_start(&call->timer, on_timer, HANG_UP_MS, 0);
}

struct call *call_next(struct call *call) { return TAILQ_NEXT(call, entry); }

// Calls back from the loop, never from inside a function of the caller.
static void call_finish(struct call *call)
{
    call->ended = true;
    uv_close((uv_handle_t *)&call->timer, on_call_timer_closed);
}

static void on_call_timer_closed(uv_handle_t *handle)
{
    struct call *call = handle->data;
    struct queen_client *c = call->client;

    TAILQ_REMOVE(&c->calls, call, entry);
    call->done(call->response, &call->err, call->ctx);
    call_free(call);
    client_call_gone(c);
}
