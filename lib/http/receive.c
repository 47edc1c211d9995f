// receive.c: makes requests of the bytes of a connection and passes them to their handlers.
//
// When a connection has too many unanswered requests or too many unsent bytes, parsing stops at
// once: the rest of the read is kept until answers have been sent, and nothing more is read
// meanwhile.
#include "http/http_int.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "net/addresses.h"

// Steps of a request, in order.
static void head_arrived(struct http_conn *c);
static void charge_body(struct http_conn *c);
static void request_ready(struct http_conn *c);
static void receive(struct http_req *req);
static void keep_input(struct http_conn *c, const char *data, size_t len);

// Whether the body of the request being received has earned another header_timeout_ms.
static bool is_fast_enough(struct http_conn *c, size_t used)
{
    size_t least = (size_t)c->server->conf.header_timeout_ms * HTTP_MIN_BODY_RATE / 1000;

    c->body_bytes += used;
    if (c->body_bytes < least)
        return false;
    c->body_bytes = 0;
    return true;
}

// The whole body has taken too long. The minimum rate makes a silent sender expire earlier.
static bool is_overdue(const struct http_conn *c)
{
    uint64_t limit_us = (uint64_t)c->server->conf.body_timeout_ms * 1000;

    return limit_us > 0 && c->in->started_us > 0 &&
           clock_mono_us() - c->in->started_us > limit_us;
}

bool http_receive_is_full(const struct http_conn *c)
{
    return c->n_queue >= c->server->conf.max_pipelined || c->out_bytes > HTTP_BACKLOG_BYTES;
}

void http_conn_input(struct http_conn *c, const char *data, size_t len)
{
    bool in_body = false;

    while (!c->deaf && !c->closed) {
        if (!c->in && http_receive_is_full(c)) {
            keep_input(c, data, len);
            break;
        }
        // Empty lines between requests are legal and start nothing.
        while (!c->in && len > 0 && (*data == '\r' || *data == '\n'))
            data++, len--;
        if (!c->in && len == 0)
            break;
        if (!c->in)
            http_receive_begin(c);

        size_t used;
        enum http_feed got = http_parser_feed(c->parser, data, len, &used);
        data += used;
        len -= used;
        if (got == HTTP_FEED_MORE && is_overdue(c)) {
            http_receive_refuse(c, err_http_status(QE_TIMEOUT), err_text(QE_TIMEOUT));
            break;
        }
        if (got == HTTP_FEED_MORE) {
            in_body = c->in->started_us > 0 && is_fast_enough(c, used);
            charge_body(c);
            break;
        }
        if (got == HTTP_FEED_HEAD)
            head_arrived(c);
        else if (got == HTTP_FEED_DONE)
            request_ready(c);
        else
            http_receive_refuse(c, c->in->msg.bad_status, c->in->msg.bad_text);
    }
    // The whole head has one deadline; a body must arrive at the minimum rate.
    if (!c->closed)
        http_conn_settle(c, in_body);
}

// data may be the end of what is kept already.
static void keep_input(struct http_conn *c, const char *data, size_t len)
{
    if (len == 0)
        return;
    if (c->input) {
        assert(data + len == c->input + c->input_len);
        c->input_at = c->input_len - (uint32_t)len;
        return;
    }
    c->input = mem_realloc(NULL, len);
    memcpy(c->input, data, len);
    c->input_len = (uint32_t)len;
    c->input_at = 0;
    http_conn_count_backlog(c);
}

void http_receive_drop_input(struct http_conn *c)
{
    free(c->input);
    c->input = NULL;
    c->input_len = c->input_at = 0;
    http_conn_count_backlog(c);
}

void http_conn_resume(struct http_conn *c)
{
    if (!c->input || http_receive_is_full(c))
        return;
    uint32_t at = c->input_at;
    c->input_at = c->input_len; // unless keep_input() is called again
    http_conn_input(c, c->input + at, c->input_len - at);
    if (c->input && (c->input_at == c->input_len || c->deaf || c->closed))
        http_receive_drop_input(c);
    if (c->closed)
        return;
    if (!c->input && c->eof) { // the peer had stopped sending before its input was parsed
        http_receive_drop(c);
        c->deaf = c->close_after = true;
        http_conn_touch(c);
    }
    http_conn_settle(c, false);
}

void http_receive_begin(struct http_conn *c)
{
    c->in = http_server_take_req(c->server);
    c->in->conn = c;
    memcpy(c->in->ip, c->ip, sizeof c->ip);
    c->parser = http_server_take_parser(c->server);
    http_parser_start(c->parser, &c->in->msg);
}

static void find_route(struct http_req *req)
{
    if (req->msg.verb != MSG_OPTIONS)
        req->route = http_routes_find(req->server->conf.routes, http_req_verb(req), req->path,
                                      req->params, &req->other_verb);
}

// The address has sent too many requests without a valid token.
static bool is_barred(const struct http_req *req)
{
    const struct http_server *s = req->server;

    return s->conf.addresses && req->conn && req->route->access != ACCESS_PUBLIC &&
           addresses_is_barred(s->conf.addresses, req->conn->address,
                               clock_mono_us() / 1000000);
}

// The body is discarded: there is no such route, or the sender may not use it.
static bool is_unwanted(struct http_req *req)
{
    const struct http_server_conf *conf = &req->server->conf;

    if (!req->route || is_barred(req))
        return true;
    return conf->guard_refuses && req->route->access != ACCESS_PUBLIC &&
           conf->guard_refuses(conf->guard_ctx, req, &req->admitted);
}

static void head_arrived(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_req *req = c->in;
    struct http_msg *msg = &req->msg;

    req->started_us = clock_mono_us();
    c->body_bytes = SIZE_MAX / 2; // the body begins with a whole header_timeout_ms
    http_req_split_target(req);
    if (msg->content_length > s->conf.max_body_bytes) {
        http_receive_refuse(c, 413, err_text(QE_TOO_LARGE));
        return;
    }
    find_route(req);
    if ((msg->content_length > 0 || msg->chunked) && is_unwanted(req))
        msg->drop_body = true;
    // A body larger than the whole limit is accepted if no other body is in flight.
    if (s->conf.max_inflight_bytes > 0 && msg->content_length > 0 && s->inflight > 0 &&
        s->inflight + msg->content_length > s->conf.max_inflight_bytes) {
        if (msg->expects) {
            http_receive_refuse(c, err_http_status(QE_BUSY), err_text(QE_BUSY));
            return;
        }
        req->refused = QE_BUSY;
        msg->drop_body = true;
    }
    if (msg->content_length > 0 && !msg->drop_body) {
        size_t room =
            msg->content_length < HTTP_BODY_ROOM ? (size_t)msg->content_length : HTTP_BODY_ROOM;
        if (!buf_reserve(&msg->body, room)) {
            http_receive_refuse(c, err_http_status(QE_NO_MEMORY), err_text(QE_NO_MEMORY));
            return;
        }
    }
    if (msg->expects && (msg->chunked || msg->content_length > 0)) {
        c->owe_continue = true;
        http_conn_touch(c);
    }
}

// Bytes count when they have arrived. An announced length counts for nothing: a client that
// announces a large body and sends it slowly must not keep others out.
static void charge_body(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_req *req = c->in;

    if (req->msg.body.len <= req->charged)
        return;
    s->inflight += req->msg.body.len - req->charged;
    req->charged = req->msg.body.len;
    if (s->conf.max_inflight_bytes > 0 && s->inflight > s->conf.max_inflight_bytes &&
        s->inflight > req->charged) {
        s->inflight -= req->charged;
        req->charged = 0;
        req->refused = QE_BUSY;
        req->msg.drop_body = true;
        buf_free(&req->msg.body);
    }
}

// Moves the request that was being received to the end of the queue.
static struct http_req *queue_request(struct http_conn *c)
{
    struct http_req *req = c->in;

    c->in = NULL;
    http_server_return_parser(c->server, c->parser);
    c->parser = NULL;
    c->owe_continue = false;
    STAILQ_INSERT_TAIL(&c->queue, req, link);
    c->n_queue++;
    req->state = REQ_PENDING;
    c->server->n_pending++;
    counter_add(&c->server->stats->requests, 1);
    return req;
}

static void request_ready(struct http_conn *c)
{
    charge_body(c);
    struct http_req *req = queue_request(c);
    if (!req->msg.keep_alive) {
        req->close = true;
        c->deaf = true;
    }
    if (c->unpacking)
        req->blocked = true;
    else
        receive(req);
}

// The connection cannot be used after this: the next request's start may be unknown.
void http_receive_refuse(struct http_conn *c, int status, const char *text)
{
    struct http_req *req = queue_request(c);

    counter_add(&c->server->stats->refused, 1);
    if (req->started_us == 0)
        req->started_us = clock_mono_us();
    req->close = true;
    c->deaf = c->linger = true;
    c->server->inflight -= req->charged;
    req->charged = 0;
    buf_free(&req->msg.body);
    http_reply_status(req, status, text);
}

static void receive(struct http_req *req)
{
    if (req->refused != 0) {
        counter_add(&req->server->stats->refused, 1);
        http_reply_err(req, req->refused);
        return;
    }
    if (!(req->msg.rare & RARE_CONTENT_ENCODING) || !http_coding_unpack(req))
        http_conn_dispatch(req);
}

void http_conn_release(struct http_conn *c, struct http_req *req)
{
    c->unpacking = false;
    while (!c->unpacking && (req = STAILQ_NEXT(req, link))) {
        if (!req->blocked)
            continue;
        req->blocked = false;
        receive(req);
    }
}

void http_conn_dispatch(struct http_req *req)
{
    const struct http_routes *routes = req->server->conf.routes;

    if (http_reply_foreign(req))
        return;
    if (req->msg.verb == MSG_OPTIONS) {
        http_reply_preflight(req);
        return;
    }
    if (req->route && is_barred(req)) {
        http_reply_errf(req, QE_BUSY, "too many requests of this address were refused");
    } else if (req->route) {
        const struct http_server_conf *conf = &req->server->conf;
        bool is_free = req->route->access == ACCESS_PUBLIC && !req->route->detail;
        if (!conf->guard || is_free || req->admitted || conf->guard(conf->guard_ctx, req))
            http_req_admit(req);
    } else if (req->other_verb)
        http_reply_allow(req, http_routes_verbs(routes, req->path));
    else if (req->server->conf.fallback &&
             (req->msg.verb == MSG_GET || req->msg.verb == MSG_HEAD))
        req->server->conf.fallback(req);
    else
        http_reply_err(req, QE_NOT_FOUND);
}

void http_receive_drop(struct http_conn *c)
{
    if (!c->in)
        return;
    http_server_return_parser(c->server, c->parser);
    http_server_recycle(c->server, c->in);
    c->in = NULL;
    c->parser = NULL;
}
