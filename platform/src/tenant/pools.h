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

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "base/err.h"
#include "base/metric.h"
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
    TAILQ_ENTRY(tenant_want) link, waiting;
    struct tenant_pools *pools;
    struct tenant_entry *entry;
    uint64_t asked_us, deadline_us, turn;
    unsigned char state;
    bool missed; // a pool had to be made for it
};

struct database;

struct tenant_pools_conf {       // what it points to is borrowed until closed
    struct pg_pool *control;     // connections to the control database
    const struct database *home; // where tenants without an address of their own are
    unsigned max_pools;
    unsigned idle_ms; // an unused pool is closed after this
    unsigned wait_ms; // a want without a time limit of its own waits so long
    unsigned max_conns, connect_timeout_ms, conn_idle_ms, statement_timeout_ms; // of one pool
    unsigned health_after_ms;            // a pool not heard of for so long is checked first
    unsigned breaker_failures, probe_ms; // see breaker.h
    unsigned directory_ms;               // how often changes by other processes are looked for
};

struct tenant_pools *tenant_pools_open(uv_loop_t *loop, const struct tenant_pools_conf *conf);
// Wants are told QE_STOPPING, pools close as they are put back, then closed is called.  The
// control pool must stay open until then.
void tenant_pools_close(struct tenant_pools *p, void (*closed)(void *ctx), void *ctx);

// name is copied as far as it is needed after the return.
void tenant_get(struct tenant_pools *p, span name, struct tenant_want *w);
void tenant_want_cancel(struct tenant_want *w); // got is not called any more
void tenant_put(struct tenant_ref *r);

enum tenant_kind tenant_ref_kind(const struct tenant_ref *r);
span tenant_ref_name(const struct tenant_ref *r);
// A number for what the directory says of a tenant.  Another tenant of the same name, or the
// same one at another address, gets another number, and no number is used twice by a process.
// tenant_identity() returns 0 if the tenant is not known now.
uint64_t tenant_identity(struct tenant_pools *p, span name);
uint64_t tenant_ref_identity(const struct tenant_ref *r);
// For pg_pool_exec() and my_pool_exec() while the ref is held; NULL for the other kind.
struct pg_pool *tenant_ref_pg(const struct tenant_ref *r);
struct my_pool *tenant_ref_my(const struct tenant_ref *r);
// What the directory says of the tenant has changed, by this process: look again.  A pool of
// the old row stays with those who hold it and is given to nobody else.
void tenant_changed(struct tenant_pools *p, span name);

// A call failed like this: QE_PG_AWAY and QE_PG_GONE count against the tenant's database.
void tenant_ref_failed(struct tenant_ref *r, int status);

// ---- figures ----

struct tenant_pools_stats {
    uint64_t hits, misses, waits, timeouts;
    uint64_t evicted, expired, failed_opens, failed_checks, replaced; // expired: idle
    uint64_t refused, breakers_opened; // refused: asked for while the breaker was open
    unsigned n_pools, n_idle, n_held, n_closing, n_waiting, n_down, n_known;
    struct histogram hit_us, miss_us; // from tenant_get() to got(0)
};
const struct tenant_pools_stats *tenant_pools_stats(struct tenant_pools *p); // of now
// One by one: each tenant with a pool or an open breaker.
struct tenant_pool_view {
    span name;
    enum tenant_kind kind;
    const char *state; // "opening", "ready", "checking", "down"
    unsigned refs, conns, waiting;
    uint64_t idle_ms, down_ms;
    const char *error; // of the last failure; ""
};
void tenant_pools_each(struct tenant_pools *p,
                       void (*view)(void *ctx, const struct tenant_pool_view *v), void *ctx);

#endif
