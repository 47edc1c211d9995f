// server_conn.c: a connection on uv_poll. libuv's own streams write without MSG_NOSIGNAL, so a
// program that does not handle SIGPIPE would be killed when the server closes a connection.
#include "server_conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "base/mem.h"
#include "fail.h"
#include "tls.h"

enum { READ_BYTES = 64 << 10, READS_PER_TURN = 16 };

enum server_conn_state {
    CONN_LOOKING,
    CONN_CONNECTING,
    CONN_GREETING,
    CONN_READY,
    CONN_BUSY,
    CONN_CLOSED
};

// A socket and its handle live until the loop has closed them, which is after the attempt.
struct wire {
    uv_poll_t poll;
    int fd;
    struct server_conn *conn; // NULL: the connection is closed
};

struct server_conn {
    struct server_conn_conf conf;
    struct conn_entry entry;
    enum server_conn_state state;
    unsigned n_pending; // lookup and handles that still refer to the connection

    uv_getaddrinfo_t lookup;
    int lookup_error;              // of a lookup that could not be started
    struct addrinfo *found, *next; // addresses, and the one to try next
    uv_timer_t patience;           // limit until it is ready
    struct wire *wire;
    struct tls *tls;
    struct answer *answer;

    struct buf request; // unencrypted, until it is written
    struct buf out;     // bytes for the socket
    size_t out_done;
    bool has_request, sent, to_head;
    bool write_closed; // by us, or because the server does not read any more
    server_conn_done_cb done;
    void *owner;
    char first[5]; // bytes from the server, to recognise the wrong protocol
    size_t n_first;
};

// Steps of a connection, in order.
static void look_up(struct server_conn *l);
static void on_found(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found);
static void connect_next(struct server_conn *l, int why);
static void on_conn_socket(uv_poll_t *poll, int status, int events);
static void continue_handshake(struct server_conn *l);
static void become_ready(struct server_conn *l);
static void put_request(struct server_conn *l);
static void server_conn_flush(struct server_conn *l);
static void read_some(struct server_conn *l);
static void take_plain(struct server_conn *l, const char *bytes, size_t n);
static void take_end(struct server_conn *l, bool clean);
static void server_conn_finish(struct server_conn *l);
static void server_conn_fail(struct server_conn *l, const struct queen_error *err);
static void drop_wire(struct server_conn *l);
static void let_go(struct server_conn *l);

struct conn_entry *conn_entry(struct server_conn *l) { return &l->entry; }

static void on_impatient(uv_timer_t *timer)
{
    struct server_conn *l = timer->data;
    struct queen_error err;

    if (l->lookup_error != 0)
        fail_set(&err, QUEEN_E_UNREACHABLE, "%s: %s", l->conf.address->host,
                 uv_strerror(l->lookup_error));
    else
        fail_set(&err, QUEEN_E_TIMEOUT, "%s: no connection within %u ms",
                 l->conf.address->authority, l->conf.connect_timeout_ms);
    server_conn_fail(l, &err);
}

struct server_conn *server_conn_open(const struct server_conn_conf *conf)
{
    struct server_conn *l = mem_new(struct server_conn);

    l->conf = *conf;
    l->entry.conn = l;
    l->answer = answer_new(conf->max_response_bytes);
    uv_timer_init(conf->loop, &l->patience);
    l->patience.data = l;
    l->n_pending = 1;
    uv_update_time(conf->loop); // after a long callback the loop's time is stale
    uv_timer_start(&l->patience, on_impatient, conf->connect_timeout_ms, 0);
    look_up(l);
    return l;
}

static void look_up(struct server_conn *l)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    const struct address *a = l->conf.address;

    l->lookup.data = l;
    l->lookup_error =
        uv_getaddrinfo(l->conf.loop, &l->lookup, on_found, a->host, a->port, &hints);
    if (l->lookup_error == 0)
        l->n_pending++;
    else // reported from the loop, like any other failure
        uv_timer_start(&l->patience, on_impatient, 0, 0);
}

static void on_found(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
    struct server_conn *l = lookup->data;
    struct queen_error err;

    l->n_pending--;
    l->found = l->next = found;
    if (l->state == CONN_CLOSED) {
        let_go(l);
    } else if (status != 0) {
        fail_set(&err, QUEEN_E_UNREACHABLE, "%s: %s", l->conf.address->host,
                 uv_strerror(status));
        server_conn_fail(l, &err);
    } else {
        connect_next(l, UV_EADDRNOTAVAIL);
    }
}

static struct wire *wire_open(struct server_conn *l, const struct addrinfo *a, int *why)
{
    int one = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        *why = -errno;
        return NULL;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
                     sizeof one); // failure costs only speed
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) {
        *why = -errno;
        close(fd);
        return NULL;
    }
    struct wire *w = mem_new(struct wire);
    *why = uv_poll_init(l->conf.loop, &w->poll, fd);
    if (*why != 0) {
        close(fd);
        free(w);
        return NULL;
    }
    w->poll.data = w;
    w->fd = fd;
    w->conn = l;
    return w;
}

// A name may have several addresses: use the first that accepts a connection.
static void connect_next(struct server_conn *l, int why)
{
    struct queen_error err;

    l->state = CONN_CONNECTING;
    while (l->next) {
        const struct addrinfo *a = l->next;
        l->next = a->ai_next;
        l->wire = wire_open(l, a, &why);
        if (l->wire) {
            l->n_pending++;
            uv_poll_start(&l->wire->poll, UV_WRITABLE, on_conn_socket);
            return;
        }
    }
    fail_set(&err, QUEEN_E_UNREACHABLE, "%s: %s", l->conf.address->authority, uv_strerror(why));
    server_conn_fail(l, &err);
}

static void server_conn_watch(struct server_conn *l)
{
    int events = UV_READABLE | (l->out_done < l->out.len ? UV_WRITABLE : 0);

    uv_poll_start(&l->wire->poll, events, on_conn_socket);
}

// libuv only reports EBADF; the socket has the actual error.
static void on_connected(struct server_conn *l, int status)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(l->wire->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error != 0)
        status = -error;
    if (status != 0) {
        drop_wire(l);
        connect_next(l, status);
    } else if (l->conf.address->tls) {
        l->state = CONN_GREETING;
        l->tls = tls_new(l->conf.tls, l->conf.address->host, l->conf.insecure);
        continue_handshake(l);
    } else {
        become_ready(l);
    }
}

static void on_conn_socket(uv_poll_t *poll, int status, int events)
{
    struct wire *w = poll->data;
    struct server_conn *l = w->conn;

    if (!l)
        return;
    if (l->state == CONN_CONNECTING) {
        on_connected(l, status);
        return;
    }
    if (events & UV_WRITABLE)
        server_conn_flush(l);
    // Closed by the peer, or an error that recv() will report.
    if (w->conn && (events & UV_READABLE || status != 0))
        read_some(l);
}

// The first bytes of the connection.
static void note_first(struct server_conn *l, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && l->n_first < sizeof l->first; i++)
        l->first[l->n_first++] = bytes[i];
}

static bool is_plain_http(const struct server_conn *l)
{
    return l->n_first == sizeof l->first && memcmp(l->first, "HTTP/", sizeof l->first) == 0;
}

// A TLS record: an alert or a handshake message, of any version.
static bool is_tls(const struct server_conn *l)
{
    return l->n_first >= 2 && (l->first[0] == 0x15 || l->first[0] == 0x16) && l->first[1] == 3;
}

static void continue_handshake(struct server_conn *l)
{
    struct queen_error err;
    enum tls_result r = TLS_FAILED;

    if (l->tls)
        r = tls_handshake(l->tls, &err);
    else
        fail_set(&err, QUEEN_E_TLS, "%s is no host that a certificate can be for",
                 l->conf.address->host);
    if (r == TLS_FAILED && is_plain_http(l))
        fail_set(&err, QUEEN_E_TLS, "%s speaks plain HTTP, not TLS; use http://",
                 l->conf.address->authority);
    if (r == TLS_FAILED) {
        server_conn_fail(l, &err);
        return;
    }
    tls_take(l->tls, &l->out);
    if (r == TLS_DONE)
        become_ready(l);
    else
        server_conn_flush(l);
}

static void become_ready(struct server_conn *l)
{
    uv_timer_stop(&l->patience);
    uv_freeaddrinfo(l->found);
    l->found = l->next = NULL;
    l->state = CONN_READY;
    if (l->has_request)
        put_request(l);
    else
        server_conn_flush(l);
}

void server_conn_send(struct server_conn *l, struct buf *bytes, bool to_head,
                      server_conn_done_cb done, void *owner)
{
    buf_free(&l->request);
    l->request = *bytes;
    *bytes = (struct buf){0};
    l->has_request = true;
    l->sent = false;
    l->to_head = to_head;
    l->done = done;
    l->owner = owner;
    if (l->state == CONN_READY)
        put_request(l);
}

static void put_request(struct server_conn *l)
{
    l->state = CONN_BUSY;
    answer_start(l->answer, l->to_head);
    if (l->tls) {
        // A failure here is also reported when reading.
        (void)tls_write(l->tls, l->request.ptr, l->request.len);
        tls_take(l->tls, &l->out);
        buf_free(&l->request);
    } else {
        buf_free(&l->out);
        l->out = l->request;
        l->request = (struct buf){0};
        l->out_done = 0;
    }
    l->has_request = false;
    server_conn_flush(l);
}

// read_some() reports failures: a response may be in the socket although the server does not
// read any more. Never calls back, so server_conn_send() does not either.
static void server_conn_flush(struct server_conn *l)
{
    while (l->out_done < l->out.len) {
        ssize_t n =
            send(l->wire->fd, l->out.ptr + l->out_done, l->out.len - l->out_done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (errno != EAGAIN) {
                l->out_done = l->out.len;
                l->write_closed = true;
            }
            break;
        }
        l->sent = l->sent || l->state == CONN_BUSY;
        l->out_done += (size_t)n;
    }
    if (l->out_done == l->out.len) {
        buf_reset(&l->out);
        l->out_done = 0;
    }
    server_conn_watch(l);
}

static void read_some(struct server_conn *l)
{
    struct wire *w = l->wire;
    char bytes[READ_BYTES] UNINITIALIZED;

    for (int i = 0; i < READS_PER_TURN && w->conn; i++) {
        ssize_t n = recv(w->fd, bytes, sizeof bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            // TLS has its own end message; without it the data may have been truncated.
            take_end(l, n == 0 && !l->tls);
            return;
        }
        if (l->n_first < sizeof l->first)
            note_first(l, bytes, (size_t)n);
        if (!l->tls) {
            take_plain(l, bytes, (size_t)n);
            continue;
        }
        tls_feed(l->tls, bytes, (size_t)n);
        if (l->state == CONN_GREETING)
            continue_handshake(l);
        ssize_t got = 0;
        while (w->conn && l->state != CONN_GREETING &&
               (got = tls_read(l->tls, bytes, sizeof bytes)) > 0)
            take_plain(l, bytes, (size_t)got);
        if (w->conn && got < 0) {
            take_end(l, tls_was_closed(l->tls));
        } else if (w->conn) {
            tls_take(l->tls, &l->out);
            server_conn_flush(l);
        }
    }
}

static void take_plain(struct server_conn *l, const char *bytes, size_t n)
{
    struct queen_error err;

    if (l->state != CONN_BUSY) { // unsolicited bytes
        server_conn_close(l);
        return;
    }
    switch (answer_feed(l->answer, bytes, n)) {
    case ANSWER_MORE:
        break;
    case ANSWER_DONE:
        server_conn_finish(l);
        break;
    case ANSWER_BAD:
        if (!l->tls && is_tls(l))
            fail_set(&err, QUEEN_E_TLS, "%s speaks TLS, not plain HTTP; use https://",
                     l->conf.address->authority);
        else
            fail_set(&err, QUEEN_E_PROTOCOL, "%s: the answer is not HTTP",
                     l->conf.address->authority);
        server_conn_fail(l, &err);
        break;
    case ANSWER_TOO_LARGE:
        fail_set(&err, QUEEN_E_MEMORY, "%s: the answer is larger than %zu bytes",
                 l->conf.address->authority, l->conf.max_response_bytes);
        server_conn_fail(l, &err);
        break;
    }
}

// A response without a length is complete only if the server has closed the connection
// properly.
static void take_end(struct server_conn *l, bool clean)
{
    struct queen_error err;

    if (l->state == CONN_BUSY && clean && answer_end(l->answer) == ANSWER_DONE) {
        server_conn_finish(l);
        return;
    }
    fail_set(&err, QUEEN_E_UNREACHABLE, "%s: the connection was closed%s",
             l->conf.address->authority,
             l->state == CONN_BUSY && answer_has_begun(l->answer)
                 ? " in the middle of an answer"
                 : "");
    server_conn_fail(l, &err);
}

static void server_conn_finish(struct server_conn *l)
{
    struct server_conn_outcome o = {.sent = true, .response = answer_take(l->answer)};
    server_conn_done_cb done = l->done;
    const struct queen_response *r = o.response;

    if (r)
        fail_of_status(&o.err, r->status, (span){r->body, r->body_len});
    else
        fail_set(&o.err, QUEEN_E_PROTOCOL, "%s: the answer cannot be unpacked",
                 l->conf.address->authority);
    l->done = NULL;
    l->state = CONN_READY;
    // If the response came before the whole request was sent, the server would take the rest
    // for the next request.
    o.open = answer_keeps_alive(l->answer) && l->out_done == l->out.len && !l->write_closed;
    if (!o.open)
        server_conn_close(l);
    done(&o, l->owner);
}

static void server_conn_fail(struct server_conn *l, const struct queen_error *err)
{
    struct server_conn_outcome o = {.sent = l->sent, .err = *err};
    server_conn_done_cb done = l->done;

    l->done = NULL;
    server_conn_close(l);
    if (done)
        done(&o, l->owner);
}

bool server_conn_is_ready(struct server_conn *l)
{
    char byte;

    if (l->state != CONN_READY)
        return false;
    ssize_t n = recv(l->wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    bool is_quiet = n < 0 && errno == EAGAIN;
    if (is_quiet && l->tls) // what was read with the last response is not in the socket
        return tls_read(l->tls, &byte, 1) == 0;
    if (n <= 0 || !l->tls)
        return is_quiet;
    read_some(l); // session tickets, which are fine, or the end, which closes the connection
    return l->state == CONN_READY;
}

bool server_conn_hang_up(struct server_conn *l)
{
    if (!l->sent)
        return false;
    (void)shutdown(l->wire->fd, SHUT_WR); // a broken connection reports its failure elsewhere
    l->write_closed = true;
    return true;
}

static void on_wire_closed(uv_handle_t *handle)
{
    struct wire *w = handle->data;

    close(w->fd);
    free(w);
}

static void drop_wire(struct server_conn *l)
{
    if (!l->wire)
        return;
    l->wire->conn = NULL;
    uv_close((uv_handle_t *)&l->wire->poll, on_wire_closed);
    l->wire = NULL;
    l->n_pending--;
}

static void on_conn_timer_closed(uv_handle_t *handle)
{
    struct server_conn *l = handle->data;

    l->n_pending--;
    let_go(l);
}

void server_conn_close(struct server_conn *l)
{
    if (l->state == CONN_CLOSED)
        return;
    if (l->state == CONN_LOOKING)
        uv_cancel((uv_req_t *)&l->lookup);
    l->state = CONN_CLOSED;
    drop_wire(l);
    uv_close((uv_handle_t *)&l->patience, on_conn_timer_closed);
    l->conf.gone(l, l->conf.ctx);
}

static void let_go(struct server_conn *l)
{
    if (l->n_pending > 0)
        return;
    uv_freeaddrinfo(l->found);
    tls_free(l->tls);
    answer_free(l->answer);
    buf_free(&l->request);
    buf_free(&l->out);
    l->conf.freed(l, l->conf.ctx);
    free(l);
}
