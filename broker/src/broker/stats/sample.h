// sample.h: gauges looked at every second, summed up every minute.
//
// A set of gauges with dotted names; written as a tree of objects whose leaves are
// {"avg","min","max","last"}.
#ifndef QUEEN_BROKER_SAMPLE_H
#define QUEEN_BROKER_SAMPLE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/usage.h"

struct gauge {
    uint64_t n;
    double sum, min, max, last;
};
void gauge_add(struct gauge *g, double v);
double gauge_avg(const struct gauge *g); // 0 when there is nothing

// names[i] belongs to gauges[i]; names with a common beginning stand together.  Gauges without
// a value are left out; nothing at all is "{}".
void gauges_put(struct buf *out, const struct gauge *gauges, const char *const *names,
                unsigned n);

// Share of one processor between two readings, in hundredths of a percent (10000: all of one).
double usage_share(uint64_t before_us, uint64_t after_us, uint64_t passed_us);

#endif
