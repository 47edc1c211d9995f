// stats.h: counts events by type and outcome.
#ifndef QUEEN_INGEST_STATS_H
#define QUEEN_INGEST_STATS_H

#include "base/metric.h"
#include "ingest/bundle.h"
#include "ingest/rules.h"

enum ingest_outcome {
    OUTCOME_APPLIED,
    OUTCOME_DUPLICATE,
    OUTCOME_BAD,
    OUTCOME_HELD,
    N_OUTCOMES
};
enum { INGEST_MAX_TYPES = 16 };

struct ingest_stats {
    // by type (index in event_types; the entry after the last is for unknown types) and outcome
    struct counter events[INGEST_MAX_TYPES][N_OUTCOMES];
    struct histogram visible_us; // from the push, by the broker's clock, to the commit
    struct histogram batch;      // events per batch of a partition
};

// type NULL: unknown
void ingest_count(struct ingest_stats *s, const struct event_type *type,
                  enum ingest_outcome outcome);
// Counts an item with a final outcome; not for ITEM_FAILED.
void ingest_count_item(struct ingest_stats *s, const struct item *item);

#endif
