// target_int.h: resolves the hosts of a connection string; private to lib/pg.
//
// libpq resolves names with a blocking call on the loop's thread. If the name server is down
// together with the database, that would stop the loop. Therefore names are resolved
// beforehand in libuv's work threads, and libpq gets the addresses.
#ifndef QUEEN_PG_TARGET_INT_H
#define QUEEN_PG_TARGET_INT_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "pg/conninfo.h"

struct target {
    char *conninfo;
    char *plain;             // the same without options, for a pooler
    char *settings;          // SQL text of the options: see pooler_int.h
    char *isolation;         // level that the options ask for; NULL: none
    enum pg_pooler mode;     // as configured
    bool pooled;             // new connections are to a transaction pooler
    char *hosts, *ports;     // lists, as in the connection string; NULL when not given
    bool has_names;          // at least one host needs a lookup
    size_t max_result_bytes; // see struct pg_pool_conf
};

void target_init(struct target *t, const char *conninfo, enum pg_pooler mode); // copied
void target_deinit(struct target *t);

// The result of a lookup: three comma-separated lists of equal length, each ended by NUL.
struct lookup {
    uv_getaddrinfo_t request;
    const struct target *target;
    struct buf hosts, addrs, ports;
    unsigned n_found, n_asked;
    void (*done)(struct lookup *l);
};

// target is borrowed until done, which is called once, also after lookup_cancel(), and possibly
// from inside this function (if no lookup can be started).
void lookup_start(struct lookup *l, uv_loop_t *loop, const struct target *t,
                  void (*done)(struct lookup *l));
void lookup_cancel(struct lookup *l);
void lookup_deinit(struct lookup *l);

#endif
