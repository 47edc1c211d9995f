// ask.c: connects, runs a statement, and copies its first row.
#include "pg/ask.h"

#include <string.h>

#include "base/mem.h"
#include "pg/connect_int.h"
#include "pg/reply_int.h"

static void copy_row(const PGresult *res, unsigned n, char **columns)
{
    for (unsigned i = 0; i < n; i++) {
        bool there =
            PQntuples(res) > 0 && (int)i < PQnfields(res) && !PQgetisnull(res, 0, (int)i);
        const char *text = there ? PQgetvalue(res, 0, (int)i) : NULL;
        columns[i] = text ? mem_strndup(text, strlen(text)) : NULL;
    }
}

int pg_ask(const char *conninfo, const struct pg_ask *ask, char **columns, struct fault *f)
{
    PGconn *pg;
    int rc = connect_and_wait(conninfo, &pg, f);

    for (unsigned i = 0; i < ask->n_columns; i++)
        columns[i] = NULL;
    if (rc != 0)
        return rc;
    PGresult *res =
        PQexecParams(pg, ask->text, (int)ask->n_params, NULL, ask->params, NULL, NULL, 0);
    rc = reply_status(res);
    if (rc == 0)
        copy_row(res, ask->n_columns, columns);
    else
        fault_set(f, rc == QE_PG_GONE ? QE_PG_AWAY : rc, "%.*s",
                  (int)strcspn(PQerrorMessage(pg), "\n"), PQerrorMessage(pg));
    PQclear(res);
    PQfinish(pg);
    return rc == 0 ? 0 : f->code;
}
