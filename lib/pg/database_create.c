// database_create.c: checks, creates and drops databases. Blocks; libpq quotes the names.
#include <libpq-fe.h>
#include <string.h>

#include "pg/connect_int.h"
#include "pg/database.h"
#include "pg/reply_int.h"

// format has one %s: the quoted name.
static int database_run(PGconn *pg, const char *before, const char *name, const char *after,
                        struct fault *f)
{
    char *quoted = PQescapeIdentifier(pg, name, strlen(name)), sql[256];
    int n = snprintf(sql, sizeof sql, "%s %s %s", before, quoted ? quoted : "", after);

    PQfreemem(quoted);
    if (!quoted || n >= (int)sizeof sql)
        return fault_set(f, QE_BAD_PARAM, "%.64s is not a valid database name", name);
    PGresult *res = PQexec(pg, sql);
    int rc = reply_status(res);
    if (rc != 0) {
        const char *why = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
        const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
        // Another process created it at the same moment (42P04, or a unique violation).
        if (state && (strcmp(state, "42P04") == 0 || strcmp(state, "23505") == 0))
            rc = 0;
        else
            fault_set(f, rc, "%s %s: %s", before, name, why ? why : PQerrorMessage(pg));
    }
    PQclear(res);
    return rc;
}

int database_check(const char *conninfo, struct fault *f)
{
    PGconn *pg;
    int rc = connect_and_wait(conninfo, &pg, f);

    if (rc != 0)
        return rc;
    PGresult *res = PQexec(pg, "select 1");
    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        const char *text = PQerrorMessage(pg);
        rc = fault_set(f, QE_PG_AWAY, "%.*s", (int)strcspn(text, "\n"), text);
    }
    PQclear(res);
    PQfinish(pg);
    return rc;
}

int database_create(const char *conninfo, const char *name, bool *made, struct fault *f)
{
    PGconn *pg;
    int rc = connect_and_wait(conninfo, &pg, f);

    if (rc != 0)
        return rc;
    PGresult *res = PQexecParams(pg, "select from pg_database where datname = $1", 1, NULL,
                                 &name, NULL, NULL, 0);
    bool there = PQntuples(res) > 0;
    PQclear(res);
    if (!there)
        rc = database_run(pg, "create database", name, "encoding 'UTF8' template template0", f);
    if (made)
        *made = rc == 0 && !there;
    PQfinish(pg);
    return rc;
}

int database_drop(const char *conninfo, const char *name, struct fault *f)
{
    PGconn *pg;
    int rc = connect_and_wait(conninfo, &pg, f);

    if (rc != 0)
        return rc;
    rc = database_run(pg, "drop database if exists", name, "with (force)", f);
    PQfinish(pg);
    return rc;
}
