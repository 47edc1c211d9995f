// reply_int.h: what a reply is made of; for pg/ and its tests only.
#ifndef QUEEN_PG_REPLY_INT_H
#define QUEEN_PG_REPLY_INT_H

#include <libpq-fe.h>

#include "pg/reply.h"

struct pg_reply {
    const PGresult *result; // NULL when the server did not answer
    const char *message;    // used when the result has none; may be NULL
    bool *odd; // set when the result is not of the shape that is asked for; NULL: that is a BUG
};

// What an SQLSTATE ("" or NULL: none, the connection broke) means to us.
int reply_code(const char *sqlstate);
// 0 if the result is a success, else its code.
int reply_status(const PGresult *result);
// Does the result have the columns that a statement declares?  0 or QE_PG_SHAPE, with what is
// wrong in why.
int reply_check(const PGresult *result, const char *returns, char *why, size_t size);

#endif
