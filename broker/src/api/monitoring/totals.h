// totals.h: the metrics of all workers, summed.
#ifndef QUEEN_API_TOTALS_H
#define QUEEN_API_TOTALS_H

#include <stdint.h>

#include "api/api.h"
#include "base/metric.h"
#include "base/usage.h"

struct api_process {
    double uptime_s;
    struct usage used;
    uint64_t heap_bytes, heap_used_bytes; // of the C library's allocator
};
struct api_process api_process(const struct api_shared *s);

// Sums the counter (or gauge) that `at` finds in one worker's struct.
uint64_t api_sum(const struct api_shared *s, uint64_t (*at)(const struct api *a, unsigned i),
                 unsigned i);

// The counters that both forms of metrics show.
uint64_t api_http_requests(const struct api *a, unsigned i);
uint64_t api_messages(const struct api *a, unsigned i); // pushed and popped
uint64_t api_db_open(const struct api *a, unsigned i);
uint64_t api_db_busy(const struct api *a, unsigned i);
uint64_t api_db_queued(const struct api *a, unsigned i);

#endif
