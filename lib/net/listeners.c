// listeners.c: opens the sockets of a server, one listener each.
#include "net/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "net/inherited.h"

// The callbacks of a listener get its owner's list; plain and TLS need different functions.
static void accepted_plain(void *ctx, int fd)
{
    const struct listeners *l = ctx;

    l->conf.accepted(l->conf.ctx, fd, false);
}

static void accepted_tls(void *ctx, int fd)
{
    const struct listeners *l = ctx;

    l->conf.accepted(l->conf.ctx, fd, true);
}

static bool may_admit(void *ctx)
{
    const struct listeners *l = ctx;

    return !l->conf.admit || l->conf.admit(l->conf.ctx);
}

static int open_one(struct listeners *l, uv_loop_t *loop, const char *host, unsigned port,
                    bool tls, struct fault *f)
{
    struct listener *one;
    int rc =
        listener_open(&one, loop,
                      &(struct listener_conf){.host = host,
                                              .port = port,
                                              .ctx = l,
                                              .admit = may_admit,
                                              .accepted = tls ? accepted_tls : accepted_plain},
                      f);
    if (rc != 0)
        return rc;
    if (tls)
        l->tls[l->n_tls++] = one;
    else
        l->plain[l->n_plain++] = one;
    return 0;
}

static bool has_no_ipv6(int rc)
{
    return rc == UV_EADDRNOTAVAIL || rc == UV_EAFNOSUPPORT || rc == UV_EPROTONOSUPPORT;
}

// All addresses of one port.
static int open_port(struct listeners *l, uv_loop_t *loop, unsigned port, bool tls,
                     struct fault *f)
{
    if (l->conf.host[0] != '\0')
        return open_one(l, loop, l->conf.host, port, tls, f);
    int rc = open_one(l, loop, "127.0.0.1", port, tls, f);
    if (rc != 0)
        return rc;
    port = listener_port(tls ? l->tls[0] : l->plain[0]);
    rc = open_one(l, loop, "::1", port, tls, f);
    return has_no_ipv6(rc) ? 0 : rc;
}

int listeners_open(struct listeners *l, uv_loop_t *loop, const struct listeners_conf *conf,
                   struct fault *f)
{
    *l = (struct listeners){.conf = *conf};
    int rc = open_port(l, loop, conf->port, conf->tls, f);
    if (rc == 0 && conf->tls_port > 0)
        rc = open_port(l, loop, conf->tls_port, true, f);
    if (rc == 0)
        rc = inherited_check(f);
    if (rc != 0)
        listeners_close(l);
    return rc;
}

void listeners_close(struct listeners *l)
{
    while (l->n_plain > 0)
        listener_close(l->plain[--l->n_plain], NULL, NULL);
    while (l->n_tls > 0)
        listener_close(l->tls[--l->n_tls], NULL, NULL);
}

unsigned listeners_port(const struct listeners *l)
{
    return listener_port(l->n_plain > 0 ? l->plain[0] : l->tls[0]);
}

static void put_url(const struct listener *one, bool tls, struct buf *out)
{
    buf_printf(out, "%s%s://", out->len > 0 ? " and " : "", tls ? "https" : "http");
    listener_put_address(one, out);
}

void listeners_put_urls(const struct listeners *l, struct buf *out)
{
    struct buf all = {0};

    for (unsigned i = 0; i < l->n_plain; i++)
        put_url(l->plain[i], false, &all);
    for (unsigned i = 0; i < l->n_tls; i++)
        put_url(l->tls[i], true, &all);
    buf_put(out, buf_span(&all));
    buf_free(&all);
}

void listeners_put_local_url(const struct listeners *l, struct buf *out)
{
    const struct listener *one = l->n_plain > 0 ? l->plain[0] : l->tls[0];
    const char *scheme = l->n_plain > 0 ? "http" : "https";

    if (listener_is_everywhere(one)) {
        buf_printf(out, "%s://localhost:%u", scheme, listener_port(one));
        return;
    }
    buf_printf(out, "%s://", scheme);
    listener_put_address(one, out);
}

bool listeners_is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;

    if (host[0] == '\0' || strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
        return true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}
