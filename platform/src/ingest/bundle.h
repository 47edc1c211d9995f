// bundle.h: events of one tenant that arrived together, in order, and the outcome of each.
//
// intake.c and lane_drain.c create bundles and pass them to the writer.  Bundles of several
// partitions may share a transaction.
#ifndef QUEEN_INGEST_BUNDLE_H
#define QUEEN_INGEST_BUNDLE_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "ingest/event.h"

enum item_outcome {
    ITEM_OPEN,
    ITEM_APPLIED,   // applied now
    ITEM_DUPLICATE, // applied earlier
    ITEM_BAD,       // never applicable: invalid data or unknown tenant
    ITEM_FAILED,    // not applied: the tenant's database is unavailable or too slow
};

struct item {
    struct event event;
    span partition;      // of the event queue
    int64_t position_us; // when the broker stored it
    bool is_held;        // it comes from a lane and does not move the checkpoint
    bool is_behind;      // ITEM_FAILED because the tenant's database lost committed events
    enum item_outcome outcome;
    span why; // for ITEM_BAD and ITEM_FAILED; lives as long as the bundle
    struct bundle *bundle;
    STAILQ_ENTRY(item) link; // used by the writer
};
STAILQ_HEAD(item_list, item);

struct bundle {
    span tenant;
    struct arena *arena; // arena of the items
    struct item *items;
    unsigned n, n_open;
    // Called when all items have an outcome, never from inside writer_add().
    void (*done)(struct bundle *g);
    void *owner;
};

#endif
