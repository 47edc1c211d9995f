// pools.h: connections to the databases of tenants.
//
//      tenant_get ──► directory ──► cached? ── yes ─► (health check) ──► got(ref)
//                                     │ no                               │
//                                     └─► room ──► open ──► got(ref)     tenant_put
//                                          └ no: wait, first come first served
//
// A few tenants of many have a pool at a time: at most `max_pools` exist, idle ones are closed
// after a while, and the one that was used longest ago makes room for another.  A pool that
// somebody holds is never closed: when all are held, who comes next waits, with a time limit.
// Whoever asks for a tenant whose pool is being made waits for that one.  A tenant whose
// database is down is refused at once (QE_TENANT_DOWN) while a probe looks for it in the
// background.
//
// Everything here belongs to one loop.
#ifndef QUEEN_TENANT_POOLS_H
#define QUEEN_TENANT_POOLS_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/span.h"

enum tenant_kind { TENANT_PG, TENANT_MYSQL };

struct my_pool;
struct pg_pool;
struct tenant_pools;
struct tenant_ref; // a held pool: never closed until tenant_put()

// In the caller's memory until got is called, or the want is cancelled.
struct tenant_want {
    // Exactly once, at once (from inside tenant_get) or later.  status 0: ref is given, put it
    // back with tenant_put().  Else ref is NULL and why (borrowed) names the tenant: QE_TENANT_
    // UNKNOWN, QE_TENANT_DOWN, QE_BUSY (no room within the time), QE_STOPPING, QE_PG_AWAY (the
    // control database), QE_CONF (a credential that cannot be read).
    void (*got)(struct tenant_want *w, int status, struct tenant_ref *ref,
                const struct fault *why);
    void *owner;
    unsigned timeout_ms; // 0: the pools' default

    // private
    TAILQ_ENTRY(tenant_want) link;
    struct tenant_entry *entry;
    uint64_t asked_us, deadline_us;
    unsigned char state, fate;
};

// name is copied as far as it is needed after the return.
void tenant_get(struct tenant_pools *p, span name, struct tenant_want *w);
void tenant_want_cancel(struct tenant_want *w); // got is not called any more
void tenant_put(struct tenant_ref *r);

enum tenant_kind tenant_ref_kind(const struct tenant_ref *r);
span tenant_ref_name(const struct tenant_ref *r);
// For pg_pool_exec() and my_pool_exec() while the ref is held; NULL for the other kind.
struct pg_pool *tenant_ref_pg(const struct tenant_ref *r);
struct my_pool *tenant_ref_my(const struct tenant_ref *r);
// A call failed like this: QE_PG_AWAY and QE_PG_GONE count against the tenant's database.
void tenant_ref_failed(struct tenant_ref *r, int status);

#endif
