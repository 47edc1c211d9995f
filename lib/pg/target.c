// target.c: resolves the hosts of a connection string without blocking the loop.
#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attrs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pg/conninfo_int.h"
#include "pg/pooler_int.h"
#include "pg/target_int.h"

// Steps of a lookup, in order.
static void next(struct lookup *l, uv_loop_t *loop);
static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *list);
static void put_found(struct lookup *l, span host, const char *address, span port);
static void target_finish(struct lookup *l);

static bool is_name(span host)
{
    char text[INET6_ADDRSTRLEN + 1], bytes[sizeof(struct in6_addr)];

    if (host.len == 0 || host.ptr[0] == '/' || host.ptr[0] == '@')
        return false; // a Unix socket
    if (host.len >= sizeof text)
        return true;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    return inet_pton(AF_INET, text, bytes) != 1 && inet_pton(AF_INET6, text, bytes) != 1;
}

// For a pooler: everything but the options, and those as SQL.
static void target_take_options(struct target *t, const PQconninfoOption *parsed)
{
    struct buf plain = {0}, settings = {0};
    const char *options = NULL;

    for (const PQconninfoOption *o = parsed; o != NULL && o->keyword != NULL; o++) {
        if (strcmp(o->keyword, "options") == 0)
            options = o->val;
        else if (o->val != NULL && o->val[0] == '\0') // password='' keeps libpq from others
            buf_printf(&plain, " %s=''", o->keyword);
        else
            conninfo_put_text(&plain, o->keyword, o->val);
    }
    buf_putc(&plain, '\0');
    if (plain.failed)
        BUG("no memory for a connection string");
    t->plain = plain.ptr;
    pooler_put_settings(&settings, options, &t->isolation);
    t->settings = settings.ptr;
}

void target_init(struct target *t, const char *conninfo, enum pg_pooler mode)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    bool has_addresses = false;

    *t = (struct target){.conninfo = mem_strndup(conninfo, strlen(conninfo)),
                         .mode = mode,
                         .pooled = mode == PG_POOLER_TRANSACTION};
    target_take_options(t, options);
    // A string that cannot be parsed has no hosts; libpq reports the error when it is dialled.
    for (PQconninfoOption *o = options; o != NULL && o->keyword != NULL; o++) {
        if (o->val == NULL)
            continue;
        if (strcmp(o->keyword, "host") == 0)
            t->hosts = mem_strndup(o->val, strlen(o->val));
        else if (strcmp(o->keyword, "port") == 0)
            t->ports = mem_strndup(o->val, strlen(o->val));
        else if (strcmp(o->keyword, "hostaddr") == 0)
            has_addresses = true;
    }
    PQconninfoFree(options);

    span rest = span_of(t->hosts), host;
    while (!has_addresses && str_split(&rest, ',', &host))
        t->has_names = t->has_names || is_name(host);
}

void target_deinit(struct target *t)
{
    free(t->conninfo);
    free(t->plain);
    free(t->settings);
    free(t->isolation);
    free(t->hosts);
    free(t->ports);
    *t = (struct target){0};
}

// Element n of a list; a single element applies to all.
static span element(const char *list, unsigned n)
{
    span rest = span_of(list), part = SPAN_NONE, first = SPAN_NONE;
    unsigned i = 0;

    for (; str_split(&rest, ',', &part); i++) {
        if (i == 0)
            first = part;
        if (i == n)
            return part;
    }
    return i == 1 ? first : SPAN_NONE;
}

static bool has_host(const struct lookup *l, unsigned n)
{
    span rest = span_of(l->target->hosts), part;

    for (unsigned i = 0; str_split(&rest, ',', &part); i++)
        if (i == n)
            return true;
    return false;
}

void lookup_start(struct lookup *l, uv_loop_t *loop, const struct target *t,
                  void (*done)(struct lookup *l))
{
    *l = (struct lookup){.target = t, .done = done};
    next(l, loop);
}

// Copies hosts that need no lookup until it reaches one that does.
static void next(struct lookup *l, uv_loop_t *loop)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

    for (; has_host(l, l->n_asked); l->n_asked++) {
        span host = element(l->target->hosts, l->n_asked);
        if (!is_name(host)) {
            put_found(l, host, "", element(l->target->ports, l->n_asked));
            continue;
        }
        char *name = mem_strndup(host.ptr, host.len);
        int rc = uv_getaddrinfo(loop, &l->request, on_addresses, name, NULL, &hints);
        free(name);
        if (rc == 0)
            return;
        log_debug("pg.lookup_failed", "host=" SPAN_FMT " error=\"%s\"", SPAN_ARG(host),
                  uv_strerror(rc));
    }
    target_finish(l);
}

static void on_addresses(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct lookup *l = container_of(request, struct lookup, request);
    span host = element(l->target->hosts, l->n_asked);
    char text[INET6_ADDRSTRLEN];

    for (struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        bool is_v6 = a->ai_family == AF_INET6;
        int rc = is_v6
                     ? uv_ip6_name((struct sockaddr_in6 *)(void *)a->ai_addr, text, sizeof text)
                     : uv_ip4_name((struct sockaddr_in *)(void *)a->ai_addr, text, sizeof text);
        if (rc == 0)
            put_found(l, host, text, element(l->target->ports, l->n_asked));
    }
    uv_freeaddrinfo(list);
    if (status == UV_ECANCELED) {
        target_finish(l);
        return;
    }
    if (status != 0)
        log_debug("pg.lookup_failed", "host=" SPAN_FMT " error=\"%s\"", SPAN_ARG(host),
                  uv_strerror(status));
    l->n_asked++;
    next(l, request->loop);
}

static void put_found(struct lookup *l, span host, const char *address, span port)
{
    if (l->n_found++ > 0) {
        buf_putc(&l->hosts, ',');
        buf_putc(&l->addrs, ',');
        buf_putc(&l->ports, ',');
    }
    buf_put(&l->hosts, host);
    buf_put(&l->addrs, span_of(address));
    buf_put(&l->ports, port);
}

static void target_finish(struct lookup *l)
{
    buf_putc(&l->hosts, '\0');
    buf_putc(&l->addrs, '\0');
    buf_putc(&l->ports, '\0');
    l->done(l);
}

// Has no effect once a thread has started it; done is called either way.
void lookup_cancel(struct lookup *l) { uv_cancel((uv_req_t *)&l->request); }

void lookup_deinit(struct lookup *l)
{
    buf_free(&l->hosts);
    buf_free(&l->addrs);
    buf_free(&l->ports);
}
