// pool.h: the connections to one server.
//
// The connection used last is used first, so that a quiet client keeps few.  A request that
// finds all of them busy waits in line.  Long polls leave some connections to other requests:
// else a processor with as many partitions as connections could not renew its ownership.
#ifndef QUEEN_CLIENT_POOL_H
#define QUEEN_CLIENT_POOL_H

#include "server_conn.h"

struct pool_wait {
    // The waiter owns the connection until pool_give_back().
    void (*ready)(struct pool_wait *w, struct server_conn *l);
    TAILQ_ENTRY(pool_wait) entry;
    bool is_waiting;
    bool may_park; // set by the caller: a long poll
};

struct pool {
    struct server_conn_conf conf;
    unsigned max_conns, n_conns;   // n_conns includes those that are closing
    unsigned max_parked, n_parked; // connections of long polls
    TAILQ_HEAD(, conn_entry) idle;
    TAILQ_HEAD(pool_line, pool_wait) waiting, parking; // parking: long polls, served last
    TAILQ_HEAD(, conn_entry) busy;
    void (*drained)(void *ctx); // after pool_close(), when the last connection is freed
    void *ctx;
    bool closing;
};

// The pool sets conf.gone, .freed and .ctx.
void pool_init(struct pool *p, const struct server_conn_conf *conf, unsigned max_conns,
               void (*drained)(void *ctx), void *ctx);

// Calls w->ready, at once if a connection is available.
void pool_acquire(struct pool *p, struct pool_wait *w);
void pool_cancel(struct pool *p, struct pool_wait *w); // no effect if w does not wait
// Only for a connection that is still open: one that closed itself has left the pool.
void pool_give_back(struct pool *p, struct server_conn *l);

void pool_drop_idle(struct pool *p);

// Closes all connections and stops waiting. drained is called when p->n_conns is 0, not from
// inside; not at all if it is 0 already.
void pool_close(struct pool *p);

#endif
