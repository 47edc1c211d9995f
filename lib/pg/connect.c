// connect.c: opens a connection and waits for it; for migrations and for creating databases.
#include <string.h>

#include "pg/connect_int.h"
#include "pg/pooler_int.h"
#include "pg/target_int.h"

static PGconn *connect_without_options(const char *conninfo)
{
    struct target t;

    target_init(&t, conninfo, PG_POOLER_TRANSACTION);
    PGconn *pg = PQconnectdb(t.plain);
    target_deinit(&t);
    return pg;
}

int connect_and_wait(const char *conninfo, PGconn **pg, struct fault *f)
{
    *pg = PQconnectdb(conninfo);
    if (PQstatus(*pg) != CONNECTION_OK && pooler_refused(PQerrorMessage(*pg))) {
        PQfinish(*pg);
        *pg = connect_without_options(conninfo);
    }
    if (PQstatus(*pg) == CONNECTION_OK)
        return 0;
    const char *text = PQerrorMessage(*pg);
    int rc = fault_set(f, QE_PG_AWAY, "%.*s", (int)strcspn(text, "\n"), text);
    PQfinish(*pg);
    *pg = NULL;
    return rc;
}
