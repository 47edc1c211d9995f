// due.h: things that happen at a time: one heap per loop instead of a timer for each.
#ifndef QUEEN_BATCH_DUE_H
#define QUEEN_BATCH_DUE_H

#include <stdbool.h>
#include <stdint.h>

// Embedded in whatever waits.  at_us and expire may be read; the rest is the heap's own.
struct due {
    uint64_t at_us;
    void (*expire)(struct due *d);
    unsigned place; // 1-based; 0: not in the heap
};

struct due_heap {
    struct due **at;
    unsigned n, cap;
};

void due_deinit(struct due_heap *h); // drops its timers
// Adds d, or moves it if it is there already.
void due_set(struct due_heap *h, struct due *d, uint64_t at_us, void (*expire)(struct due *d));
void due_cancel(struct due_heap *h, struct due *d); // nothing if it is not there
static inline bool due_is_set(const struct due *d) { return d->place != 0; }
// Earliest time, or UINT64_MAX.
uint64_t due_next_us(const struct due_heap *h);
// Removes and fires all timers due by now_us.  Timers set meanwhile wait for the next call.
void due_run(struct due_heap *h, uint64_t now_us);

#endif
