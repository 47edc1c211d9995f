// retry_metrics.c: what became of failed deliveries, for /metrics/prometheus.
#include <stdio.h>

#include "api/api_int.h"
#include "api/monitoring/totals.h"
#include "http/prom_text.h"

static uint64_t retries_after(const struct api *a, unsigned i)
{
    return counter_get(&broker_stats(a->broker)->retries[i]);
}

static uint64_t exhausted(const struct api *a, unsigned i)
{
    (void)i;
    return counter_get(&broker_stats(a->broker)->exhausted);
}

void retries_expose(const struct api_shared *s, struct buf *out)
{
    char labels[32];

    prom_family(out, "queen_retries_scheduled_total", "counter",
                "failed deliveries that are retried by schedule, by the attempt that failed");
    for (unsigned i = 0; i < RETRY_ATTEMPTS; i++) {
        uint64_t n = api_sum(s, retries_after, i);
        snprintf(labels, sizeof labels, "attempt=\"%u%s\"", i + 1,
                 i + 1 == RETRY_ATTEMPTS ? "+" : "");
        if (n > 0 || i == 0)
            prom_u64(out, "queen_retries_scheduled_total", labels, n);
    }
    prom_single(out, "queen_retries_exhausted_total", "counter",
                "failed deliveries after which there was no other attempt",
                api_sum(s, exhausted, 0));
}
