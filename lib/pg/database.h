// database.h: where a process keeps its data: a PostgreSQL of its own, or somebody's.
//
//      database_open ──► database_start ──► on_ready (once) ──► database_stop ──► database_free
//       (may block)        migrate, again and again while the server is away
//
// Belongs to the loop of the main thread.  Pools connect by themselves with
// database_conninfo(); what they must know from here is only that the schema is in place.
#ifndef QUEEN_PG_DATABASE_H
#define QUEEN_PG_DATABASE_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"
#include "pg/conninfo.h"
#include "pg/migrate.h"

struct database;

// Copied; what it points to is borrowed until database_free.
struct database_conf {
    // pool.hosts "" or NULL: a server of our own, in data_dir; then host, port, role and
    // password are left aside.  chore: migrations, which have no limits on time.
    struct pg_conninfo pool, chore;
    const char *data_dir, *pg_bin, *os_user; // of our own: see pg/embed.h
    const char *embedded_db;                 // its database; "": postgres
    const struct pg_schema *schema;
    bool create;             // make the database if the server does not have it
    const char *no_data_dir; // says what to set when data_dir is ""
};

struct database_events {
    void (*on_up)(void *ctx);    // takes connections: each start of our own; never, if not ours
    void (*on_ready)(void *ctx); // the schema is in place; once
    void (*on_failed)(void *ctx, const struct fault *f); // nor will it be: a person is needed
};

// Blocks for an embedded server (initdb takes seconds).
MUST_USE int database_open(struct database **d, const struct database_conf *conf,
                           struct fault *f);
void database_start(struct database *d, uv_loop_t *loop, struct database_events on, void *ctx);
// No event after this; the embedded server is shut down cleanly.  stopped is called once,
// later.
void database_stop(struct database *d, void (*stopped)(void *ctx), void *ctx);
// After stopped, or instead of database_start.
void database_free(struct database *d);

bool database_is_embedded(const struct database *d);
const char *database_conninfo(const struct database *d); // for pools; borrowed
// Where the server is, for other databases on it: set .db, and the limits as needed.  Borrowed.
struct pg_conninfo database_place(const struct database *d, bool chore);
const char *database_where(const struct database *d); // for people; borrowed
pid_t database_pid(const struct database *d);         // of the embedded server; 0: none

// ---- what blocks: for threads that may ----

// The database `name` is there afterwards; *made (may be NULL): it was not before.  conninfo is
// that of any other database of the server.
MUST_USE int database_create(const char *conninfo, const char *name, bool *made,
                             struct fault *f);
// It is not there afterwards; who uses it is cut off.
MUST_USE int database_drop(const char *conninfo, const char *name, struct fault *f);

#endif
