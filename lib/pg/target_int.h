// target_int.h: whom to dial; for pg/ only.
//
// libpq looks names up with a blocking call on the loop's thread.  So that a name server that
// is away together with the database does not stop the loop, names are looked up beforehand, in
// libuv's work threads, and libpq is given the addresses.
#ifndef QUEEN_PG_TARGET_INT_H
#define QUEEN_PG_TARGET_INT_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"

struct target {
    char *conninfo;
    char *hosts, *ports; // lists, as in the connection string; NULL when not given
    bool has_names;      // at least one host needs looking up
};

void target_init(struct target *t, const char *conninfo); // copied
void target_deinit(struct target *t);

// What one lookup found: three lists of equal length, each ended by NUL.
struct lookup {
    uv_getaddrinfo_t request;
    const struct target *target;
    struct buf hosts, addrs, ports;
    unsigned n_found, n_asked;
    void (*done)(struct lookup *l);
};

// target is borrowed until done, which is called once, also after lookup_cancel, and possibly
// at once (a name that is none).
void lookup_start(struct lookup *l, uv_loop_t *loop, const struct target *t,
                  void (*done)(struct lookup *l));
void lookup_cancel(struct lookup *l);
void lookup_deinit(struct lookup *l);

#endif
