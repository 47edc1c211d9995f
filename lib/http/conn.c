// conn.c: a connection: opens and closes it, reads its bytes, decides what its time limit is.
//
// Input is read into one buffer per loop, except large bodies of known length, which are read
// directly into their final place. receive.c makes requests of it.
#include "http/http_int.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/addresses.h"
#include "net/tls_server.h"

static void on_http_conn_ready(uv_poll_t *poll, int status, int events);
static void read_some(struct http_conn *c);
static void peer_stopped(struct http_conn *c);
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
    uint16_t address;

    if (!addresses_enter(s->conf.addresses, fd, &address)) {
        counter_add(&s->stats->crowded, 1);
        counter_add(&s->stats->accepted, 1);
        counter_add(&s->stats->closed, 1);
        close(fd);
        return;
    }
    struct http_conn *c = mem_new(struct http_conn);
    c->address = address;
    addresses_peer(fd, c->ip); // zero if it has none
    c->server = s;
    c->fd = fd;
    STAILQ_INIT(&c->queue);
    STAILQ_INIT(&c->unsent);

    int rc = start_tls(c, tls) ? uv_poll_init(s->loop, &c->poll, fd) : UV_ENOMEM;
    if (rc != 0) {
        log_warn("http.adopt_failed", "error=%s", uv_err_name(rc));
        if (c->tls)
            tls_stream_free(c->tls);
        addresses_leave(s->conf.addresses, address);
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
    http_receive_begin(c);
    http_receive_refuse(c, 400, "this port speaks TLS: use https");
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

    // A handshake costs as much as hundreds of requests. The others wait for the next turn, so
    // that a crowd of new clients does not stop those that are connected.
    if (c->place == PLACE_HANDSHAKE && s->n_handshakes++ >= HTTP_HANDSHAKES)
        return;
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

void http_conn_count_backlog(struct http_conn *c)
{
    size_t backlog = c->out_bytes + c->input_len;

    c->server->backlog += backlog - c->backlog;
    c->backlog = backlog;
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
        http_receive_drop(c);
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
    return !c->deaf && !c->input && !http_receive_is_full(c);
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
        return c->backlog > 0 ? PLACE_BLOCKED : PLACE_PARKED;
    return c->in ? PLACE_RECEIVING : PLACE_IDLE;
}

void http_conn_settle(struct http_conn *c, bool progress)
{
    struct http_server *s = c->server;

    http_conn_count_backlog(c);
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
        http_receive_refuse(c, err_http_status(QE_TIMEOUT), err_text(QE_TIMEOUT));
        http_conn_settle(c, false);
    } else {
        http_conn_close(c);
    }
}

void http_conn_uncount(struct http_conn *c)
{
    if (c->counter)
        atomic_fetch_sub(c->counter, 1);
    c->counter = NULL;
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
    http_receive_drop(c);
    http_output_drop(c);
    c->out_bytes = 0;
    http_receive_drop_input(c);
    uv_close((uv_handle_t *)&c->poll, on_http_conn_closed);
    if (c->tls)
        tls_stream_free(c->tls);
    c->tls = NULL;
    close(c->fd);
    addresses_leave(s->conf.addresses, c->address);
    http_conn_uncount(c);
    counter_add(&s->stats->closed, 1);

    while ((req = STAILQ_FIRST(&c->queue))) {
        STAILQ_REMOVE_HEAD(&c->queue, link);
        req->conn = NULL;
        if (req->state == REQ_ANSWERED) {
            http_server_discard(s, req);
        } else if (req->blocked) {
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

    free(c->client_names);
    free(c);
    s->n_conns--;
    http_server_finish(s);
}
