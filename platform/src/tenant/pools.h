// pools.h: a bounded cache of connection pools for the databases of tenants.
//
//       tenant_get ──► directory ──► cached? ── yes ─► (health check) ──► got(ref)
//                                      │ no                               │
//                                      └─► room ──► open ──► got(ref)     tenant_put
//                                           └ no: wait, first come first served
//
// At most `max_pools` tenants have a pool.  A pool that is idle for idle_ms is closed.  If
// there is no room, the pool that has been idle longest is closed for the new one.  A pool in
// use is never closed: if all are in use, the next request waits, with a time limit.  Requests
// for a tenant whose pool is being opened wait for that pool.  A tenant whose database is down
// is refused immediately (QE_TENANT_DOWN) while a probe checks it in the background.
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
struct tenant_ref; // a pool in use: never closed before tenant_put()

// In the caller's memory until got is called or the request is cancelled.
struct tenant_want {
    // Called exactly once, from inside tenant_get() or later.  status 0: ref is given, return
    // it with tenant_put().  Otherwise ref is NULL and why (borrowed) names the tenant:
    // QE_TENANT_UNKNOWN, QE_TENANT_DOWN (also: no answer within the time limit), QE_BUSY (no
    // room within it), QE_STOPPING, QE_PG_AWAY (the control database), QE_CONF (unreadable
    // credential).
    void (*got)(struct tenant_want *w, int status, struct tenant_ref *ref,
                const struct fault *why);
    void *owner;
    unsigned timeout_ms; // 0: the default of the pools

    // private
    TAILQ_ENTRY(tenant_want) link, waiting;
    struct tenant_pools *pools;
    struct tenant_entry *entry;
    uint64_t asked_us, deadline_us, turn;
    unsigned char state;
    bool missed; // a pool had to be opened for it
};

struct database;

// Which secrets of the platform's machine a tenant may use, and how they may be sent. Without
// limits, a tenant could name any file or variable and receive it as a password on its host.
struct tenant_auth {
    const char *dir;           // of file: credentials; "": none allowed
    const char *env_prefix;    // of env: credentials; "": none allowed
    const char *ssl_root_cert; // for TLS to tenants
    bool any;                  // allow authentication methods that reveal the password
};

struct tenant_pools_conf {       // pointers are borrowed until closed
    struct pg_pool *control;     // connections to the control database
    const struct database *home; // server of tenants without a URL
    struct tenant_auth auth;
    unsigned max_pools;
    unsigned idle_ms; // an unused pool is closed after this time
    unsigned wait_ms; // default time limit of a request
    unsigned max_conns, connect_timeout_ms, conn_idle_ms, statement_timeout_ms; // of one pool
    unsigned health_after_ms; // a pool without a reply for this long is checked before use
    unsigned breaker_failures, probe_ms; // see breaker.h
    unsigned directory_ms;               // interval for reading changes by other processes
    unsigned directory_window_s;         // each read covers the changes of this time
};

struct tenant_pools *tenant_pools_open(uv_loop_t *loop, const struct tenant_pools_conf *conf);
// Requests fail with QE_STOPPING and pools close when they are returned; then closed is called.
// The control pool must stay open until then.
void tenant_pools_close(struct tenant_pools *p, void (*closed)(void *ctx), void *ctx);

// name is copied if it is needed after the return.
void tenant_get(struct tenant_pools *p, span name, struct tenant_want *w);
void tenant_want_cancel(struct tenant_want *w); // got is not called any more
void tenant_put(struct tenant_ref *r);

enum tenant_kind tenant_ref_kind(const struct tenant_ref *r);
span tenant_ref_name(const struct tenant_ref *r);
// A number for the directory entry of a tenant.  Another tenant of the same name, or the same
// one at another address, gets another number; a process never reuses a number.
// tenant_identity() returns 0 if the tenant is not cached.
uint64_t tenant_identity(struct tenant_pools *p, span name);
uint64_t tenant_ref_identity(const struct tenant_ref *r);
// When it was added to the directory: stays the same if the tenant moves to another address.
int64_t tenant_ref_added_us(const struct tenant_ref *r);
// For pg_pool_exec() and my_pool_exec() while the ref is in use; NULL for the other kind.
struct pg_pool *tenant_ref_pg(const struct tenant_ref *r);
struct my_pool *tenant_ref_my(const struct tenant_ref *r);
// This process has changed the directory entry of the tenant: read it again.  Current users
// keep the pool of the old entry; it is not handed out again.
void tenant_changed(struct tenant_pools *p, span name);

// Reports a failed call: QE_PG_AWAY and QE_PG_GONE count as failures of the tenant's database.
void tenant_ref_failed(struct tenant_ref *r, int status);

// ---- statistics ----

struct tenant_pools_stats {
    uint64_t hits, misses, waits, timeouts;
    uint64_t evicted, expired, failed_opens, failed_checks, replaced; // expired: idle
    uint64_t refused, breakers_opened; // refused: requested while the breaker was open
    unsigned n_pools, n_idle, n_held, n_closing, n_waiting, n_down, n_known;
    struct histogram hit_us, miss_us; // from tenant_get() to got(0)
};
const struct tenant_pools_stats *tenant_pools_stats(struct tenant_pools *p); // current
// Calls the function for each tenant with a pool or an open breaker.
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
