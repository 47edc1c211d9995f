// trace_metrics.c: how the export of traces is doing, for Prometheus.
#include "api/api_int.h"
#include "http/prom_text.h"
#include "trace/sink.h"

void traces_expose(const struct api_shared *s, struct buf *out)
{
    if (!s->collector)
        return;
    struct collector_stats stats = collector_stats(s->collector);
    prom_family(out, "queen_trace_spans_total", "counter",
                "spans for OpenTelemetry, by result");
    prom_u64(out, "queen_trace_spans_total", "result=\"sent\"", stats.sent);
    prom_u64(out, "queen_trace_spans_total", "result=\"dropped\"", stats.dropped);
    prom_single(out, "queen_trace_queued_bytes", "gauge", "spans that wait for the collector",
                stats.queued_bytes);
}
