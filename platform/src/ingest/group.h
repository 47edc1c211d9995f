// group.h: events of one tenant that came together, in order, and what became of each.
//
// Who reads events (feed.c, lane.c) makes groups and gives them to the writer; groups of
// several partitions may end up in one transaction.
#ifndef QUEEN_INGEST_GROUP_H
#define QUEEN_INGEST_GROUP_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "ingest/event.h"

enum item_outcome {
    ITEM_OPEN,
    ITEM_APPLIED,   // now
    ITEM_DUPLICATE, // before
    ITEM_BAD,       // never: the data, or an unknown tenant
    ITEM_FAILED,    // not now: the tenant's database is away, or too slow
};

struct item {
    struct event event;
    span partition;      // of the queue of events
    int64_t position_us; // when the broker took it
    enum item_outcome outcome;
    span why; // of ITEM_BAD and ITEM_FAILED; lives as long as the group
    struct group *group;
    STAILQ_ENTRY(item) link; // the writer's
};
STAILQ_HEAD(item_list, item);

struct group {
    span tenant;
    struct arena *arena; // of its items
    struct item *items;
    unsigned n, n_open;
    // All items have an outcome.  Never from inside writer_add().
    void (*done)(struct group *g);
    void *owner;
};

#endif
