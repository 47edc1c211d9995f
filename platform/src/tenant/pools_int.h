// pools_int.h: the structures that pools.c, probe.c and pool_stats.c share.
#ifndef QUEEN_TENANT_POOLS_INT_H
#define QUEEN_TENANT_POOLS_INT_H

#include "base/map.h"
#include "tenant/breaker.h"
#include "tenant/directory.h"
#include "tenant/grants.h"
#include "tenant/pools.h"
#include "tenant/tenant_db.h"

// A tenant that was requested at least once.  Kept in memory; their number is bounded by the
// number of tenants.
struct tenant {
    struct tenant_pools *pools;
    struct tenant_row row;
    bool known;           // row is the directory entry
    unsigned read_number; // number of the last directory read that returned the row
    uint64_t identity;    // of the row, see pools.h
    struct tenant_entry entry;
    unsigned n_refs; // pools that are not closed yet, draining ones included
    struct breaker breaker;
    bool down; // in the list of tenants with an open breaker
    TAILQ_ENTRY(tenant) downs;
    struct fault fault;            // the last connection failure
    struct tenant_db *probe;       // in progress; NULL: none
    struct want_list in_directory; // requests that wait for the directory
    struct directory_find find;
    bool finding;
    UT_hash_handle hh; // by row.name
};

// The pool in a grant.
struct tenant_pool {
    struct tenant *tenant;
    struct grant *grant;
    struct tenant_db *db;
    uint64_t identity; // of the row that the connections were opened for
    int64_t added_us;  // likewise
};

// One use of a pool.
struct tenant_ref {
    struct tenant_pool *pool;
    bool failed; // a call of this user failed
};

struct tenant_pools {
    uv_loop_t *loop;
    struct tenant_pools_conf conf;
    struct tenant_db_conf db;
    struct breaker_conf breaker;
    struct grants *grants;
    struct tenant *tenants;
    TAILQ_HEAD(, tenant) down;
    uv_timer_t tick;
    struct directory_changes changes;
    bool reading;         // a directory read is in progress
    bool reading_all;     // it reads all rows, not only recent changes
    unsigned read_number; // number of the last directory read
    uint64_t read_us, next_read_us;
    uint64_t last_read_us; // start of the last successful directory read
    uint64_t last_identity;
    unsigned n_finding, n_probes;
    struct tenant_pools_stats stats;
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// pools.c
void tenant_trip(struct tenant *t, const struct fault *why, bool hard); // the database failed
void tenant_recovered(struct tenant *t);       // the database replies again
void tenant_free_if_unknown(struct tenant *t); // may free it
void pools_close_if_done(struct tenant_pools *p);
// probe.c: probes the databases whose breaker is open.
void tenant_probe_due(struct tenant_pools *p, uint64_t now_us);

#endif
