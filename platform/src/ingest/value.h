// value.h: one member of an event's data, by its rule.
#ifndef QUEEN_INGEST_VALUE_H
#define QUEEN_INGEST_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"
#include "ingest/rules.h"

#define VALUE_TIME_WANTED "must be a time with zone, as 2026-11-16T04:05:06Z, from 1900 to 2199"

// raw is valid JSON and not null.  out: JSON as it goes to the database, every value in one
// form. money: the hundredths of a FIELD_MONEY that is `balance` or `delta`.  NULL, or why it
// is wrong.
const char *value_read(const struct event_field *field, span raw, struct arena *a, span *out,
                       int64_t *money);

bool value_time(span text, int64_t *unix_us);
span value_time_text(int64_t unix_us, struct arena *a); // a JSON string

#endif
