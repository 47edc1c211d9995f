// slots.h: decides which tenants may have a pool.  Contains only rules: no connections, no
// clock.
//
//                      ┌───────────────────────────────────────────────┐
//       get ──► QUEUED ┴─ room ──► OPENING ──► READY ⇄ CHECKING        │
//                                     │          │         └ unhealthy ┤ (its pool drains)
//                                     └ failed ──┴─ evicted, idle ──► freed
//
// An entry represents a tenant.  It exists while the tenant has a pool or a request waits for
// one. The pool occupies a slot.  A slot that must not be handed out again (evicted, unhealthy,
// outdated credentials) is detached from its entry and drains: it closes when its last user
// returns it.
//
// Invariants:
//   - The number of slots in all states, closing ones included, is at most max.
//   - A slot in use is never closed.
//   - Every request gets exactly one result, in order of arrival among those of a tenant.
//   - Tenants get room in the order in which they began to wait for it.
//   - The slot that has been idle longest is evicted first.
//
// The owner performs the actions (struct slots_acts) and reports their results.  An action
// never reports from inside itself; `finish` may call slots_get() and slots_put().
#ifndef QUEEN_TENANT_SLOTS_H
#define QUEEN_TENANT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "tenant/pools.h"

struct slots;

enum slot_state { SLOT_OPENING, SLOT_READY, SLOT_CHECKING, SLOT_DRAINING, SLOT_CLOSING };

struct slot {
    enum slot_state state;
    unsigned refs;
    bool acting;                // open or check has not reported yet
    uint64_t idle_since_us;     // valid while refs is 0
    struct tenant_entry *entry; // NULL: draining or closing
    void *owner;                // for the caller
    TAILQ_ENTRY(slot) all, idle;
};

TAILQ_HEAD(want_list, tenant_want);
struct tenant_entry {
    void *owner; // for the caller
    struct slot *slot;
    struct want_list wants; // waiting requests, in order
    bool queued;            // waits for room
    TAILQ_ENTRY(tenant_entry) queue;
    struct slots *slots;
};
void tenant_entry_init(struct tenant_entry *e, struct slots *s, void *owner);

struct slots_acts {
    void (*open)(void *ctx, struct slot *s);  // then slots_opened()
    void (*check)(void *ctx, struct slot *s); // then slots_checked()
    void (*close)(void *ctx, struct slot *s); // then slots_closed()
    // Result of a request: with status 0 it uses s from now on; otherwise s is NULL.
    void (*finish)(void *ctx, struct tenant_want *w, int status, struct slot *s);
};

enum slots_why { SLOTS_NO_ROOM, SLOTS_IDLE, SLOTS_UNHEALTHY, SLOTS_OUTDATED, SLOTS_FAILED };
struct slots_counts {
    uint64_t hits, misses; // requests that found a pool, and those that waited for one to open
    uint64_t waits;        // requests that found no room
    uint64_t failed_opens, failed_checks;
    uint64_t closed[SLOTS_FAILED + 1]; // by reason
    unsigned n_slots, n_idle, n_closing, n_queued, n_waiting;
};

struct slots *slots_new(unsigned max, const struct slots_acts *acts, void *ctx);
void slots_free(struct slots *s); // no slots and requests may be left

// Hands the entry's pool to w, immediately if it is ready and must_check is false; otherwise w
// waits until w->deadline_us.
void slots_get(struct slots *s, struct tenant_entry *e, struct tenant_want *w, bool must_check);
void slots_put(struct slots *s, struct slot *slot, uint64_t now_us);
void slots_cancel(struct slots *s, struct tenant_want *w);

void slots_opened(struct slots *s, struct slot *slot, int status, uint64_t now_us);
void slots_checked(struct slots *s, struct slot *slot, bool healthy, uint64_t now_us);
void slots_closed(struct slots *s, struct slot *slot); // frees it

// Stops handing out the entry's pool (unhealthy or outdated credentials).  Waiting requests get
// a new one.
void slots_retire(struct slots *s, struct tenant_entry *e, enum slots_why why);
// Fails the waiting requests of this entry with status.
void slots_refuse(struct slots *s, struct tenant_entry *e, int status);
// Fails requests past their deadline with QE_BUSY and closes pools that were idle for idle_us.
void slots_tick(struct slots *s, uint64_t now_us, uint64_t idle_us);
// Shutdown: fails all requests with QE_STOPPING, closes idle slots and opens no more.
void slots_stop(struct slots *s);
bool slots_is_empty(const struct slots *s); // no slot is left

struct slots_counts slots_counts(const struct slots *s);
bool slots_is_unused(const struct tenant_entry *e); // neither a pool nor a request

#endif
