// rules.h: which events there are, and what each may carry.
//
// The one place where this is said in C; platform/docs/events/*.json say the same for
// producers, and are written from here (tests/unit/platform/ingest/print_schemas.c).
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
    FIELD_DATE, // years 1900 to 2199, as in all times
    FIELD_TIME,
    FIELD_TAGS,   // up to 64 texts of up to max characters
    FIELD_CHOICE, // one of a few words
};

enum { EVENT_MAX_FIELDS = 20, EVENT_MAX_TAGS = 64 };

struct event_field {
    const char *name;
    enum field_kind kind;
    bool required; // others may be left out, or null
    int64_t min, max;
    const char *const *choices; // NULL at the end
    bool numbered;              // the table holds the place among the choices, from 1
};

// Where the rows of a type go: the parameters of crm.ingest_2, in their order.
enum event_table {
    TABLE_CUSTOMERS,
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

// The first field of each is the customer's uuid; of those with an id, the second.
struct event_type {
    const char *name;
    const char *about; // one sentence
    enum event_table table;
    bool appends; // else there is one row for each id, and the last event wins
    const struct event_field *fields;
    unsigned n_fields;
};

extern const struct event_type event_types[];
extern const unsigned n_event_types;

const struct event_type *event_type_find(span name); // or NULL

#endif
