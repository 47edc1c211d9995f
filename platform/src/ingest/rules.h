// rules.h: the event types and the fields of each.
//
// The only definition in C.  platform/docs/events/*.json, the schemas for producers, are
// generated from it (tests/unit/platform/ingest/print_schemas.c).
#ifndef QUEEN_INGEST_RULES_H
#define QUEEN_INGEST_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum field_kind {
    FIELD_UUID,
    FIELD_TEXT,  // up to max characters
    FIELD_INT,   // min to max
    FIELD_MONEY, // at most two decimals; min to max, in hundredths
    FIELD_BOOL,
    FIELD_DATE, // years 1900 to 2199, as for all times
    FIELD_TIME,
    FIELD_TAGS,   // up to 64 texts of up to max characters
    FIELD_CHOICE, // one of choices
};

enum { EVENT_MAX_FIELDS = 20, EVENT_MAX_TAGS = 64 };

struct event_field {
    const char *name;
    enum field_kind kind;
    bool required; // other fields may be absent or null
    int64_t min, max;
    const char *const *choices; // ends with NULL
    bool numbered;              // the table stores the position among the choices, from 1
};

// The tables that events are written to, in the order of the parameters of crm.ingest.
enum event_table {
    TABLE_CUSTOMERS,
    TABLE_PATCHES, // of customers
    TABLE_SUBSCRIPTIONS,
    TABLE_WALLETS,
    TABLE_ADJUSTMENTS,
    TABLE_PACKAGES,
    TABLE_TRANSACTIONS,
    TABLE_VISITS,
    TABLE_PURCHASES,
    N_TABLES,
    TABLE_NONE = N_TABLES, // customer.deleted
};

// The first field of each type is the customer's uuid.  The second is the id of the row, for
// types that have one.
struct event_type {
    const char *name;
    const char *about; // one sentence for the documentation
    enum event_table table;
    bool appends; // every event is a row; otherwise one row per id, and the newest event wins
    bool patches; // an absent member leaves its column as it is, and null empties it
    const struct event_field *fields;
    unsigned n_fields;
};

extern const struct event_type event_types[];
extern const unsigned n_event_types;

const struct event_type *event_type_find(span name); // NULL if unknown

#endif
