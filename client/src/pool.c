// pool.c: idle links, busy links, and waiting calls.
#include "pool.h"

#include <assert.h>

static void on_gone(struct link *l, void *ctx);
static void on_freed(struct link *l, void *ctx);

void pool_init(struct pool *p, const struct link_conf *conf, unsigned max_links,
               void (*drained)(void *ctx), void *ctx)
{
    *p = (struct pool){.conf = *conf, .max_links = max_links, .drained = drained, .ctx = ctx};
    p->max_parked = max_links - (max_links >= 4 ? max_links / 4 : max_links > 1);
    p->conf.gone = on_gone;
    p->conf.freed = on_freed;
    p->conf.ctx = p;
    TAILQ_INIT(&p->idle);
    TAILQ_INIT(&p->busy);
    TAILQ_INIT(&p->waiting);
    TAILQ_INIT(&p->parking);
}

// The first idle link that is still usable.
static struct link *take_idle(struct pool *p)
{
    struct link_slot *slot;

    while ((slot = TAILQ_FIRST(&p->idle))) {
        if (link_is_ready(slot->link)) {
            TAILQ_REMOVE(&p->idle, slot, entry);
            return slot->link;
        }
        link_close(slot->link); // removes it from the list
    }
    return NULL;
}

static void hand_out(struct pool *p, struct pool_wait *w, struct link *l)
{
    link_slot(l)->is_idle = false;
    link_slot(l)->is_parked = w->may_park;
    p->n_parked += w->may_park;
    TAILQ_INSERT_HEAD(&p->busy, link_slot(l), entry);
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
    struct link *l = may_have ? take_idle(p) : NULL;

    if (may_have && !l && p->n_links < p->max_links) {
        p->n_links++;
        l = link_open(&p->conf);
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

static void unpark(struct pool *p, struct link_slot *slot)
{
    p->n_parked -= slot->is_parked;
    slot->is_parked = false;
}

void pool_give_back(struct pool *p, struct link *l)
{
    struct link_slot *slot = link_slot(l);

    unpark(p, slot);
    TAILQ_REMOVE(&p->busy, slot, entry);
    TAILQ_INSERT_HEAD(&p->idle, slot, entry);
    slot->is_idle = true;
    if (p->closing)
        link_close(l);
    else
        serve_next(p);
}

static void on_gone(struct link *l, void *ctx)
{
    struct pool *p = ctx;

    unpark(p, link_slot(l));
    if (link_slot(l)->is_idle)
        TAILQ_REMOVE(&p->idle, link_slot(l), entry);
    else
        TAILQ_REMOVE(&p->busy, link_slot(l), entry);
}

static void on_freed(struct link *l, void *ctx)
{
    struct pool *p = ctx;

    (void)l;
    p->n_links--;
    if (p->closing && p->n_links == 0)
        p->drained(p->ctx);
    else
        serve_next(p);
}

void pool_drop_idle(struct pool *p)
{
    while (!TAILQ_EMPTY(&p->idle))
        link_close(TAILQ_FIRST(&p->idle)->link);
}

void pool_close(struct pool *p)
{
    assert(TAILQ_EMPTY(&p->waiting) && TAILQ_EMPTY(&p->parking));
    p->closing = true;
    pool_drop_idle(p);
    while (!TAILQ_EMPTY(&p->busy))
        link_close(TAILQ_FIRST(&p->busy)->link);
}
