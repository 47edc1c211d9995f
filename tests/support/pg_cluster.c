// pg_cluster.c: a throw-away PostgreSQL for tests.
#include "support/pg_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/shell.h"

// The newest installed server.
#define BIN "$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)"

void pg_cluster_new(struct pg_cluster *c)
{
    snprintf(c->dir, sizeof c->dir, "/tmp/queen-test-XXXXXX");
    if (mkdtemp(c->dir) == NULL)
        abort();
    snprintf(c->conninfo, sizeof c->conninfo, "host=%s user=postgres dbname=postgres", c->dir);
    if (geteuid() == 0)
        shell_run("chown postgres %s", c->dir);
    shell_run("cd %s && %s " BIN "/initdb -D data -U postgres -A trust --no-sync -E UTF8 "
              "--locale=C >initdb.log",
              c->dir, shell_as_another());
    pg_cluster_start(c);
}

void pg_cluster_start(struct pg_cluster *c)
{
    shell_run("cd %s && %s " BIN
              "/pg_ctl -D data -s -w -l %s/log -o \"-k %s -c listen_addresses='' "
              "-c fsync=off -c max_connections=30 -c shared_buffers=16MB\" start",
              c->dir, shell_as_another(), c->dir, c->dir);
}

void pg_cluster_stop(struct pg_cluster *c, const char *mode)
{
    shell_run("cd %s && %s " BIN "/pg_ctl -D data -s -w -m %s stop", c->dir, shell_as_another(),
              mode);
}

void pg_cluster_free(struct pg_cluster *c)
{
    shell_run("cd %s && %s " BIN "/pg_ctl -D data -s -w -m immediate stop 2>/dev/null || true",
              c->dir, shell_as_another());
    shell_run("rm -rf %s", c->dir);
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
