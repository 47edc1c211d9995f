// database.h: where the messages are: a PostgreSQL of our own, or somebody's.
//
//      database_open ──► database_start ──► on_ready (once) ──► database_stop ──► database_free
//       (may block)        migrate, again and again while the server is away
//
// Belongs to the acceptor's loop.  Workers connect by themselves with database_conninfo(); what
// they must know from here is only that the schema is in place.
#ifndef QUEEN_SERVER_DATABASE_H
#define QUEEN_SERVER_DATABASE_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"
#include "conf/conf.h"

struct database;

struct database_events {
    void (*on_up)(void *ctx);    // takes connections: each start of our own; never, if not ours
    void (*on_ready)(void *ctx); // the schema is in place; once
    void (*on_failed)(void *ctx, const struct fault *f); // nor will it be: a person is needed
};

// Blocks for an embedded server (initdb takes seconds).  conf is borrowed until database_free.
MUST_USE int database_open(struct database **d, const struct conf *conf, struct fault *f);
void database_start(struct database *d, uv_loop_t *loop, struct database_events on, void *ctx);
// No event after this; the embedded server is shut down cleanly.  stopped is called once,
// later.
void database_stop(struct database *d, void (*stopped)(void *ctx), void *ctx);
// After stopped, or instead of database_start.
void database_free(struct database *d);

bool database_is_embedded(const struct database *d);
const char *database_conninfo(const struct database *d); // for pools; borrowed
const char *database_where(const struct database *d);    // for people; borrowed
pid_t database_pid(const struct database *d);            // of the embedded server; 0: none

#endif
