// series.h: reading samples of the Prometheus text that a server exposes.
#ifndef QUEEN_CLI_SERIES_H
#define QUEEN_CLI_SERIES_H

#include <stdbool.h>

#include "base/span.h"

// The next sample at or after *text whose name is `name`, or that begins with all of it if it
// contains labels ("x{op=\"push\"}"). Returns false if there is none.
// *labels: between the braces, with escapes; may be NULL.
bool series_next(span *text, const char *name, span *labels, double *value);
double series_sum(span text, const char *name);
bool series_has(span text, const char *name);
// The largest sample and its labels; 0 and SPAN_NONE if there is none.
double series_max(span text, const char *name, span *labels);

#endif
