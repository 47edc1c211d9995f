// pools_int.h: what pools.c, probe.c and figures.c share.
#ifndef QUEEN_TENANT_POOLS_INT_H
#define QUEEN_TENANT_POOLS_INT_H

#include "base/map.h"
#include "tenant/breaker.h"
#include "tenant/directory.h"
#include "tenant/link.h"
#include "tenant/pools.h"
#include "tenant/slots.h"

// A tenant that was asked for once.  Stays in memory: there are as many as tenants.
struct tenant {
    struct tenant_pools *pools;
    struct tenant_row row;
    bool known;        // row is what the directory says
    unsigned look;     // the last one that has seen the row
    uint64_t identity; // of the row, see pools.h
    struct tenant_entry entry;
    unsigned n_refs; // pools that are not closed yet, also those that drain
    struct breaker breaker;
    bool down; // in the list of those with an open breaker
    TAILQ_ENTRY(tenant) downs;
    struct fault fault;      // the last failure to reach it
    struct link *probe;      // under way; NULL: none
    struct want_list asking; // wants that wait for the directory
    struct directory_find find;
    bool finding;
    UT_hash_handle hh; // by row.name
};

// The owner of a slot.
struct tenant_pool {
    struct tenant *tenant;
    struct slot *slot;
    struct link *link;
    uint64_t identity; // of the row that the link was opened for
};

// A pool in the hands of one of its holders.
struct tenant_ref {
    struct tenant_pool *pool;
    bool failed; // a call of this holder
};

struct tenant_pools {
    uv_loop_t *loop;
    struct tenant_pools_conf conf;
    struct link_conf link;
    struct breaker_conf breaker;
    struct slots *slots;
    struct tenant *tenants;
    TAILQ_HEAD(, tenant) down;
    uv_timer_t tick;
    struct directory_changes changes;
    bool looking;      // for changes
    bool looks_at_all; // not only at those of the last time
    unsigned look;     // number of the last one
    uint64_t look_us, next_look_us;
    uint64_t looked_us; // when the last one began that worked
    uint64_t last_identity;
    unsigned n_finding, n_probes;
    struct tenant_pools_stats stats;
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// pools.c
void tenant_trip(struct tenant *t, const struct fault *why, bool hard); // its database failed
void tenant_is_back(struct tenant *t);                                  // and answers again
void tenant_forget_if_unknown(struct tenant *t);                        // may free it
void pools_close_if_done(struct tenant_pools *p);
// probe.c: looks at those whose breaker is open.
void tenant_probe_due(struct tenant_pools *p, uint64_t now_us);

#endif
