// GET /metrics: a few numbers as JSON.  GET /metrics/prometheus: all metrics.
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/usage.h"
#include "http/prom_text.h"
#include "platform/platform_int.h"
#include "json/write.h"

static double uptime_s(const struct platform *p)
{
    return (double)(clock_mono_us() - p->start_us) / 1e6;
}

static void metrics_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct usage used = usage_read();
    struct buf out = {0};

    buf_printf(&out, "{\"uptime\":%llu,\"requests\":{\"total\":%llu}",
               (unsigned long long)uptime_s(p),
               (unsigned long long)counter_get(&http_server_stats(p->http)->requests));
    buf_printf(&out, ",\"memory\":{\"rss\":%llu},\"cpu\":{\"user\":",
               (unsigned long long)used.resident_bytes);
    js_put_number(&out, (double)used.user_us / 1e6);
    buf_put_lit(&out, ",\"system\":");
    js_put_number(&out, (double)used.system_us / 1e6);
    buf_putc(&out, '}');
    for (unsigned i = 0; platform_parts[i]; i++)
        if (platform_parts[i]->put_json)
            platform_parts[i]->put_json(p, &out);
    buf_putc(&out, '}');
    http_reply_json(req, 200, &out);
}

static void put_process(struct platform *p, struct buf *out)
{
    struct usage used = usage_read();
    const struct http_server_stats *http = http_server_stats(p->http);

    prom_family(out, "queen_platform_build_info", "gauge", "1, with the version as label");
    prom_u64(out, "queen_platform_build_info", "version=\"" QUEEN_VERSION "\"", 1);
    log_report_dropped();
    prom_single(out, "queen_platform_log_lines_dropped_total", "counter",
                "log lines dropped because their reader is too slow", log_dropped());
    prom_single(out, "queen_platform_uptime_seconds", "gauge", "seconds since the start",
                (uint64_t)uptime_s(p));
    prom_single(out, "queen_platform_cpu_user_microseconds_total", "counter",
                "processor time spent in the program", used.user_us);
    prom_single(out, "queen_platform_cpu_system_microseconds_total", "counter",
                "processor time spent in the kernel", used.system_us);
    prom_single(out, "queen_platform_resident_memory_bytes", "gauge", "resident memory",
                used.resident_bytes);
    prom_single(out, "queen_platform_control_database_up", "gauge",
                "1 if the control database is reachable", platform_is_up(p));
    prom_single(out, "queen_platform_http_connections", "gauge", "open client connections",
                counter_get(&http->accepted) - counter_get(&http->closed));
    prom_single(out, "queen_platform_http_connections_crowded_total", "counter",
                "connections closed because their address had too many",
                counter_get(&http->crowded));
    prom_single(out, "queen_platform_http_received_bytes_total", "counter",
                "bytes from clients", counter_get(&http->bytes_in));
    prom_single(out, "queen_platform_http_sent_bytes_total", "counter", "bytes to clients",
                counter_get(&http->bytes_out));
    prom_single(out, "queen_platform_http_slow_readers_closed_total", "counter",
                "connections closed because too many bytes of answers were unread",
                counter_get(&http->evicted));
}

static void prometheus_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct buf out = {0};

    put_process(p, &out);
    observe_expose(p, &out);
    for (unsigned i = 0; platform_parts[i]; i++)
        if (platform_parts[i]->expose)
            platform_parts[i]->expose(p, &out);
    http_reply_text(req, 200, SPAN("text/plain; version=0.0.4; charset=utf-8"), &out);
}

const struct http_route platform_metrics = {.verb = HTTP_GET,
                                            .path = "/metrics",
                                            .detail = true,
                                            .op = "metrics",
                                            .handle = metrics_handle};
const struct http_route platform_prometheus = {.verb = HTTP_GET,
                                               .path = "/metrics/prometheus",
                                               .detail = true,
                                               .op = "prometheus",
                                               .handle = prometheus_handle};
