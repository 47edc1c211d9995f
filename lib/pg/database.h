// database.h: the database of a process, on an embedded or an external PostgreSQL.
//
//     database_open ──► database_start ──► on_ready (once) ──► database_stop ──► database_free
//      (may block)        migrate, retried while the server is unavailable or refuses the
//                         connections of pools
//
// Belongs to the loop of the main thread. Pools connect on their own with database_conninfo();
// this module only signals that the schema is in place.
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

// Copied; the strings are borrowed until database_free().
struct database_conf {
    // pool.hosts "" or NULL: an embedded server in data_dir; host, port, role and password are
    // then ignored. chore: for migrations, which have no time limits.
    struct pg_conninfo pool, chore;
    const char *data_dir, *pg_bin, *os_user; // of the embedded server: see pg/embed.h
    const char *embedded_db;                 // its database; "": postgres
    const struct pg_schema *schema;
    bool create;             // create the database if the server does not have it
    const char *no_data_dir; // name of the setting to report when data_dir is ""
};

struct database_events {
    // the embedded server accepts connections; called after each start
    void (*on_up)(void *ctx);
    // the schema is in place, and a connection with the settings of pools works; once
    void (*on_ready)(void *ctx);
    // a try failed, the next follows; NULL: ignored
    void (*on_waiting)(void *ctx, const struct fault *f);
    void (*on_failed)(void *ctx, const struct fault *f); // migration failed; needs an operator
};

// Checks the settings only, not the server.
MUST_USE int database_conf_check(const struct database_conf *conf, struct fault *f);
// Blocks for an embedded server (initdb takes seconds).
MUST_USE int database_open(struct database **d, const struct database_conf *conf,
                           struct fault *f);
void database_start(struct database *d, uv_loop_t *loop, struct database_events on, void *ctx);
// No event follows. The embedded server is shut down cleanly. stopped is called once, later.
void database_stop(struct database *d, void (*stopped)(void *ctx), void *ctx);
// After stopped, or instead of database_start.
void database_free(struct database *d);

bool database_is_embedded(const struct database *d);
const char *database_conninfo(const struct database *d); // for pools; borrowed
// The server's address, for other databases on it: set .db, and the limits as needed.
// Borrowed.
struct pg_conninfo database_place(const struct database *d, bool chore);
const char *database_where(const struct database *d); // for messages; borrowed
pid_t database_pid(const struct database *d);         // of the embedded server; 0: none

// ---- blocking functions, for work threads ----

// Creates the database `name` unless it exists; *made (may be NULL): it was created. conninfo
// is that of any other database on the server.
MUST_USE int database_create(const char *conninfo, const char *name, bool *made,
                             struct fault *f);
// Connects and runs a query.
MUST_USE int database_check(const char *conninfo, struct fault *f);
// Drops the database if it exists, disconnecting its users.
MUST_USE int database_drop(const char *conninfo, const char *name, struct fault *f);

#endif
