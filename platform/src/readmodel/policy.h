// policy.h: when a read model is visited next.  Pure: times come in, a time goes out.
//
// With views (all times after the last visit; a visit refreshes):
//
//      change ... change ──debounce──► due      when the writes have settled,
//      last visit ──interval──► due             but not sooner than this,
//      first change ──interval + debounce──►    and not later than this: writes that never
//      settle
//                                               do not keep the view stale
//
// A live model is right at every moment; a visit only looks at samples, every check_us while
// there are changes.  What somebody asks for is due at once.
#ifndef QUEEN_READMODEL_POLICY_H
#define QUEEN_READMODEL_POLICY_H

#include <stdint.h>

#include "readmodel/model.h"

#define POLICY_LAST_RETRY_US (300 * INT64_C(1000000)) // the longest pause after failures
#define POLICY_NEVER         INT64_MAX // as a time that was: it was not; as one to come: it will not

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
    int64_t retry_us;         // the last visit failed: not before this
    int64_t claimed_until_us; // somebody is at it, as far as we know
};

int64_t policy_due_us(const struct policy *p, const struct policy_item *i, bool bulk);
// How long to wait after so many failures in a row (>= 1): 5 s, doubling up to 5 minutes.
int64_t policy_retry_us(unsigned failures);

// The bulk window: a part of every day.
struct bulk_window {
    int from_minute, to_minute; // of the day; equal: there is none.  May go over midnight
    char zone[64];              // name of a time zone
};

// "13:00-14:00" (UTC), "22:30-01:00 Europe/Rome", "": none.  false: anything else.
bool bulk_window_parse(span text, struct bulk_window *w);
bool bulk_window_has(const struct bulk_window *w, int minute);

#endif
