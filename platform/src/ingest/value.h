// value.h: checks one member of an event's data against its rule.
#ifndef QUEEN_INGEST_VALUE_H
#define QUEEN_INGEST_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "ingest/rules.h"

#define VALUE_TIME_WANTED \
    "must be a time with zone such as 2026-11-16T04:05:06Z, from 1900 to 2199"

// raw is valid JSON and not null.  out receives the value as JSON for the database, in normal
// form. money receives the hundredths of a required FIELD_MONEY.  Returns NULL, or why the
// value is invalid.
const char *value_read(const struct event_field *field, span raw, struct arena *a, span *out,
                       int64_t *money);

bool value_time(span text, int64_t *unix_us);
span value_time_text(int64_t unix_us, struct arena *a); // a JSON string

#endif
