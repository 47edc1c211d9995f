// pooler_int.h: what connections do behind a transaction pooler; private to lib/pg.
//
// A transaction pooler (PgBouncer with pool_mode = transaction, RDS Proxy, and so on) gives
// each transaction any of its server connections. Such a connection has no session of its own:
// no startup options, no prepared statements, no settings that last, and the server behind it
// may change without notice. Therefore every call is one pipeline, which is one transaction:
//
//     [SET TRANSACTION] ──► settings and guard ──► [limit of the call] ──► the statement
//
// The guard fails if the server is not the one that the connection was identified with
// (identify.c), before the statement runs.
#ifndef QUEEN_PG_POOLER_INT_H
#define QUEEN_PG_POOLER_INT_H

#include <stdbool.h>

#include "base/buf.h"

// Appends the text of the statement that makes the startup options (as in "-c name=value ...";
// may be NULL) hold for one transaction. Its parameters are the two timestamps of identify.c.
// The isolation level, if the options have one, is copied into *isolation (given; NULL: none).
void pooler_put_settings(struct buf *b, const char *options, char **isolation);
// True if this error of a dial means that a pooler refuses startup options.
bool pooler_refused(const char *why);
// Logs pg.pooler_detected, once per process.
void pooler_log(const char *why);

#endif
