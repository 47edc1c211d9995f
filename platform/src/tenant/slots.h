// slots.h: who may have a pool: the rules alone, without connections, clocks or callbacks into
// the world.
//
//                     ┌───────────────────────────────────────────────┐
//      get ──► QUEUED ┴─ room ──► OPENING ──► READY ⇄ CHECKING        │
//                                    │          │         └ sick ─────┤ (its pool drains)
//                                    └ failed ──┴─ evicted, idle ──► gone
//
// An entry stands for a tenant: it exists while it has a pool or somebody waits for one.  Its
// pool is a slot; a slot that must not be given out any more (evicted, sick, of old
// credentials) is taken from its entry and drains: it is closed when the last holder puts it
// back.
//
// What holds at all times:
// - slots of all states, closing ones too, are never more than max: rather somebody waits;
// - a slot that is held is never closed;
// - a want is told once, in the order of asking among those of a tenant; tenants get room in
// the
//   order in which they began to wait for it;
// - of the idle slots the one that was put back longest ago makes room first.
//
// The owner does what the rules decide (struct slots_acts) and reports back.  An act never
// reports from inside itself; `told` may call slots_get() and slots_put().
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
    uint64_t idle_since_us;     // while refs is 0
    struct tenant_entry *entry; // NULL: draining or closing
    void *owner;                // the pool's, free to use
    TAILQ_ENTRY(slot) all, idle;
};

TAILQ_HEAD(want_list, tenant_want);
struct tenant_entry {
    void *owner; // whose tenant it is, free to use
    struct slot *slot;
    struct want_list wants; // that wait, in order
    bool queued;            // waits for room
    TAILQ_ENTRY(tenant_entry) queue;
    struct slots *slots;
};
void tenant_entry_init(struct tenant_entry *e, struct slots *s, void *owner);

struct slots_acts {
    void (*open)(void *ctx, struct slot *s);  // slots_opened() follows
    void (*check)(void *ctx, struct slot *s); // slots_checked() follows
    void (*close)(void *ctx, struct slot *s); // slots_closed() follows
    // s is held by w now (status 0), or is NULL.
    void (*told)(void *ctx, struct tenant_want *w, int status, struct slot *s);
};

enum slots_why { SLOTS_NO_ROOM, SLOTS_IDLE, SLOTS_SICK, SLOTS_OLD, SLOTS_FAILED };
struct slots_counts {
    uint64_t hits, misses; // gets that found a pool, that had to wait until one was made
    uint64_t waits;        // times that somebody found no room
    uint64_t failed_opens, failed_checks;
    uint64_t closed[SLOTS_FAILED + 1]; // by reason
    unsigned n_slots, n_idle, n_closing, n_queued, n_waiting;
};

struct slots *slots_new(unsigned max, const struct slots_acts *acts, void *ctx);
void slots_free(struct slots *s); // without slots and wants

// Gives w the entry's pool, now if it is ready and must_check is false, or makes it wait until
// w->deadline_us.
void slots_get(struct slots *s, struct tenant_entry *e, struct tenant_want *w, bool must_check);
void slots_put(struct slots *s, struct slot *slot, uint64_t now_us);
void slots_cancel(struct slots *s, struct tenant_want *w);

void slots_opened(struct slots *s, struct slot *slot, int status, uint64_t now_us);
void slots_checked(struct slots *s, struct slot *slot, bool healthy, uint64_t now_us);
void slots_closed(struct slots *s, struct slot *slot); // frees it

// The entry's pool is given out no more (sick, or of old credentials); who waits gets another.
void slots_retire(struct slots *s, struct tenant_entry *e, enum slots_why why);
// Whoever waits for this entry is told status.
void slots_refuse(struct slots *s, struct tenant_entry *e, int status);
// The clock: wants beyond their deadline are told QE_BUSY, pools idle for idle_us are closed.
void slots_tick(struct slots *s, uint64_t now_us, uint64_t idle_us);
// For the end: no more room for anybody; all wants are told QE_STOPPING, idle slots close.
void slots_stop(struct slots *s);
bool slots_is_empty(const struct slots *s); // no slot is left

struct slots_counts slots_counts(const struct slots *s);
bool slots_is_unused(const struct tenant_entry *e); // neither a pool nor a want

#endif
