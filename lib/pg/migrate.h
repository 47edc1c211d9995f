// migrate.h: brings a database to the schema that this program carries.
//
//      lock ──► bookkeeping tables ──► missing migrations ──► changed objects ──► unlock
//
// Migrations (broker/sql/schema) are numbered, run once, each in its own transaction, and are
// frozen by checksum once released.  Objects (procedures and views) are replaced together, in
// one transaction, when the checksum of any has changed.  Everything happens under one advisory
// lock, so any number of brokers may start at once: the first does the work, the others find it
// done.
//
// A database that is newer (it knows migrations that we do not) is left alone: during a rolling
// upgrade the old broker may restart, and must not bring back its old procedures.
#ifndef QUEEN_PG_MIGRATE_H
#define QUEEN_PG_MIGRATE_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"

struct pg_migration {
    unsigned number; // from 1, without gaps
    const char *name;
    const char *text;
    const char *sha256; // of text, 64 hex digits
};

struct pg_object { // after those that it needs
    const char *name;
    const char *text;
    const char *sha256;
};

// What tools/embed_sql.py makes of a folder (pg/sql.gen.h: pg_schema_queen).
struct pg_schema {
    const struct pg_migration *migrations;
    unsigned n_migrations;
    const struct pg_object *objects;
    unsigned n_objects;
    const char *home; // the SQL schema that keeps the books of this; NULL: queen
};

struct pg_migrate_result {
    unsigned n_migrations, n_objects; // applied by this call
    bool newer;                       // the database is ahead of us; objects were left alone
};

// Blocks, on a connection of its own: call it where nothing else waits (start-up, or a work
// thread).  result may be NULL.  QE_PG_AWAY: the database cannot be reached, try again later;
// any other failure needs a person, and f says what is wrong.
MUST_USE int pg_migrate(const char *conninfo, const struct pg_schema *schema,
                        struct pg_migrate_result *result, struct fault *f);

#endif
