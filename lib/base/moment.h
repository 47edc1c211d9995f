// moment.h: parses points in time, ISO 8601 with a zone (str_format_ts_ms() writes them).
#ifndef QUEEN_BASE_MOMENT_H
#define QUEEN_BASE_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/span.h"

// "2026-11-16T04:05:06.789Z", also with an offset (+01:00, +0100, +01), without seconds, or
// with a space for the T. Digits beyond microseconds are cut off. Returns false for anything
// else, including a date that does not exist and a time without zone.
MUST_USE bool moment_parse(span text, int64_t *unix_us);

#endif
