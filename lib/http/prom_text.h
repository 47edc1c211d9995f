// prom_text.h: the Prometheus text format, version 0.0.4.
#ifndef QUEEN_HTTP_PROM_TEXT_H
#define QUEEN_HTTP_PROM_TEXT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/metric.h"

// Writes HELP and TYPE of a family; type is "counter", "gauge" or "histogram".
void prom_family(struct buf *out, const char *name, const char *type, const char *help);
// One sample; labels without braces ("op=\"push\"") or NULL.
void prom_u64(struct buf *out, const char *name, const char *labels, uint64_t v);
void prom_seconds(struct buf *out, const char *name, const char *labels, double v);
// A family with a single sample.
void prom_single(struct buf *out, const char *name, const char *type, const char *help,
                 uint64_t v);

// The samples of one histogram; labels or NULL. unit 1e-6: observations are microseconds, shown
// as seconds; 1: they are counts. A bucket counts the observations that are certainly not
// above its bound (the steps of struct histogram are up to 6 % wide).
void prom_histogram(struct buf *out, const char *name, const char *labels,
                    const struct histogram *h, double unit);

#endif
