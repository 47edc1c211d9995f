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
    // The fields of the type as JSON for the database; ptr is NULL for an absent field.
    span values[EVENT_MAX_FIELDS];
};

// Borrows from text and a.  tenant is the tenant that the event may omit and must otherwise
// repeat; with SPAN_NONE the event must contain one.  f names the invalid member and the reason
// (QE_BAD_PARAM), or reports invalid JSON (QE_BAD_JSON).
MUST_USE int event_read(struct event *e, span text, span tenant, struct arena *a,
                        struct fault *f);

#endif
