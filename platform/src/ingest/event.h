// event.h: one event, read and checked against the rules.
//
//      {"tenant":"acme", "id":"<uuid>", "type":"visit.recorded", "at":"2026-...Z",
//      "data":{...}}
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
    uint8_t row[16]; // the row's id; the customer's for events of the customer
    int64_t at_us;
    int64_t amount; // of wallet.changed and wallet.adjusted: balance or delta, in hundredths
    // As they go to the database: JSON, one for each field of the type; ptr NULL: not given.
    span values[EVENT_MAX_FIELDS];
};

// Borrows from text and a.  tenant: what the event must say or may leave out; SPAN_NONE: it
// must name one.  f says which member is wrong and why (QE_BAD_PARAM), or that it is no JSON
// object.
MUST_USE int event_read(struct event *e, span text, span tenant, struct arena *a,
                        struct fault *f);

#endif
