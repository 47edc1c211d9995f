// fake_server.c: poll() over a few connections; enough HTTP for one client.
#include "fake_server.h"

#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CONNS = 32, ROOM = 70000 };

struct conn {
    int fd;
    size_t len;
    unsigned number;
    bool deaf;
    char bytes[ROOM];
};

struct fake_server {
    fake_script script;
    void *ctx;
    int listener, wake[2];
    char url[64];
    pthread_t thread;
    _Atomic unsigned n_requests;
    unsigned n_conns_ever;
    struct conn *conns[MAX_CONNS];
    struct fake_request request;
};

static int open_port(unsigned *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0);
    assert(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void drop(struct fake_server *s, unsigned i)
{
    close(s->conns[i]->fd);
    free(s->conns[i]);
    s->conns[i] = NULL;
}

// Bytes of the request at the front, or 0: it is not complete.
static size_t read_request(struct conn *c, struct fake_request *r)
{
    const char *end = memmem(c->bytes, c->len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t head = (size_t)(end - c->bytes) + 4, body = 0;
    assert(head < sizeof r->head);
    memcpy(r->head, c->bytes, head);
    r->head[head] = '\0';
    const char *length = strstr(r->head, "Content-Length: ");
    if (length)
        body = strtoul(length + 16, NULL, 10);
    if (c->len < head + body)
        return 0;
    assert(sscanf(r->head, "%7s %511s", r->method, r->target) == 2);
    memcpy(r->body, c->bytes + head, body);
    r->body[body] = '\0';
    r->connection = c->number;
    return head + body;
}

// Linux lets the client read what it has before it sees the reset.
static bool send_raw(struct conn *c, const struct fake_answer *a)
{
    struct linger at_once = {.l_onoff = 1};

    (void)!send(c->fd, a->raw, strlen(a->raw), MSG_NOSIGNAL);
    if (a->reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return !a->close && !a->reset;
}

static bool answer(struct fake_server *s, struct conn *c)
{
    char head[256];

    s->request.number = s->n_requests++;
    struct fake_answer a = s->script(&s->request, s->ctx);
    c->deaf = a.deaf;
    if (a.status == FAKE_SILENCE)
        return true;
    if (a.raw)
        return send_raw(c, &a);
    if (a.status == 0)
        return false;
    size_t len = a.body ? strlen(a.body) : 0;
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n",
                     a.status, a.close ? "Connection: close\r\n" : "", len);
    if (a.status == 204)
        n = snprintf(head, sizeof head, "HTTP/1.1 204 X\r\n\r\n");
    // The client may be gone: that is its right.
    (void)!send(c->fd, head, (size_t)n, MSG_NOSIGNAL);
    if (len > 0)
        (void)!send(c->fd, a.body, len, MSG_NOSIGNAL);
    return !a.close;
}

static void serve(struct fake_server *s, unsigned i)
{
    struct conn *c = s->conns[i];
    ssize_t n = recv(c->fd, c->bytes + c->len, ROOM - c->len, 0);

    if (n <= 0) {
        drop(s, i);
        return;
    }
    c->len += (size_t)n;
    for (size_t used; (used = read_request(c, &s->request)) > 0;) {
        memmove(c->bytes, c->bytes + used, c->len - used);
        c->len -= used;
        if (!answer(s, c)) {
            drop(s, i);
            return;
        }
    }
}

static void accept_one(struct fake_server *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

    for (unsigned i = 0; i < MAX_CONNS; i++) {
        if (s->conns[i])
            continue;
        s->conns[i] = calloc(1, sizeof(struct conn));
        s->conns[i]->fd = fd;
        s->conns[i]->number = s->n_conns_ever++;
        return;
    }
    assert(false && "too many connections");
}

static void *run(void *arg)
{
    struct fake_server *s = arg;

    for (;;) {
        struct pollfd fds[MAX_CONNS + 2] = {{s->wake[0], POLLIN, 0}, {s->listener, POLLIN, 0}};
        for (unsigned i = 0; i < MAX_CONNS; i++)
            fds[i + 2] = (struct pollfd){
                s->conns[i] && !s->conns[i]->deaf ? s->conns[i]->fd : -1, POLLIN, 0};
        poll(fds, MAX_CONNS + 2, -1);
        if (fds[0].revents)
            return NULL;
        for (unsigned i = 0; i < MAX_CONNS; i++)
            if (fds[i + 2].revents && s->conns[i])
                serve(s, i);
        if (fds[1].revents)
            accept_one(s);
    }
}

struct fake_server *fake_server_new(fake_script script, void *ctx)
{
    struct fake_server *s = calloc(1, sizeof *s);
    unsigned port;

    s->script = script;
    s->ctx = ctx;
    s->listener = open_port(&port);
    assert(listen(s->listener, 16) == 0);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", port);
    assert(pipe(s->wake) == 0);
    assert(pthread_create(&s->thread, NULL, run, s) == 0);
    return s;
}

const char *fake_server_url(const struct fake_server *s) { return s->url; }
unsigned fake_server_requests(const struct fake_server *s) { return s->n_requests; }

void fake_server_free(struct fake_server *s)
{
    assert(write(s->wake[1], "x", 1) == 1);
    pthread_join(s->thread, NULL);
    for (unsigned i = 0; i < MAX_CONNS; i++)
        if (s->conns[i])
            drop(s, i);
    close(s->listener);
    close(s->wake[0]);
    close(s->wake[1]);
    free(s);
}

const char *fake_server_nobody(void)
{
    static _Thread_local char url[64];
    unsigned port;

    // The socket stays, because another program could listen on a port that is free.
    (void)open_port(&port);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
    return url;
}
