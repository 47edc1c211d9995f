// output.c: sends the answers of a turn, in order, with one write per connection.
//
// Heads and small bodies are copied one after another into the loop's scratch buffer; large
// bodies are sent from where they are. Only bytes that the socket does not take are kept in
// chunks.
#include "http/http_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/mem.h"
#include "net/tls_server.h"

enum { MAX_IOV = 64 };
#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

// One gathered write (writev) under construction.
struct gather {
    struct iovec iov[MAX_IOV];
    struct http_req *body_of[MAX_IOV]; // NULL: the bytes are in the scratch buffer
    unsigned n_iov;
    size_t scratch_len;
    size_t total;
    struct http_req_queue sent;
};

// Steps of an answer, in order.
static bool send_unsent(struct http_conn *c);
static void gather_answers(struct http_conn *c, struct gather *g);
static bool output_put_answer(struct http_conn *c, struct gather *g, struct http_req *req);
static bool send_gathered(struct http_conn *c, struct gather *g);
static void keep_rest(struct http_conn *c, struct gather *g, size_t sent);
static void after_output(struct http_conn *c);

// Bytes written; 0 if the socket is full; -1 if the peer has disconnected.
static ssize_t write_iov(struct http_conn *c, struct iovec *iov, unsigned n)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n};
    ssize_t sent;

    if (c->tls) {
        sent = tls_stream_send(c->tls, iov, n);
        counter_add(&c->server->stats->bytes_out, sent > 0 ? (uint64_t)sent : 0);
        return sent;
    }
    do
        sent = n == 1 ? send(c->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL)
                      : sendmsg(c->fd, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    counter_add(&c->server->stats->bytes_out, (uint64_t)sent);
    return sent;
}

void http_conn_flush(struct http_conn *c)
{
    struct http_server *s = c->server;

    TAILQ_REMOVE(&s->dirty, c, dirty_link);
    s->n_dirty--;
    c->dirty = false;

    if (c->gone) {
        http_conn_close(c);
        return;
    }
    if (!STAILQ_EMPTY(&c->unsent) && !send_unsent(c))
        return;
    while (STAILQ_EMPTY(&c->unsent)) {
        struct gather g;
        gather_answers(c, &g);
        if (g.total == 0)
            break;
        if (!send_gathered(c, &g))
            return;
    }
    after_output(c);
}

static span chunk_rest(const struct http_chunk *chunk)
{
    span all = chunk->constant.ptr ? chunk->constant : buf_span(&chunk->data);

    return (span){all.ptr + chunk->sent, all.len - chunk->sent};
}

// An iovec for writing is not const, although it is only read.
static void *unconst(const char *bytes)
{
    union {
        const char *in;
        void *out;
    } u = {.in = bytes};

    return u.out;
}

// False: the connection is closed.
static bool send_unsent(struct http_conn *c)
{
    struct iovec iov[MAX_IOV];
    struct http_chunk *chunk;
    unsigned n = 0;

    STAILQ_FOREACH (chunk, &c->unsent, link) {
        if (n == MAX_IOV)
            break;
        span rest = chunk_rest(chunk);
        iov[n++] = (struct iovec){.iov_base = unconst(rest.ptr), .iov_len = rest.len};
    }
    ssize_t sent = write_iov(c, iov, n);
    if (sent < 0) {
        http_conn_close(c);
        return false;
    }
    c->out_bytes -= (size_t)sent;
    for (size_t left = (size_t)sent; left > 0;) {
        chunk = STAILQ_FIRST(&c->unsent);
        size_t rest = chunk_rest(chunk).len;
        if (left < rest) {
            chunk->sent += left;
            break;
        }
        left -= rest;
        STAILQ_REMOVE_HEAD(&c->unsent, link);
        buf_free(&chunk->data);
        free(chunk);
    }
    http_conn_settle(c, sent > 0);
    return true;
}

static void gather_answers(struct http_conn *c, struct gather *g)
{
    struct http_req *req;

    g->n_iov = 0;
    g->scratch_len = g->total = 0;
    STAILQ_INIT(&g->sent);
    while ((req = STAILQ_FIRST(&c->queue)) && req->state == REQ_ANSWERED)
        if (!output_put_answer(c, g, req))
            break;
}

static void put_scratch(struct http_conn *c, struct gather *g, const char *bytes, size_t len)
{
    char *at = c->server->scratch + g->scratch_len;

    if (bytes)
        memcpy(at, bytes, len); // otherwise already in place
    g->scratch_len += len;
    g->total += len;
    if (g->n_iov > 0 && !g->body_of[g->n_iov - 1]) {
        g->iov[g->n_iov - 1].iov_len += len; // merge adjacent pieces of the scratch buffer
        return;
    }
    g->body_of[g->n_iov] = NULL;
    g->iov[g->n_iov++] = (struct iovec){.iov_base = at, .iov_len = len};
}

// False: no room left in this write.
static bool output_put_answer(struct http_conn *c, struct gather *g, struct http_req *req)
{
    struct http_server *s = c->server;
    span text = http_answer_body(req);
    size_t body = req->msg.verb == MSG_HEAD ? 0 : text.len;
    bool is_small = body <= HTTP_SMALL_BODY;
    size_t need = HTTP_HEAD_RESERVE + req->extra.len + (is_small ? body : 0);

    if (g->n_iov + 2 > MAX_IOV || g->scratch_len + need > sizeof s->scratch)
        return false;

    bool is_last = c->n_queue == 1 && !c->in && !c->input;
    bool close = req->close || (is_last && (s->draining || c->eof));
    STAILQ_REMOVE_HEAD(&c->queue, link);
    c->n_queue--;
    c->out_bytes -= text.len;
    if (close)
        c->deaf = c->close_after = true;

    put_scratch(c, g, NULL, http_reply_head(req, close, s->scratch + g->scratch_len));
    if (body > 0 && is_small) {
        put_scratch(c, g, text.ptr, body);
    } else if (body > 0) {
        g->body_of[g->n_iov] = req;
        g->iov[g->n_iov++] = (struct iovec){.iov_base = unconst(text.ptr), .iov_len = body};
        g->total += body;
    }
    STAILQ_INSERT_TAIL(&g->sent, req, link);
    return true;
}

// False: the connection is closed.
static bool send_gathered(struct http_conn *c, struct gather *g)
{
    struct http_req *req;
    ssize_t sent = write_iov(c, g->iov, g->n_iov);

    if (sent >= 0 && (size_t)sent < g->total)
        keep_rest(c, g, (size_t)sent);
    while ((req = STAILQ_FIRST(&g->sent))) {
        STAILQ_REMOVE_HEAD(&g->sent, link);
        http_server_recycle(c->server, req);
    }
    if (sent < 0)
        http_conn_close(c);
    return sent >= 0;
}

// Large bodies change owner; pieces of the scratch buffer are copied.
static void keep_rest(struct http_conn *c, struct gather *g, size_t sent)
{
    c->out_bytes += g->total - sent;
    for (unsigned i = 0; i < g->n_iov; i++) {
        if (sent >= g->iov[i].iov_len) {
            sent -= g->iov[i].iov_len;
            continue;
        }
        struct http_chunk *chunk = mem_new(struct http_chunk);
        if (g->body_of[i]) {
            chunk->data = g->body_of[i]->answer;
            chunk->constant = g->body_of[i]->constant;
            g->body_of[i]->answer = (struct buf){0};
        } else {
            size_t len = g->iov[i].iov_len;
            chunk->data = (struct buf){.ptr = mem_realloc(NULL, len), .len = len, .cap = len};
            memcpy(chunk->data.ptr, g->iov[i].iov_base, len);
        }
        chunk->sent = sent;
        sent = 0;
        STAILQ_INSERT_TAIL(&c->unsent, chunk, link);
    }
}

// All finished answers have been sent or are kept in chunks.
static void after_output(struct http_conn *c)
{
    bool is_empty = STAILQ_EMPTY(&c->unsent) && c->n_queue == 0;

    if (is_empty && c->owe_continue) {
        struct iovec iov = {.iov_base = c->server->scratch, .iov_len = sizeof CONTINUE - 1};
        memcpy(c->server->scratch, CONTINUE, sizeof CONTINUE - 1);
        c->owe_continue = false;
        // If the socket is full, skip the line: the client sends its body after a while
        // anyway. A partial line, however, would corrupt the next answer, so the connection is
        // closed.
        ssize_t sent = write_iov(c, &iov, 1);
        if (sent < 0 || (sent == 0 && c->tls) ||
            (sent > 0 && (size_t)sent < sizeof CONTINUE - 1)) {
            http_conn_close(c);
            return;
        }
    }
    if (!is_empty || !c->close_after) {
        http_conn_settle(c, false);
        http_conn_resume(c);
        return;
    }
    // Closing with unread input would reset the connection, and the peer might lose the
    // answer. Stop sending, and discard input for a moment.
    if (c->tls)
        tls_stream_end(c->tls);
    if (!c->linger || shutdown(c->fd, SHUT_WR) != 0) {
        http_conn_close(c);
        return;
    }
    struct http_server *s = c->server;
    TAILQ_REMOVE(&s->place[c->place], c, place_link);
    c->place = PLACE_LINGERING;
    c->stamp_ms = uv_now(s->loop);
    TAILQ_INSERT_TAIL(&s->place[PLACE_LINGERING], c, place_link);
    http_conn_settle(c, false);
}

void http_output_drop(struct http_conn *c)
{
    struct http_chunk *chunk;

    while ((chunk = STAILQ_FIRST(&c->unsent))) {
        STAILQ_REMOVE_HEAD(&c->unsent, link);
        buf_free(&chunk->data);
        free(chunk);
    }
}
