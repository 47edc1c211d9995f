// conn.c: a connection: reads bytes, passes requests to handlers, applies timeouts.
//
// Input is read into one buffer per loop, except large bodies of known length, which are read
// directly into their final place. When a connection has too many unanswered requests or too
// many unsent bytes, parsing stops at once: the rest of the read is kept until answers have
// been sent, and nothing more is read meanwhile.
#include "http/http_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls_server.h"

// Steps of a request, in order.
static void on_http_conn_ready(uv_poll_t *poll, int status, int events);
static void read_some(struct http_conn *c);
static void request_begin(struct http_conn *c);
static void head_arrived(struct http_conn *c);
static void charge_body(struct http_conn *c);
static void request_ready(struct http_conn *c);
static void request_refuse(struct http_conn *c, int status, const char *text);
static void receive(struct http_req *req);
static void keep_input(struct http_conn *c, const char *data, size_t len);
static void peer_stopped(struct http_conn *c);
static void drop_arriving(struct http_conn *c);
static void on_http_conn_closed(uv_handle_t *handle);

static bool start_tls(struct http_conn *c, struct ssl_ctx_st *tls)
{
    struct http_server *s = c->server;

    if (!tls)
        return true;
    if (!s->cipher)
        s->cipher = mem_realloc(NULL, HTTP_CIPHER_BYTES);
    c->tls = tls_stream_new(tls, c->fd);
    return c->tls != NULL;
}

void http_conn_open(struct http_server *s, int fd, struct ssl_ctx_st *tls)
{
    struct http_conn *c = mem_new(struct http_conn);
    c->server = s;
    c->fd = fd;
    STAILQ_INIT(&c->queue);
    STAILQ_INIT(&c->unsent);

    int rc = start_tls(c, tls) ? uv_poll_init(s->loop, &c->poll, fd) : UV_ENOMEM;
    if (rc != 0) {
        log_warn("http.adopt_failed", "error=%s", uv_err_name(rc));
        if (c->tls)
            tls_stream_free(c->tls);
        close(fd);
        free(c);
        return;
    }
    c->poll.data = c;
    s->n_conns++;
    counter_add(&s->stats->accepted, 1);
    c->place = c->tls ? PLACE_HANDSHAKE : PLACE_IDLE;
    c->stamp_ms = uv_now(s->loop);
    TAILQ_INSERT_TAIL(&s->place[c->place], c, place_link);
    http_conn_settle(c, false);
}

static void on_http_conn_ready(uv_poll_t *poll, int status, int events)
{
    struct http_conn *c = poll->data;

    if (status < 0) {
        http_conn_close(c);
        return;
    }
    if (events & UV_WRITABLE)
        http_conn_touch(c); // written with the other answers at the end of the turn
    if (events & UV_READABLE)
        read_some(c);
    else if (events & UV_DISCONNECT)
        peer_stopped(c);
}

// A large body of known length is read directly into its buffer, never past its end.
static span direct_room(struct http_conn *c)
{
    struct http_req *req = c->in;

    if (!req || req->msg.drop_body || req->msg.content_length == 0)
        return SPAN_NONE;
    struct buf *body = &req->msg.body;
    uint64_t missing = req->msg.content_length - body->len;
    if (missing < HTTP_READ_BYTES / 2)
        return SPAN_NONE;
    // Room grows with the bytes that have arrived: an announced length costs nothing.
    size_t want = body->len < HTTP_READ_BYTES ? HTTP_READ_BYTES : body->len;
    want = want < missing ? want : (size_t)missing;
    if (body->cap - body->len < HTTP_READ_BYTES / 2 && !buf_reserve(body, want)) {
        body->failed = false; // the parser reports it
        return SPAN_NONE;
    }
    size_t room = body->cap - body->len;
    room = room < missing ? room : (size_t)missing;
    return (span){body->ptr + body->len, room < HTTP_DIRECT_BYTES ? room : HTTP_DIRECT_BYTES};
}

// A client that speaks plain HTTP to a TLS port gets an answer that it can read.
static void refuse_plain(struct http_conn *c)
{
    tls_stream_free(c->tls);
    c->tls = NULL;
    request_begin(c);
    request_refuse(c, 400, "this port speaks TLS: use https");
    http_conn_settle(c, false);
}

// Everything that was received is decrypted at once.
static void read_encrypted(struct http_conn *c, size_t n)
{
    _Static_assert(HTTP_CIPHER_BYTES + TLS_STREAM_RECORD < HTTP_READ_BYTES,
                   "the plain text must fit");
    struct http_server *s = c->server;
    bool ended, is_first = !c->greeted;

    c->greeted = true;
    if (is_first && s->cipher[0] >= 'A' && s->cipher[0] <= 'Z') {
        refuse_plain(c);
        return;
    }
    ssize_t plain = tls_stream_decrypt(c->tls, s->cipher, n, s->input, sizeof s->input, &ended);
    if (plain < 0) {
        http_conn_close(c);
        return;
    }
    if (plain > 0)
        http_conn_input(c, s->input, (size_t)plain);
    else
        http_conn_settle(c, false); // the handshake may be complete
    if (ended && !c->closed)
        peer_stopped(c);
}

static void read_some(struct http_conn *c)
{
    struct http_server *s = c->server;
    span room = c->tls ? SPAN_NONE : direct_room(c);
    char *into = room.ptr ? c->in->msg.body.ptr + c->in->msg.body.len
                 : c->tls ? s->cipher
                          : s->input;
    size_t size = room.ptr ? room.len : c->tls ? HTTP_CIPHER_BYTES : sizeof s->input;
    ssize_t n;

    do
        n = recv(c->fd, into, size, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (n < 0) {
        http_conn_close(c);
        return;
    }
    if (n == 0) {
        peer_stopped(c);
        return;
    }
    counter_add(&s->stats->bytes_in, (uint64_t)n);
    if (c->tls)
        read_encrypted(c, (size_t)n);
    else
        http_conn_input(c, into, (size_t)n);
}

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

static bool is_full(const struct http_conn *c)
{
    return c->n_queue >= c->server->conf.max_pipelined || c->out_bytes > HTTP_BACKLOG_BYTES;
}

void http_conn_input(struct http_conn *c, const char *data, size_t len)
{
    bool in_body = false;

    while (!c->deaf && !c->closed) {
        if (!c->in && is_full(c)) {
            keep_input(c, data, len);
            break;
        }
        // Empty lines between requests are legal and start nothing.
        while (!c->in && len > 0 && (*data == '\r' || *data == '\n'))
            data++, len--;
        if (!c->in && len == 0)
            break;
        if (!c->in)
            request_begin(c);

        size_t used;
        enum http_feed got = http_parser_feed(c->parser, data, len, &used);
        data += used;
        len -= used;
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
            request_refuse(c, c->in->msg.bad_status, c->in->msg.bad_text);
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
    http_conn_count_held(c);
}

static void drop_input(struct http_conn *c)
{
    free(c->input);
    c->input = NULL;
    c->input_len = c->input_at = 0;
    http_conn_count_held(c);
}

void http_conn_resume(struct http_conn *c)
{
    if (!c->input || is_full(c))
        return;
    uint32_t at = c->input_at;
    c->input_at = c->input_len; // unless keep_input() is called again
    http_conn_input(c, c->input + at, c->input_len - at);
    if (c->input && (c->input_at == c->input_len || c->deaf || c->closed))
        drop_input(c);
    if (c->closed)
        return;
    if (!c->input && c->eof) { // the peer had stopped sending before its input was parsed
        drop_arriving(c);
        c->deaf = c->close_after = true;
        http_conn_touch(c);
    }
    http_conn_settle(c, false);
}

void http_conn_count_held(struct http_conn *c)
{
    size_t held = c->out_bytes + c->input_len;

    c->server->held += held - c->held;
    c->held = held;
}

static void request_begin(struct http_conn *c)
{
    c->in = http_server_take_req(c->server);
    c->in->conn = c;
    c->parser = http_server_take_parser(c->server);
    http_parser_start(c->parser, &c->in->msg);
}

static void find_route(struct http_req *req)
{
    if (req->msg.verb != MSG_OPTIONS)
        req->route = http_routes_find(req->server->conf.routes, http_req_verb(req), req->path,
                                      req->params, &req->other_verb);
}

// The body is discarded: there is no such route, or the sender may not use it.
static bool is_unwanted(struct http_req *req)
{
    const struct http_server_conf *conf = &req->server->conf;

    if (!req->route)
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
        request_refuse(c, 413, err_text(QE_TOO_LARGE));
        return;
    }
    find_route(req);
    if ((msg->content_length > 0 || msg->chunked) && is_unwanted(req))
        msg->drop_body = true;
    // A body larger than the whole limit is accepted if no other body is in flight.
    if (s->conf.max_inflight_bytes > 0 && msg->content_length > 0 && s->inflight > 0 &&
        s->inflight + msg->content_length > s->conf.max_inflight_bytes) {
        if (msg->expects) {
            request_refuse(c, err_http_status(QE_BUSY), err_text(QE_BUSY));
            return;
        }
        req->refused = QE_BUSY;
        msg->drop_body = true;
    }
    if (msg->content_length > 0 && !msg->drop_body) {
        size_t room =
            msg->content_length < HTTP_BODY_ROOM ? (size_t)msg->content_length : HTTP_BODY_ROOM;
        if (!buf_reserve(&msg->body, room)) {
            request_refuse(c, err_http_status(QE_NO_MEMORY), err_text(QE_NO_MEMORY));
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
        req->held = true;
    else
        receive(req);
}

// The connection cannot be used after this: the next request's start may be unknown.
static void request_refuse(struct http_conn *c, int status, const char *text)
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
        if (!req->held)
            continue;
        req->held = false;
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
    if (req->route) {
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

static bool has_hook(const struct http_conn *c)
{
    const struct http_req *req;

    STAILQ_FOREACH (req, &c->queue, link)
        if (req->state == REQ_PENDING && req->gone)
            return true;
    return false;
}

// End of input: the peer has closed its sending half, or the whole connection. Requests that
// have reached their handlers are answered. If a long poll or a compressed body is among them,
// the peer counts as disconnected (req.h).
static void peer_stopped(struct http_conn *c)
{
    bool has_output = c->n_queue > 0 || !STAILQ_EMPTY(&c->unsent);

    if (c->place == PLACE_LINGERING || !has_output || c->unpacking || has_hook(c)) {
        http_conn_close(c);
        return;
    }
    c->eof = true;
    c->linger = false;
    if (!c->input) {
        drop_arriving(c);
        c->deaf = c->close_after = true;
    }
    http_conn_touch(c);
    http_conn_settle(c, false);
}

void http_conn_touch(struct http_conn *c)
{
    struct http_server *s = c->server;

    if (c->dirty || c->closed)
        return;
    c->dirty = true;
    TAILQ_INSERT_TAIL(&s->dirty, c, dirty_link);
    s->n_dirty++;
    http_server_wake(s);
}

static bool may_read(const struct http_conn *c)
{
    if (c->place == PLACE_LINGERING)
        return true;
    return !c->deaf && !c->input && !is_full(c);
}

static enum http_place place_of(const struct http_conn *c)
{
    if (c->place == PLACE_LINGERING)
        return PLACE_LINGERING;
    if (c->tls && !tls_stream_is_ready(c->tls))
        return PLACE_HANDSHAKE;
    if (!STAILQ_EMPTY(&c->unsent))
        return PLACE_WRITING;
    if (c->in && may_read(c))
        return PLACE_RECEIVING;
    if (c->n_queue > 0)
        return c->held > 0 ? PLACE_BLOCKED : PLACE_PARKED;
    return c->in ? PLACE_RECEIVING : PLACE_IDLE;
}

void http_conn_settle(struct http_conn *c, bool progress)
{
    struct http_server *s = c->server;

    http_conn_count_held(c);
    enum http_place place = place_of(c);
    if (place != c->place || progress) {
        TAILQ_REMOVE(&s->place[c->place], c, place_link);
        c->place = (uint8_t)place;
        c->stamp_ms = uv_now(s->loop);
        TAILQ_INSERT_TAIL(&s->place[place], c, place_link);
    }
    // Detect a disconnect even while not reading.
    int events = c->eof ? 0 : may_read(c) ? UV_READABLE : UV_DISCONNECT;
    if (!STAILQ_EMPTY(&c->unsent))
        events |= UV_WRITABLE;
    if (events == c->watching)
        return;
    c->watching = (uint8_t)events;
    // Fails only for a closed handle or a bad event mask.
    int rc =
        events ? uv_poll_start(&c->poll, events, on_http_conn_ready) : uv_poll_stop(&c->poll);
    if (rc != 0)
        BUG("uv_poll_start: %s", uv_err_name(rc));
}

// The connection's time in its current place has run out.
void http_conn_expire(struct http_conn *c)
{
    if (c->place == PLACE_RECEIVING) {
        request_refuse(c, err_http_status(QE_TIMEOUT), err_text(QE_TIMEOUT));
        http_conn_settle(c, false);
    } else {
        http_conn_close(c);
    }
}

static void drop_arriving(struct http_conn *c)
{
    if (!c->in)
        return;
    http_server_return_parser(c->server, c->parser);
    http_server_recycle(c->server, c->in);
    c->in = NULL;
    c->parser = NULL;
}

void http_conn_close(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_req *req;

    if (c->closed)
        return;
    c->closed = true;
    TAILQ_REMOVE(&s->place[c->place], c, place_link);
    if (c->dirty) {
        TAILQ_REMOVE(&s->dirty, c, dirty_link);
        s->n_dirty--;
    }
    drop_arriving(c);
    http_output_drop(c);
    c->out_bytes = 0;
    drop_input(c);
    uv_close((uv_handle_t *)&c->poll, on_http_conn_closed);
    if (c->tls)
        tls_stream_free(c->tls);
    c->tls = NULL;
    close(c->fd);
    counter_add(&s->stats->closed, 1);

    while ((req = STAILQ_FIRST(&c->queue))) {
        STAILQ_REMOVE_HEAD(&c->queue, link);
        req->conn = NULL;
        if (req->state == REQ_ANSWERED) {
            http_server_discard(s, req);
        } else if (req->held) {
            http_reply_empty(req, 204); // only frees it
        } else if (req->job) {
            http_coding_drop(req);
        } else if (req->gone) {
            void (*gone)(struct http_req *, void *) = req->gone;
            req->gone = NULL;
            gone(req, req->gone_ctx); // may answer, which frees the request
        }
    }
}

static void on_http_conn_closed(uv_handle_t *handle)
{
    struct http_conn *c = handle->data;
    struct http_server *s = c->server;

    free(c);
    s->n_conns--;
    http_server_finish(s);
}
