// dial.c: opens a connection without blocking the loop.
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "pg/conn_int.h"
#include "pg/pooler_int.h"

// Steps of a dial, in order.
static void on_looked_up(struct lookup *l);
static void dial_begin(struct pg_conn *c);
static void on_cannot_begin(uv_timer_t *timer);
static void on_dial_socket(uv_poll_t *handle, int status, int events);
static void step(struct pg_conn *c);
static void dial_again(struct pg_conn *c);
static void on_timeout(uv_timer_t *timer);
static void on_poll_closed(uv_handle_t *handle);

static void ignore_notice(void *ctx, const char *text) { (void)ctx, (void)text; }

struct pg_conn *conn_dial(uv_loop_t *loop, struct target *target, unsigned timeout_ms,
                          const struct conn_events *on, void *owner)
{
    struct pg_conn *c = mem_new(struct pg_conn);
    c->state = CONN_DIALING;
    c->on = on;
    c->owner = owner;
    c->loop = loop;
    c->target = target;
    c->pooled = target->pooled;
    uv_timer_init(loop, &c->timer);
    c->timer.data = c;
    c->n_handles = 1;
    uv_timer_start(&c->timer, on_timeout, timeout_ms > 0 ? timeout_ms : 1, 0);

    if (target->has_names) {
        c->looking_up = true;
        c->n_handles++;
        lookup_start(&c->lookup, loop, target, on_looked_up);
    } else {
        dial_begin(c);
    }
    return c;
}

static void on_looked_up(struct lookup *l)
{
    struct pg_conn *c = container_of(l, struct pg_conn, lookup);

    c->looking_up = false;
    if (c->state == CONN_DIALING)
        dial_begin(c);
    conn_handle_gone(c);
}

static void dial_begin(struct pg_conn *c)
{
    bool found = c->lookup.n_found > 0;
    // A later keyword in the list overrides the connection string.
    const char *const keywords[] = {"dbname", found ? "host" : NULL, "hostaddr", "port", NULL};
    const char *const values[] = {c->pooled ? c->target->plain : c->target->conninfo,
                                  c->lookup.hosts.ptr, c->lookup.addrs.ptr, c->lookup.ports.ptr,
                                  NULL};

    if (!c->target->has_names || found)
        c->pg = PQconnectStartParams(keywords, values, 1);
    if (c->pg == NULL || PQstatus(c->pg) == CONNECTION_BAD) {
        // We may still be inside conn_dial(), so report the failure later.
        uv_timer_start(&c->timer, on_cannot_begin, 1, 0);
        return;
    }
    PQsetNoticeProcessor(c->pg, ignore_notice, NULL);
    conn_watch(c, UV_WRITABLE, on_dial_socket);
}

static void on_cannot_begin(uv_timer_t *timer)
{
    struct pg_conn *c = timer->data;

    conn_dial_failed(c, c->pg != NULL ? conn_error(c) : "no host could be resolved");
}

// The status does not matter: libpq checks the socket itself and may then try the next host.
static void on_dial_socket(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    step(((struct conn_poll *)handle->data)->conn);
}

static void step(struct pg_conn *c)
{
    // libpq may close this socket and open another, even under the same number. Stop polling
    // it before that (libuv 1.44 aborts otherwise).
    conn_watch(c, 0, NULL);

    switch (PQconnectPoll(c->pg)) {
    case PGRES_POLLING_READING:
        conn_watch(c, UV_READABLE, on_dial_socket);
        break;
    case PGRES_POLLING_WRITING:
        conn_watch(c, UV_WRITABLE, on_dial_socket);
        break;
    case PGRES_POLLING_OK:
        conn_identify(c);
        break;
    default:
        if (c->target->mode == PG_POOLER_AUTO && !c->pooled &&
            pooler_refused(PQerrorMessage(c->pg)))
            dial_again(c);
        else
            conn_dial_failed(c, conn_error(c));
        break;
    }
}

// Without startup options, at once.
static void dial_again(struct pg_conn *c)
{
    pooler_log(conn_error(c));
    c->pooled = c->target->pooled = true;
    conn_unwatch(c); // before libpq closes the socket
    PQfinish(c->pg);
    c->pg = NULL;
    dial_begin(c);
}

static void on_timeout(uv_timer_t *timer)
{
    conn_dial_failed(timer->data, "no answer in time");
}

void conn_dial_failed(struct pg_conn *c, const char *why)
{
    assert(c->state == CONN_DIALING);
    c->doomed = true;
    uv_timer_stop(&c->timer);
    conn_watch(c, 0, NULL);
    c->on->broken(c, why);
}

void conn_watch(struct pg_conn *c, int events, uv_poll_cb cb)
{
    if (events == 0) {
        if (c->poll != NULL) {
            uv_poll_stop(&c->poll->handle);
            c->poll->events = 0;
        }
        return;
    }
    int fd = PQsocket(c->pg);
    if (c->poll != NULL && c->poll->fd != fd)
        conn_unwatch(c);
    if (c->poll == NULL) {
        c->poll = mem_new(struct conn_poll);
        c->n_handles++;
        c->poll->conn = c;
        c->poll->fd = fd;
        int rc = uv_poll_init(c->loop, &c->poll->handle, fd);
        if (rc != 0)
            // cannot fail for a socket that libpq has just opened
            BUG("uv_poll_init: %s", uv_strerror(rc));
        c->poll->handle.data = c->poll;
    }
    if (c->poll->events != events) {
        c->poll->events = events;
        uv_poll_start(&c->poll->handle, events, cb);
    }
}

void conn_unwatch(struct pg_conn *c)
{
    if (c->poll != NULL)
        uv_close((uv_handle_t *)&c->poll->handle, on_poll_closed);
    c->poll = NULL;
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct conn_poll *p = handle->data;

    conn_handle_gone(p->conn);
    free(p);
}
