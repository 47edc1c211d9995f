// policy.h: computes when a read model is visited next.  Pure functions of times.
//
// With views a visit refreshes.  All times count from the last visit:
//
//       last change ──debounce──► due            when the writes have settled,
//       last visit ──interval──► due             but not earlier than this,
//       first change ──interval + debounce──►    and not later than this, so that continuous
//                                                writes do not keep the view stale
//
// A live model is always current.  A visit only compares samples, every check_us while there
// are changes.  A requested visit is due immediately.
#ifndef QUEEN_READMODEL_POLICY_H
#define QUEEN_READMODEL_POLICY_H

#include <stdint.h>

#include "readmodel/model.h"

#define POLICY_LAST_RETRY_US (300 * INT64_C(1000000)) // longest pause after failures
#define POLICY_NEVER         INT64_MAX // no such time, in the past or in the future

struct policy {
    struct {
        int64_t interval_us, debounce_us;
    } pace[N_MODELS];
    int64_t bulk_debounce_us; // inside the bulk window
    int64_t check_us;
};

struct policy_item { // microseconds since 1970 by the control database's clock, or POLICY_NEVER
    enum model model;
    bool live;
    int64_t wanted_us;
    int64_t first_change_us, last_change_us; // since the last visit
    int64_t visited_us;
    int64_t retry_us;         // after a failed visit: not before this time
    int64_t claimed_until_us; // end of the last known claim
};

int64_t policy_due_us(const struct policy *p, const struct policy_item *i, bool bulk);
// Pause after this many consecutive failures (>= 1): 5 s, doubling up to 5 minutes.
int64_t policy_retry_us(unsigned failures);

// The bulk window: a part of every day with a longer debounce.
struct bulk_window {
    int from_minute, to_minute; // of the day; equal: no window.  May span midnight
    char zone[64];              // name of a time zone
};

// Parses "13:00-14:00" (UTC), "22:30-01:00 Europe/Rome" or "" (none).  Returns false for
// anything else.
bool bulk_window_parse(span text, struct bulk_window *w);
bool bulk_window_has(const struct bulk_window *w, int minute);

#endif
