// conn.c: an HTTP client connection: writes the request, reads head and body.
#include "bench/load/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/str.h"
#include "bench/load/tls.h"

enum { CONNECT_S = 5, READ_BYTES = 32 << 10 };

static int read_head(struct bench_conn *c);
static void read_header(struct bench_conn *c, span name, span value);
static int read_body(struct bench_conn *c, struct bench_reply *reply);
static int join_chunks(struct bench_conn *c);

const char *bench_addr_find(struct bench_addr *a, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;

    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return gai_strerror(rc);
    memcpy(&a->sa, found->ai_addr, found->ai_addrlen);
    a->len = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

// While the socket still blocks.
static bool secure(struct bench_conn *c, const struct bench_addr *a)
{
    struct timeval limit = {.tv_sec = CONNECT_S};

    if (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
        return false;
    c->tls = bench_tls_open(a->tls, c->fd, a->host);
    return c->tls != NULL;
}

int bench_conn_open(struct bench_conn *c, const struct bench_addr *a)
{
    struct timeval limit = {.tv_sec = CONNECT_S};
    int one = 1;

    c->fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return -errno;
    // The send timeout limits a blocking connect().
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
        connect(c->fd, (const struct sockaddr *)&a->sa, a->len) != 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        (a->tls && !secure(c, a)) || fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) {
        int rc = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
        bench_conn_close(c);
        return rc;
    }
    return 0;
}

void bench_conn_close(struct bench_conn *c)
{
    bench_tls_close(c->tls);
    c->tls = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->last = false;
    buf_reset(&c->in);
}

void bench_conn_deinit(struct bench_conn *c)
{
    bench_conn_close(c);
    buf_free(&c->out);
    buf_free(&c->in);
    buf_free(&c->joined);
}

int bench_conn_start(struct bench_conn *c)
{
    c->out_done = 0;
    c->head_len = c->body_len = 0;
    c->chunked = c->last = false;
    buf_reset(&c->in);
    return c->out.failed ? -ENOMEM : bench_conn_flush(c);
}

int bench_conn_flush(struct bench_conn *c)
{
    while (c->out_done < c->out.len) {
        const char *from = c->out.ptr + c->out_done;
        size_t left = c->out.len - c->out_done;
        ssize_t n =
            c->tls ? bench_tls_send(c->tls, from, left) : send(c->fd, from, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? BENCH_CONN_MORE : -errno;
        c->out_done += (size_t)n;
    }
    return BENCH_CONN_DONE;
}

int bench_conn_read(struct bench_conn *c, struct bench_reply *reply)
{
    for (;;) {
        // A large body is read in few calls once its length is known.
        size_t want =
            c->head_len + c->body_len > c->in.len ? c->head_len + c->body_len - c->in.len : 0;
        if (!buf_reserve(&c->in, want > READ_BYTES ? want : READ_BYTES))
            return -ENOMEM;
        size_t room = c->in.cap - c->in.len;
        char *to = c->in.ptr + c->in.len;
        ssize_t n = c->tls ? bench_tls_recv(c->tls, to, room) : recv(c->fd, to, room, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? BENCH_CONN_MORE : -errno;
        if (n == 0)
            return -ECONNRESET;
        c->in.len += (size_t)n;

        int rc = c->head_len == 0 ? read_head(c) : BENCH_CONN_DONE;
        if (rc == BENCH_CONN_DONE)
            rc = read_body(c, reply);
        // TLS gives one record at a time: only EAGAIN says that nothing is left.
        if (rc != BENCH_CONN_MORE || (!c->tls && (size_t)n < room))
            return rc;
    }
}

static int read_head(struct bench_conn *c)
{
    const char *end = memmem(c->in.ptr, c->in.len, "\r\n\r\n", 4);
    if (!end)
        return c->in.len > 64 << 10 ? -EPROTO : BENCH_CONN_MORE;

    span rest = {c->in.ptr, (size_t)(end - c->in.ptr)}, line;
    uint64_t status;
    if (rest.len < 12 || memcmp(rest.ptr, "HTTP/1.", 7) != 0 ||
        !str_parse_u64((span){rest.ptr + 9, 3}, &status))
        return -EPROTO;
    c->status = (int)status;
    c->last = rest.ptr[7] == '0';
    str_split(&rest, '\n', &line);
    while (str_split(&rest, '\n', &line)) {
        const char *colon = memchr(line.ptr, ':', line.len);
        if (!colon)
            return -EPROTO;
        size_t name_len = (size_t)(colon - line.ptr);
        span value = {colon + 1, line.len - name_len - 1};
        if (value.len > 0 && value.ptr[value.len - 1] == '\r')
            value.len--;
        read_header(c, (span){line.ptr, name_len}, str_trim(value));
    }
    c->head_len = (size_t)(end - c->in.ptr) + 4;
    return BENCH_CONN_DONE;
}

static void read_header(struct bench_conn *c, span name, span value)
{
    uint64_t length;

    if (name.len == 14 && str_eq_nocase(name, SPAN("content-length"))) {
        if (str_parse_u64(value, &length))
            c->body_len = (size_t)length;
    } else if (name.len == 17 && str_eq_nocase(name, SPAN("transfer-encoding"))) {
        c->chunked = str_eq_nocase(value, SPAN("chunked"));
    } else if (name.len == 10 && str_eq_nocase(name, SPAN("connection"))) {
        c->last = str_eq_nocase(value, SPAN("close"));
    }
}

static int read_body(struct bench_conn *c, struct bench_reply *reply)
{
    *reply = (struct bench_reply){.status = c->status};
    if (c->status == 204 || c->status == 304)
        return BENCH_CONN_DONE;
    if (c->chunked) {
        int rc = join_chunks(c);
        reply->body = buf_span(&c->joined);
        return rc;
    }
    if (c->in.len < c->head_len + c->body_len)
        return BENCH_CONN_MORE;
    reply->body = (span){c->in.ptr + c->head_len, c->body_len};
    return BENCH_CONN_DONE;
}

// Starts over whenever more arrives. No server of this contract chunks large answers, so the
// cost does not matter.
static int join_chunks(struct bench_conn *c)
{
    const char *p = c->in.ptr + c->head_len, *end = c->in.ptr + c->in.len;

    buf_reset(&c->joined);
    for (;;) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol)
            return BENCH_CONN_MORE;
        char *digits_end;
        unsigned long size = strtoul(p, &digits_end, 16);
        if (digits_end == p)
            return -EPROTO;
        p = eol + 1;
        if ((size_t)(end - p) < 2 || (size_t)(end - p) - 2 < size)
            return BENCH_CONN_MORE;
        buf_put_bytes(&c->joined, p, size);
        p += size + 2;
        if (size == 0)
            return c->joined.failed ? -ENOMEM : BENCH_CONN_DONE;
    }
}
