// audience_metrics.c: metrics of segments and triggers.
#include <stdio.h>

#include "http/prom_text.h"
#include "platform/audience.h"
#include "platform/platform_int.h"

void audience_expose(struct platform *p, struct buf *out)
{
    static const char *const kinds[] = {"campaign", "watch"};
    const struct audience_state *a = p->audience;
    char labels[64];

    if (!a)
        return;
    prom_family(out, "queen_platform_segment_query_seconds", "histogram",
                "duration of segment queries, by path");
    for (unsigned i = PATH_LIVE; i <= PATH_FALLBACK; i++) {
        snprintf(labels, sizeof labels, "path=\"%s\"", audience_path_name(i));
        prom_histogram(out, "queen_platform_segment_query_seconds", labels, &a->queries.us[i],
                       1e-6);
    }
    prom_single(out, "queen_platform_segment_query_failures_total", "counter",
                "segment queries that failed", counter_get(&a->queries.failed));
    prom_single(out, "queen_platform_segment_cached_total", "counter",
                "counts served from the cache", counter_get(&a->cached));
    prom_family(out, "queen_platform_triggers_total", "counter",
                "triggers by outcome: done, failed (retried later), hopeless (dead letter)");
    for (unsigned i = 0; i < countof(kinds); i++) {
        const struct {
            const char *outcome;
            const struct counter *n;
        } ends[] = {
            {"done", &a->done[i]}, {"failed", &a->failed[i]}, {"hopeless", &a->hopeless[i]}};
        for (unsigned e = 0; e < countof(ends); e++) {
            snprintf(labels, sizeof labels, "kind=\"%s\",outcome=\"%s\"", kinds[i],
                     ends[e].outcome);
            prom_u64(out, "queen_platform_triggers_total", labels, counter_get(ends[e].n));
        }
    }
}

void audience_put_json(struct platform *p, struct buf *out)
{
    const struct audience_state *a = p->audience;

    if (!a)
        return;
    buf_put_lit(out, ",\"segments\":{");
    for (unsigned i = PATH_LIVE; i <= PATH_FALLBACK; i++)
        buf_printf(out, "\"%s\":%llu,", audience_path_name(i),
                   (unsigned long long)atomic_load_explicit(&a->queries.us[i].n,
                                                            memory_order_relaxed));
    buf_printf(out, "\"cached\":%llu}", (unsigned long long)counter_get(&a->cached));
}
