// my_migrate.h: brings a MySQL database to the schema of this program (platform/sql/mysql).
//
// The tables schema_version and schema_objects of that database record the progress.  Rules and
// results are those of pg/migrate.h, with one difference: MySQL commits after every definition,
// so a migration that failed half-way runs again from its beginning.
#ifndef QUEEN_TENANT_MY_MIGRATE_H
#define QUEEN_TENANT_MY_MIGRATE_H

#include "pg/migrate.h"
#include "tenant/my_pool.h"

// Blocks; call it on a work thread.
MUST_USE int my_migrate(const struct my_place *place, const struct pg_schema *schema,
                        struct pg_migrate_result *result, struct fault *f);

// Blocks likewise.  Records that the database is that of this tenant of a directory, unless it
// is that of another one than instead_of.  tenant: whose it is now; given.  The names and the
// identity contain no quotes.
MUST_USE int my_claim(const struct my_place *place, const char *directory, const char *name,
                      const char *instead_of, char **tenant, struct fault *f);

#endif
