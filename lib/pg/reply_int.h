// reply_int.h: the contents of a reply; for lib/pg and its tests only.
#ifndef QUEEN_PG_REPLY_INT_H
#define QUEEN_PG_REPLY_INT_H

#include <libpq-fe.h>

#include "pg/reply.h"

// The first cell that was not as its reader expected.
struct reply_odd {
    unsigned row, col;
    const char *what; // NULL: none
};

struct pg_reply {
    const PGresult *result; // NULL when the server did not answer
    const char *message;    // used when the result has none; may be NULL
    struct reply_odd *odd;  // set by the readers; may be NULL
    // Of pg_reply_part(); otherwise the whole result is read:
    bool is_part;
    unsigned row, n_rows, col;
};

// The error code of an SQLSTATE ("" or NULL: none, the connection broke).
int reply_code(const char *sqlstate);
// 0 if the result is a success, else its error code.
int reply_status(const PGresult *result);
// Checks that the result has the columns that a statement declares: 0, or QE_PG_SHAPE with the
// reason in why.
int reply_check(const PGresult *result, const char *returns, char *why, size_t size);

#endif
