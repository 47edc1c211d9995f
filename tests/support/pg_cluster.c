// pg_cluster.c: a throw-away PostgreSQL for tests.
#include "support/pg_cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attrs.h"

static void run(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void run(const char *fmt, ...)
{
    char command[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    if (system(command) != 0) {
        fprintf(stderr, "failed: %s\n", command);
        abort();
    }
}

static const char *as_postgres(void)
{
    return geteuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --clear-groups" : "env";
}

// The newest installed server.
#define BIN "$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)"

void pg_cluster_new(struct pg_cluster *c)
{
    snprintf(c->dir, sizeof c->dir, "/tmp/queen-test-XXXXXX");
    if (mkdtemp(c->dir) == NULL)
        abort();
    snprintf(c->conninfo, sizeof c->conninfo, "host=%s user=postgres dbname=postgres", c->dir);
    if (geteuid() == 0)
        run("chown postgres %s", c->dir);
    run("cd %s && %s " BIN "/initdb -D data -U postgres -A trust --no-sync -E UTF8 "
        "--locale=C >initdb.log",
        c->dir, as_postgres());
    pg_cluster_start(c);
}

void pg_cluster_start(struct pg_cluster *c)
{
    run("cd %s && %s " BIN "/pg_ctl -D data -s -w -l %s/log -o \"-k %s -c listen_addresses='' "
        "-c fsync=off -c max_connections=30 -c shared_buffers=16MB\" start",
        c->dir, as_postgres(), c->dir, c->dir);
}

void pg_cluster_stop(struct pg_cluster *c, const char *mode)
{
    run("cd %s && %s " BIN "/pg_ctl -D data -s -w -m %s stop", c->dir, as_postgres(), mode);
}

void pg_cluster_free(struct pg_cluster *c)
{
    run("cd %s && %s " BIN "/pg_ctl -D data -s -w -m immediate stop 2>/dev/null || true",
        c->dir, as_postgres());
    run("rm -rf %s", c->dir);
}

char *pg_cluster_ask(struct pg_cluster *c, const char *sql)
{
    PGconn *pg = PQconnectdb(c->conninfo);
    PGresult *r = PQexec(pg, sql);

    if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK) {
        fprintf(stderr, "%s: %s", sql, PQerrorMessage(pg));
        abort();
    }
    char *value = strdup(PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    PQfinish(pg);
    return value;
}
