// event.h: reads one event and checks it against the rules.
//
//       {"tenant":"acme", "id":"<uuid>", "type":"visit.recorded", "at":"2026-...Z",
//       "data":{...}}
#ifndef QUEEN_INGEST_EVENT_H
#define QUEEN_INGEST_EVENT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"
#include "ingest/rules.h"

struct event {
    const struct event_type *type;
    span tenant;
    uint8_t id[16];
    uint8_t customer[16];
    uint8_t row[16]; // id of the row; for events about the customer itself, the customer id
    int64_t at_us;
    int64_t amount; // balance of wallet.changed or delta of wallet.adjusted, in hundredths
    // The fields of the type as JSON for the database; ptr is NULL for an absent field.  In a
    // type that patches, a field may be null.
    span values[EVENT_MAX_FIELDS];
};

// Borrows from text and a.  tenant is the tenant that the event may omit and must otherwise
// repeat; with SPAN_NONE the event must contain one.  f names the invalid member and the reason
// (QE_BAD_PARAM), or reports invalid JSON (QE_BAD_JSON).
MUST_USE int event_read(struct event *e, span text, span tenant, struct arena *a,
                        struct fault *f);

// A time in the future would count as recent for ever, and win over every later event.
// now_us: when the event was sent, so that it has the same fate when it is replayed.
#define EVENT_MAX_AHEAD_US INT64_C(86400000000)
MUST_USE int event_check_time(const struct event *e, int64_t now_us, struct fault *f);

// event_read() of a message of the broker and event_check_time(), with the time at which the
// broker stored it: *stored_us, 0 if unknown.
struct queen_delivery;
MUST_USE int event_read_message(struct event *e, const struct queen_delivery *d, span tenant,
                                struct arena *a, int64_t *stored_us, struct fault *f);

#endif
