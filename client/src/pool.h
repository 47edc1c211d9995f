// pool.h: the links to one server.
//
// The link used last is used first, so that a quiet client keeps few.  A request that finds all
// of them busy waits in line.  Long polls leave some links to other requests: else a processor
// with as many partitions as links could not renew its ownership.
#ifndef QUEEN_CLIENT_POOL_H
#define QUEEN_CLIENT_POOL_H

#include "link.h"

struct pool_wait {
    // The waiter owns the link until pool_give_back().
    void (*ready)(struct pool_wait *w, struct link *l);
    TAILQ_ENTRY(pool_wait) entry;
    bool is_waiting;
    bool may_park; // set by the caller: a long poll
};

struct pool {
    struct link_conf conf;
    unsigned max_links, n_links;   // n_links includes those that are closing
    unsigned max_parked, n_parked; // links of long polls
    TAILQ_HEAD(, link_slot) idle;
    TAILQ_HEAD(pool_line, pool_wait) waiting, parking; // parking: long polls, served last
    TAILQ_HEAD(, link_slot) busy;
    void (*drained)(void *ctx); // after pool_close(), when the last link is freed
    void *ctx;
    bool closing;
};

// The pool sets conf.gone, .freed and .ctx.
void pool_init(struct pool *p, const struct link_conf *conf, unsigned max_links,
               void (*drained)(void *ctx), void *ctx);

// Calls w->ready, at once if a link is available.
void pool_acquire(struct pool *p, struct pool_wait *w);
void pool_cancel(struct pool *p, struct pool_wait *w); // no effect if w does not wait
// Only for a link that is still open: one that closed itself has left the pool.
void pool_give_back(struct pool *p, struct link *l);

void pool_drop_idle(struct pool *p);

// Closes all links and stops waiting. drained is called when p->n_links is 0, not from inside;
// not at all if it is 0 already.
void pool_close(struct pool *p);

#endif
