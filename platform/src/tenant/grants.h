// grants.h: decides which tenants may have a pool.  Contains only rules: no connections, no
// clock.
//
//                      ┌───────────────────────────────────────────────┐
//       get ──► QUEUED ┴─ room ──► OPENING ──► READY ⇄ CHECKING        │
//                                     │          │         └ unhealthy ┤ (its pool drains)
//                                     └ failed ──┴─ evicted, idle ──► freed
//
// An entry represents a tenant.  It exists while the tenant has a pool or a request waits for
// one. A pool needs a grant.  A grant that must not be handed out again (evicted,
// unhealthy, outdated credentials) is detached from its entry and drains: it closes when its
// last user returns it.
//
// Invariants:
//   - The number of grants in all states, closing ones included, is at most max.
//   - A grant in use is never closed.
//   - Every request gets exactly one result, in order of arrival among those of a tenant.
//   - Tenants get room in the order in which they began to wait for it.
//   - The grant that has been idle longest is evicted first.
//
// The owner performs the actions (struct grants_acts) and reports their results.  An action
// never reports from inside itself; `finish` may call grants_get() and grants_put().
#ifndef QUEEN_TENANT_GRANTS_H
#define QUEEN_TENANT_GRANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "tenant/pools.h"

struct grants;

enum grant_state { GRANT_OPENING, GRANT_READY, GRANT_CHECKING, GRANT_DRAINING, GRANT_CLOSING };

struct grant {
    enum grant_state state;
    unsigned refs;
    bool acting;                // open or check has not reported yet
    uint64_t idle_since_us;     // valid while refs is 0
    struct tenant_entry *entry; // NULL: draining or closing
    void *owner;                // for the caller
    TAILQ_ENTRY(grant) all, idle;
};

TAILQ_HEAD(want_list, tenant_want);
struct tenant_entry {
    void *owner; // for the caller
    struct grant *grant;
    struct want_list wants; // waiting requests, in order
    bool queued;            // waits for room
    TAILQ_ENTRY(tenant_entry) queue;
    struct grants *grants;
};
void tenant_entry_init(struct tenant_entry *e, struct grants *s, void *owner);

struct grants_acts {
    void (*open)(void *ctx, struct grant *s);  // then grants_opened()
    void (*check)(void *ctx, struct grant *s); // then grants_checked()
    void (*close)(void *ctx, struct grant *s); // then grants_closed()
    // Result of a request: with status 0 it uses s from now on; otherwise s is NULL.
    void (*finish)(void *ctx, struct tenant_want *w, int status, struct grant *s);
};

enum grants_why {
    GRANTS_NO_ROOM,
    GRANTS_IDLE,
    GRANTS_UNHEALTHY,
    GRANTS_OUTDATED,
    GRANTS_FAILED
};
struct grants_counts {
    uint64_t hits, misses; // requests that found a pool, and those that waited for one to open
    uint64_t waits;        // requests that found no room
    uint64_t failed_opens, failed_checks;
    uint64_t closed[GRANTS_FAILED + 1]; // by reason
    unsigned n_grants, n_idle, n_closing, n_queued, n_waiting;
};

struct grants *grants_new(unsigned max, const struct grants_acts *acts, void *ctx);
void grants_free(struct grants *s); // no grants and requests may be left

// Hands the entry's pool to w, immediately if it is ready and must_check is false; otherwise w
// waits until w->deadline_us.
void grants_get(struct grants *s, struct tenant_entry *e, struct tenant_want *w,
                bool must_check);
void grants_put(struct grants *s, struct grant *grant, uint64_t now_us);
void grants_cancel(struct grants *s, struct tenant_want *w);

void grants_opened(struct grants *s, struct grant *grant, int status, uint64_t now_us);
void grants_checked(struct grants *s, struct grant *grant, bool healthy, uint64_t now_us);
void grants_closed(struct grants *s, struct grant *grant); // frees it

// Stops handing out the entry's pool (unhealthy or outdated credentials).  Waiting requests get
// a new one.
void grants_retire(struct grants *s, struct tenant_entry *e, enum grants_why why);
// Fails the waiting requests of this entry with status.
void grants_refuse(struct grants *s, struct tenant_entry *e, int status);
// Fails requests past their deadline with QE_BUSY and closes pools that were idle for idle_us.
void grants_tick(struct grants *s, uint64_t now_us, uint64_t idle_us);
// Shutdown: fails all requests with QE_STOPPING, closes idle grants and opens no more.
void grants_stop(struct grants *s);
bool grants_is_empty(const struct grants *s); // no grant is left

struct grants_counts grants_counts(const struct grants *s);
bool grants_is_unused(const struct tenant_entry *e); // neither a pool nor a request

#endif
