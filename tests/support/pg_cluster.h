// pg_cluster.h: a throw-away PostgreSQL for tests, on a private Unix socket.
//
// Run as user postgres when the test is root.  Every failure ends the test program: without the
// server there is nothing to test.
#ifndef QUEEN_TESTS_PG_CLUSTER_H
#define QUEEN_TESTS_PG_CLUSTER_H

#include <libpq-fe.h>

struct pg_cluster {
    char dir[64];       // holds data/, the socket and the log; removed by _free
    char conninfo[160]; // database postgres, user postgres
};

void pg_cluster_new(struct pg_cluster *c); // made and started
void pg_cluster_start(struct pg_cluster *c);
void pg_cluster_stop(struct pg_cluster *c, const char *mode); // "fast", "immediate"
void pg_cluster_free(struct pg_cluster *c);

// One statement on a connection of its own, blocking; the first value as text, given (free()).
char *pg_cluster_ask(struct pg_cluster *c, const char *sql);

#endif
