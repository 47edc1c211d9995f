// moment.h: points in time from text, ISO 8601 with a zone (to text: str_format_ts_ms).
#ifndef QUEEN_BASE_MOMENT_H
#define QUEEN_BASE_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/span.h"

// "2026-11-16T04:05:06.789Z", also with an offset (+01:00, +0100, +01), without seconds or with
// a space for the T.  Digits beyond microseconds are cut off.  false: anything else, a day that
// is not in the calendar and a time without zone among it.
MUST_USE bool moment_parse(span text, int64_t *unix_us);

#endif
