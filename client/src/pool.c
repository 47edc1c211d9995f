// pool.c: idle connections, busy connections, and waiting calls.
#include "pool.h"

#include <assert.h>

static void on_gone(struct server_conn *l, void *ctx);
static void on_freed(struct server_conn *l, void *ctx);

void pool_init(struct pool *p, const struct server_conn_conf *conf, unsigned max_conns,
               void (*drained)(void *ctx), void *ctx)
{
    *p = (struct pool){.conf = *conf, .max_conns = max_conns, .drained = drained, .ctx = ctx};
    p->max_parked = max_conns - (max_conns >= 4 ? max_conns / 4 : max_conns > 1);
    p->conf.gone = on_gone;
    p->conf.freed = on_freed;
    p->conf.ctx = p;
    TAILQ_INIT(&p->idle);
    TAILQ_INIT(&p->busy);
    TAILQ_INIT(&p->waiting);
    TAILQ_INIT(&p->parking);
}

// The first idle connection that is still usable.
static struct server_conn *take_idle(struct pool *p)
{
    struct conn_entry *e;

    while ((e = TAILQ_FIRST(&p->idle))) {
        if (server_conn_is_ready(e->conn)) {
            TAILQ_REMOVE(&p->idle, e, entry);
            return e->conn;
        }
        server_conn_close(e->conn); // removes it from the list
    }
    return NULL;
}

static void hand_out(struct pool *p, struct pool_wait *w, struct server_conn *l)
{
    conn_entry(l)->is_idle = false;
    conn_entry(l)->is_parked = w->may_park;
    p->n_parked += w->may_park;
    TAILQ_INSERT_HEAD(&p->busy, conn_entry(l), entry);
    w->ready(w, l);
}

static struct pool_line *line_of(struct pool *p, const struct pool_wait *w)
{
    return w->may_park ? &p->parking : &p->waiting;
}

void pool_acquire(struct pool *p, struct pool_wait *w)
{
    assert(!w->is_waiting && !p->closing);
    bool may_have = !w->may_park || p->n_parked < p->max_parked;
    struct server_conn *l = may_have ? take_idle(p) : NULL;

    if (may_have && !l && p->n_conns < p->max_conns) {
        p->n_conns++;
        l = server_conn_open(&p->conf);
    }
    if (l) {
        hand_out(p, w, l);
    } else {
        w->is_waiting = true;
        TAILQ_INSERT_TAIL(line_of(p, w), w, entry);
    }
}

void pool_cancel(struct pool *p, struct pool_wait *w)
{
    if (w->is_waiting)
        TAILQ_REMOVE(line_of(p, w), w, entry);
    w->is_waiting = false;
}

static void serve_next(struct pool *p)
{
    struct pool_wait *w = TAILQ_FIRST(&p->waiting);

    if (!w && p->n_parked < p->max_parked)
        w = TAILQ_FIRST(&p->parking);
    if (!w || p->closing)
        return;
    pool_cancel(p, w);
    pool_acquire(p, w);
}

static void unpark_call(struct pool *p, struct conn_entry *e)
{
    p->n_parked -= e->is_parked;
    e->is_parked = false;
}

void pool_give_back(struct pool *p, struct server_conn *l)
{
    struct conn_entry *e = conn_entry(l);

    unpark_call(p, e);
    TAILQ_REMOVE(&p->busy, e, entry);
    TAILQ_INSERT_HEAD(&p->idle, e, entry);
    e->is_idle = true;
    if (p->closing)
        server_conn_close(l);
    else
        serve_next(p);
}

static void on_gone(struct server_conn *l, void *ctx)
{
    struct pool *p = ctx;

    unpark_call(p, conn_entry(l));
    if (conn_entry(l)->is_idle)
        TAILQ_REMOVE(&p->idle, conn_entry(l), entry);
    else
        TAILQ_REMOVE(&p->busy, conn_entry(l), entry);
}

static void on_freed(struct server_conn *l, void *ctx)
{
    struct pool *p = ctx;

    (void)l;
    p->n_conns--;
    if (p->closing && p->n_conns == 0)
        p->drained(p->ctx);
    else
        serve_next(p);
}

void pool_drop_idle(struct pool *p)
{
    while (!TAILQ_EMPTY(&p->idle))
        server_conn_close(TAILQ_FIRST(&p->idle)->conn);
}

void pool_close(struct pool *p)
{
    assert(TAILQ_EMPTY(&p->waiting) && TAILQ_EMPTY(&p->parking));
    p->closing = true;
    pool_drop_idle(p);
    while (!TAILQ_EMPTY(&p->busy))
        server_conn_close(TAILQ_FIRST(&p->busy)->conn);
}
