// snapshot.h: metrics from the database for /metrics/prometheus, cached for a moment.
//
// Each worker keeps its own.  However often it is scraped, the database is queried at most
// every SNAPSHOT_FRESH_MS per worker (twice per period of the metrics, if that is shorter), by
// one call at a time; requests meanwhile get the cached values.
#ifndef QUEEN_API_SNAPSHOT_H
#define QUEEN_API_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { SNAPSHOT_FRESH_MS = 5000, SNAPSHOT_USABLE_MS = 60000 };

struct snapshot {
    struct buf text;
    uint64_t got_us; // monotonic; 0: never
    bool asking;
};

// period_ms: of the metrics in the database.
bool snapshot_is_fresh(const struct snapshot *s, uint64_t now_us, unsigned period_ms);
// Appends it, unless it is too old.
void snapshot_put(const struct snapshot *s, uint64_t now_us, struct buf *out);
void snapshot_deinit(struct snapshot *s);

#endif
