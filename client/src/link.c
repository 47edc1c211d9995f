// link.c: a connection on uv_poll. libuv's own streams write without MSG_NOSIGNAL, so a program
// that does not handle SIGPIPE would be killed when the server closes a connection.
#include "link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "base/mem.h"
#include "fail.h"
#include "tls.h"

enum { READ_BYTES = 64 << 10, READS_PER_TURN = 16 };

enum link_state {
    LINK_LOOKING,
    LINK_CONNECTING,
    LINK_GREETING,
    LINK_READY,
    LINK_BUSY,
    LINK_CLOSED
};

// A socket and its handle live until the loop has closed them, which is after the attempt.
struct wire {
    uv_poll_t poll;
    int fd;
    struct link *link; // NULL: the link is closed
};

struct link {
    struct link_conf conf;
    struct link_slot slot;
    enum link_state state;
    unsigned n_pending; // lookup and handles that still refer to the link

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
    link_done_cb done;
    void *owner;
};

// Steps of a link, in order.
static void look_up(struct link *l);
static void on_found(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found);
static void connect_next(struct link *l, int why);
static void on_link_socket(uv_poll_t *poll, int status, int events);
static void greet(struct link *l);
static void become_ready(struct link *l);
static void put_request(struct link *l);
static void link_flush(struct link *l);
static void read_some(struct link *l);
static void take_plain(struct link *l, const char *bytes, size_t n);
static void take_end(struct link *l, bool clean);
static void link_finish(struct link *l);
static void link_fail(struct link *l, const struct queen_error *err);
static void drop_wire(struct link *l);
static void let_go(struct link *l);

struct link_slot *link_slot(struct link *l) { return &l->slot; }

static void on_impatient(uv_timer_t *timer)
{
    struct link *l = timer->data;
    struct queen_error err;

    if (l->lookup_error != 0)
        fail_set(&err, QUEEN_E_UNREACHABLE, "%s: %s", l->conf.address->host,
                 uv_strerror(l->lookup_error));
    else
        fail_set(&err, QUEEN_E_TIMEOUT, "%s: no connection within %u ms",
                 l->conf.address->authority, l->conf.connect_timeout_ms);
    link_fail(l, &err);
}

struct link *link_open(const struct link_conf *conf)
{
    struct link *l = mem_new(struct link);

    l->conf = *conf;
    l->slot.link = l;
    l->answer = answer_new(conf->max_response_bytes);
    uv_timer_init(conf->loop, &l->patience);
    l->patience.data = l;
    l->n_pending = 1;
    uv_update_time(conf->loop); // after a long callback the loop's time is stale
    uv_timer_start(&l->patience, on_impatient, conf->connect_timeout_ms, 0);
    look_up(l);
    return l;
}

static void look_up(struct link *l)
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
    struct link *l = lookup->data;
    struct queen_error err;

    l->n_pending--;
    l->found = l->next = found;
    if (l->state == LINK_CLOSED) {
        let_go(l);
    } else if (status != 0) {
        fail_set(&err, QUEEN_E_UNREACHABLE, "%s: %s", l->conf.address->host,
                 uv_strerror(status));
        link_fail(l, &err);
    } else {
        connect_next(l, UV_EADDRNOTAVAIL);
    }
}

static struct wire *wire_open(struct link *l, const struct addrinfo *a, int *why)
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
    w->link = l;
    return w;
}

// A name may have several addresses: use the first that accepts a connection.
static void connect_next(struct link *l, int why)
{
    struct queen_error err;

    l->state = LINK_CONNECTING;
    while (l->next) {
        const struct addrinfo *a = l->next;
        l->next = a->ai_next;
        l->wire = wire_open(l, a, &why);
        if (l->wire) {
            l->n_pending++;
            uv_poll_start(&l->wire->poll, UV_WRITABLE, on_link_socket);
            return;
        }
    }
    fail_set(&err, QUEEN_E_UNREACHABLE, "%s: %s", l->conf.address->authority, uv_strerror(why));
    link_fail(l, &err);
}

static void link_watch(struct link *l)
{
    int events = UV_READABLE | (l->out_done < l->out.len ? UV_WRITABLE : 0);

    uv_poll_start(&l->wire->poll, events, on_link_socket);
}

// libuv only reports EBADF; the socket has the actual error.
static void on_connected(struct link *l, int status)
{
    int error = 0;
    socklen_t len = sizeof error;

    if (getsockopt(l->wire->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error != 0)
        status = -error;
    if (status != 0) {
        drop_wire(l);
        connect_next(l, status);
    } else if (l->conf.address->tls) {
        l->state = LINK_GREETING;
        l->tls = tls_new(l->conf.tls, l->conf.address->host, l->conf.insecure);
        greet(l);
    } else {
        become_ready(l);
    }
}

static void on_link_socket(uv_poll_t *poll, int status, int events)
{
    struct wire *w = poll->data;
    struct link *l = w->link;

    if (!l)
        return;
    if (l->state == LINK_CONNECTING) {
        on_connected(l, status);
        return;
    }
    if (events & UV_WRITABLE)
        link_flush(l);
    // Closed by the peer, or an error that recv() will report.
    if (w->link && (events & UV_READABLE || status != 0))
        read_some(l);
}

static void greet(struct link *l)
{
    struct queen_error err;
    enum tls_result r = TLS_FAILED;

    if (l->tls)
        r = tls_handshake(l->tls, &err);
    else
        fail_set(&err, QUEEN_E_TLS, "%s is no host that a certificate can be for",
                 l->conf.address->host);
    if (r == TLS_FAILED) {
        link_fail(l, &err);
        return;
    }
    tls_take(l->tls, &l->out);
    if (r == TLS_DONE)
        become_ready(l);
    else
        link_flush(l);
}

static void become_ready(struct link *l)
{
    uv_timer_stop(&l->patience);
    uv_freeaddrinfo(l->found);
    l->found = l->next = NULL;
    l->state = LINK_READY;
    if (l->has_request)
        put_request(l);
    else
        link_flush(l);
}

void link_send(struct link *l, struct buf *bytes, bool to_head, link_done_cb done, void *owner)
{
    buf_free(&l->request);
    l->request = *bytes;
    *bytes = (struct buf){0};
    l->has_request = true;
    l->sent = false;
    l->to_head = to_head;
    l->done = done;
    l->owner = owner;
    if (l->state == LINK_READY)
        put_request(l);
}

static void put_request(struct link *l)
{
    l->state = LINK_BUSY;
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
    link_flush(l);
}

// read_some() reports failures: a response may be in the socket although the server does not
// read any more. Never calls back, so link_send() does not either.
static void link_flush(struct link *l)
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
        l->sent = l->sent || l->state == LINK_BUSY;
        l->out_done += (size_t)n;
    }
    if (l->out_done == l->out.len) {
        buf_reset(&l->out);
        l->out_done = 0;
    }
    link_watch(l);
}

static void read_some(struct link *l)
{
    struct wire *w = l->wire;
    char bytes[READ_BYTES] UNINITIALIZED;

    for (int i = 0; i < READS_PER_TURN && w->link; i++) {
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
        if (!l->tls) {
            take_plain(l, bytes, (size_t)n);
            continue;
        }
        tls_feed(l->tls, bytes, (size_t)n);
        if (l->state == LINK_GREETING)
            greet(l);
        ssize_t got = 0;
        while (w->link && l->state != LINK_GREETING &&
               (got = tls_read(l->tls, bytes, sizeof bytes)) > 0)
            take_plain(l, bytes, (size_t)got);
        if (w->link && got < 0) {
            take_end(l, tls_was_closed(l->tls));
        } else if (w->link) {
            tls_take(l->tls, &l->out);
            link_flush(l);
        }
    }
}

static void take_plain(struct link *l, const char *bytes, size_t n)
{
    struct queen_error err;

    if (l->state != LINK_BUSY) { // unsolicited bytes
        link_close(l);
        return;
    }
    switch (answer_feed(l->answer, bytes, n)) {
    case ANSWER_MORE:
        break;
    case ANSWER_DONE:
        link_finish(l);
        break;
    case ANSWER_BAD:
        fail_set(&err, QUEEN_E_PROTOCOL, "%s: the answer is not HTTP",
                 l->conf.address->authority);
        link_fail(l, &err);
        break;
    case ANSWER_TOO_LARGE:
        fail_set(&err, QUEEN_E_MEMORY, "%s: the answer is larger than %zu bytes",
                 l->conf.address->authority, l->conf.max_response_bytes);
        link_fail(l, &err);
        break;
    }
}

// A response without a length is complete only if the server has closed the connection
// properly.
static void take_end(struct link *l, bool clean)
{
    struct queen_error err;

    if (l->state == LINK_BUSY && clean && answer_end(l->answer) == ANSWER_DONE) {
        link_finish(l);
        return;
    }
    fail_set(&err, QUEEN_E_UNREACHABLE, "%s: the connection was closed%s",
             l->conf.address->authority,
             l->state == LINK_BUSY && answer_has_begun(l->answer)
                 ? " in the middle of an answer"
                 : "");
    link_fail(l, &err);
}

static void link_finish(struct link *l)
{
    struct link_outcome o = {.sent = true, .response = answer_take(l->answer)};
    link_done_cb done = l->done;
    const struct queen_response *r = o.response;

    if (r)
        fail_of_status(&o.err, r->status, (span){r->body, r->body_len});
    else
        fail_set(&o.err, QUEEN_E_PROTOCOL, "%s: the answer cannot be unpacked",
                 l->conf.address->authority);
    l->done = NULL;
    l->state = LINK_READY;
    // If the response came before the whole request was sent, the server would take the rest
    // for the next request.
    o.open = answer_keeps_alive(l->answer) && l->out_done == l->out.len && !l->write_closed;
    if (!o.open)
        link_close(l);
    done(&o, l->owner);
}

static void link_fail(struct link *l, const struct queen_error *err)
{
    struct link_outcome o = {.sent = l->sent, .err = *err};
    link_done_cb done = l->done;

    l->done = NULL;
    link_close(l);
    if (done)
        done(&o, l->owner);
}

bool link_is_ready(struct link *l)
{
    char byte;

    if (l->state != LINK_READY)
        return false;
    ssize_t n = recv(l->wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0 || !l->tls)
        return n < 0 && errno == EAGAIN;
    read_some(l); // session tickets, which are fine, or the end, which closes the link
    return l->state == LINK_READY;
}

bool link_hang_up(struct link *l)
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

static void drop_wire(struct link *l)
{
    if (!l->wire)
        return;
    l->wire->link = NULL;
    uv_close((uv_handle_t *)&l->wire->poll, on_wire_closed);
    l->wire = NULL;
    l->n_pending--;
}

static void on_link_timer_closed(uv_handle_t *handle)
{
    struct link *l = handle->data;

    l->n_pending--;
    let_go(l);
}

void link_close(struct link *l)
{
    if (l->state == LINK_CLOSED)
        return;
    if (l->state == LINK_LOOKING)
        uv_cancel((uv_req_t *)&l->lookup);
    l->state = LINK_CLOSED;
    drop_wire(l);
    uv_close((uv_handle_t *)&l->patience, on_link_timer_closed);
    l->conf.gone(l, l->conf.ctx);
}

static void let_go(struct link *l)
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
