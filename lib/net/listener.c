// listener.c: binds, listens, accepts in bursts, and copes with a shortage of descriptors.
#include "net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/inherited.h"

struct listener {
    struct listener_conf conf;
    uv_poll_t poll;
    uv_timer_t rest;
    unsigned n_handles;
    int fd;
    int reserve; // a spare descriptor, used to accept and close clients when no other is left
    unsigned port;
    struct sockaddr_storage bound;
    unsigned long n_refused;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// Steps of a listener, in order.
static int open_socket(const struct listener_conf *conf, int *fd, struct fault *f);
static int try_address(const struct addrinfo *a, int backlog, int *fd);
static void on_listener_ready(uv_poll_t *poll, int status, int events);
static void hand_over(struct listener *l, int fd);
static void turn_away(struct listener *l);
static void listener_pause(struct listener *l);
static void on_rested(uv_timer_t *timer);
static void on_listener_handle_closed(uv_handle_t *handle);

static int open_reserve(void) { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

// Finds out the address and port that the socket is bound to.
static void note_address(struct listener *l)
{
    struct sockaddr_storage *a = &l->bound;
    socklen_t len = sizeof *a;

    if (getsockname(l->fd, (struct sockaddr *)a, &len) != 0)
        return;
    l->port = a->ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)a)->sin6_port)
                                       : ntohs(((struct sockaddr_in *)a)->sin_port);
}

void listener_put_address(const struct listener *l, struct buf *out)
{
    char text[INET6_ADDRSTRLEN] = "?";
    bool six = l->bound.ss_family == AF_INET6;

    if (six)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&l->bound)->sin6_addr, text,
                  sizeof text);
    else
        inet_ntop(AF_INET, &((const struct sockaddr_in *)&l->bound)->sin_addr, text,
                  sizeof text);
    buf_printf(out, six ? "[%s]:%u" : "%s:%u", text, l->port);
}

bool listener_is_everywhere(const struct listener *l)
{
    if (l->bound.ss_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&l->bound)->sin6_addr);
    return ((const struct sockaddr_in *)&l->bound)->sin_addr.s_addr == htonl(INADDR_ANY);
}

int listener_open(struct listener **out, uv_loop_t *loop, const struct listener_conf *conf,
                  struct fault *f)
{
    int fd = -1;

    *out = NULL;
    int rc = open_socket(conf, &fd, f);
    if (rc != 0)
        return rc;

    struct listener *l = mem_new(struct listener);
    l->conf = *conf;
    l->fd = fd;
    rc = uv_poll_init(loop, &l->poll, fd);
    if (rc != 0) {
        close(fd);
        free(l);
        return fault_set(f, rc, "cannot poll the listening socket: %s", uv_strerror(rc));
    }
    uv_timer_init(loop, &l->rest);
    l->poll.data = l->rest.data = l;
    l->n_handles = 2;
    l->reserve = open_reserve();
    note_address(l);
    uv_poll_start(&l->poll, UV_READABLE, on_listener_ready);
    *out = l;
    return 0;
}

static int open_socket(const struct listener_conf *conf, int *fd, struct fault *f)
{
    const char *host = conf->host && conf->host[0] ? conf->host : "0.0.0.0";
    char plain[256], port[16];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;

    size_t len = strlen(host);
    if (host[0] == '[' && host[len - 1] == ']' && len - 2 < sizeof plain) {
        snprintf(plain, sizeof plain, "%.*s", (int)(len - 2), host + 1);
        host = plain;
    }
    snprintf(port, sizeof port, "%u", conf->port);
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    int bad = getaddrinfo(host, port, &hints, &list);
    if (bad != 0)
        return fault_set(f, QE_CONF, "cannot listen on %s: %s", host, gai_strerror(bad));

    int rc = UV_EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a && rc != 0; a = a->ai_next)
        rc = try_address(a, conf->backlog > 0 ? conf->backlog : 1024, fd);
    freeaddrinfo(list);
    if (rc == UV_EADDRINUSE)
        return fault_set(f, rc, "port %u on %s is already in use", conf->port, host);
    if (rc == UV_EACCES)
        return fault_set(f, rc, "no permission to listen on port %u", conf->port);
    if (rc != 0)
        return fault_set(f, rc, "cannot listen on %s port %u: %s", host, conf->port,
                         uv_strerror(rc));
    return 0;
}

static int try_address(const struct addrinfo *a, int backlog, int *out)
{
    int on = 1;
    int fd = inherited_take(a->ai_addr);

    if (fd >= 0) { // systemd has bound it
        *out = fd;
        return 0;
    }
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return uv_translate_sys_error(errno);
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, backlog) != 0) {
        int rc = uv_translate_sys_error(errno);
        close(fd);
        return rc;
    }
    *out = fd;
    return 0;
}

unsigned listener_port(const struct listener *l) { return l->port; }
unsigned long listener_refused(const struct listener *l) { return l->n_refused; }

static void on_listener_ready(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;

    (void)events;
    if (status < 0) {
        log_error("listener.poll_failed", "error=%s", uv_err_name(status));
        listener_pause(l);
        return;
    }
    for (int i = 0; i < LISTENER_BURST && !uv_is_closing((uv_handle_t *)poll); i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hand_over(l, fd);
            continue;
        }
        switch (errno) {
        case EAGAIN:
            return;
        case EMFILE:
        case ENFILE:
            turn_away(l);
            return;
        case ENOBUFS:
        case ENOMEM:
            log_warn("listener.accept_failed", "error=%s",
                     uv_err_name(uv_translate_sys_error(errno)));
            listener_pause(l);
            return;
        default: // an error of that client (ECONNABORTED and similar): accept the next one
            break;
        }
    }
}

static void hand_over(struct listener *l, int fd)
{
    int on = 1;

    if (l->conf.admit && !l->conf.admit(l->conf.ctx)) {
        l->n_refused++;
        close(fd);
        return;
    }
    // Answers are written in one piece; waiting for more would only delay them. If the socket
    // has been closed meanwhile, its first read reports it.
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    l->conf.accepted(l->conf.ctx, fd);
}

// No descriptor is left. A client that stays in the backlog would wait for ever and keep the
// socket readable, so accept it with the reserve, close it, and pause.
static void turn_away(struct listener *l)
{
    log_error("listener.accept_failed", "error=EMFILE hint=\"raise the limit of open files\"");
    if (l->reserve >= 0) {
        close(l->reserve);
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            l->n_refused++;
            close(fd);
        }
    }
    l->reserve = open_reserve();
    listener_pause(l);
}

static void listener_pause(struct listener *l)
{
    uv_poll_stop(&l->poll);
    uv_timer_start(&l->rest, on_rested, LISTENER_REST_MS, 0);
}

static void on_rested(uv_timer_t *timer)
{
    struct listener *l = timer->data;

    uv_poll_start(&l->poll, UV_READABLE, on_listener_ready);
}

void listener_close(struct listener *l, void (*closed)(void *ctx), void *ctx)
{
    l->closed = closed;
    l->closed_ctx = ctx;
    uv_close((uv_handle_t *)&l->poll, on_listener_handle_closed);
    uv_close((uv_handle_t *)&l->rest, on_listener_handle_closed);
    close(l->fd);
    if (l->reserve >= 0)
        close(l->reserve);
}

static void on_listener_handle_closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;

    if (--l->n_handles > 0)
        return;
    void (*closed)(void *) = l->closed;
    void *ctx = l->closed_ctx;
    free(l);
    if (closed)
        closed(ctx);
}
