// stats.h: what became of events, in numbers.
#ifndef QUEEN_INGEST_STATS_H
#define QUEEN_INGEST_STATS_H

#include "base/metric.h"
#include "ingest/group.h"
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
    // by type (in the order of event_types; the one behind the last: not known) and outcome
    struct counter events[INGEST_MAX_TYPES][N_OUTCOMES];
    struct histogram visible_us; // from the broker's time of the push to the commit
    struct histogram batch;      // events of a batch of a partition
};

// type NULL: not known
void ingest_count(struct ingest_stats *s, const struct event_type *type,
                  enum ingest_outcome outcome);
// An item whose outcome is final; not for ITEM_FAILED.
void ingest_count_item(struct ingest_stats *s, const struct item *item);

#endif
