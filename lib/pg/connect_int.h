// connect_int.h: opens a connection and waits for it; private to lib/pg.
#ifndef QUEEN_PG_CONNECT_INT_H
#define QUEEN_PG_CONNECT_INT_H

#include <libpq-fe.h>

#include "base/attrs.h"
#include "base/err.h"

// Blocks. If a pooler refuses the options of conninfo, the connection is made without them, so
// the caller must not depend on them or on any other session state. 0 with *pg given, or
// QE_PG_AWAY with NULL and the reason in f.
MUST_USE int connect_and_wait(const char *conninfo, PGconn **pg, struct fault *f);

#endif
