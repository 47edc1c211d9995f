// conninfo_int.h: parts of a connection string; private to lib/pg.
#ifndef QUEEN_PG_CONNINFO_INT_H
#define QUEEN_PG_CONNINFO_INT_H

#include "base/buf.h"
#include "pg/conninfo.h"

// Puts nothing for NULL, "" and 0.
void conninfo_put_text(struct buf *b, const char *keyword, const char *value);
void conninfo_put_number(struct buf *b, const char *keyword, unsigned value);
void conninfo_put_options(struct buf *b, const struct pg_conninfo *c); // session settings

#endif
