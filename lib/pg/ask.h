// ask.h: one statement on a connection of its own.
#ifndef QUEEN_PG_ASK_H
#define QUEEN_PG_ASK_H

#include "base/attrs.h"
#include "base/err.h"

// Parameters and results are text.
struct pg_ask {
    const char *text;
    const char *const *params; // NULL: null
    unsigned n_params;
    unsigned n_columns;
};

// Blocks: call it on a work thread. columns: those of the first row, given, each to be freed;
// NULL for null, and all NULL if there is no row.
MUST_USE int pg_ask(const char *conninfo, const struct pg_ask *ask, char **columns,
                    struct fault *f);

#endif
