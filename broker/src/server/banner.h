// banner.h: the lines that `queen serve` prints at its start.
#ifndef QUEEN_SERVER_BANNER_H
#define QUEEN_SERVER_BANNER_H

#include <stdbool.h>

#include "net/listeners.h"
#include "pg/conninfo.h"

// On stdout: where it listens, where the data is, the first push and pop.  The log is
// elsewhere (stderr), so this stays readable.  embedded: how to reach the embedded PostgreSQL;
// NULL: there is none.
void banner_print(const struct listeners *l, bool exposed, const char *where,
                  const struct pg_conninfo *embedded);

#endif
