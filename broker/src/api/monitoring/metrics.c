// GET /metrics: a handful of numbers as JSON.
#include <math.h>

#include "api/api_int.h"
#include "api/monitoring/totals.h"
#include "json/write.h"

static void metrics_handle(struct http_req *req);

// Average per second since the start, to one decimal.
static double rate(uint64_t total, double seconds)
{
    return seconds > 0 ? round((double)total / seconds * 10) / 10 : 0;
}

static void put_total(struct buf *out, const char *name, uint64_t total, double seconds)
{
    buf_printf(out, ",\"%s\":{\"total\":%llu,\"rate\":", name, (unsigned long long)total);
    js_put_number(out, rate(total, seconds));
    buf_putc(out, '}');
}

static void metrics_handle(struct http_req *req)
{
    const struct api *api = http_req_app(req);
    const struct api_shared *s = api->shared;
    struct api_process p = api_process(s);
    uint64_t open = api_sum(s, api_db_open, 0), busy = api_sum(s, api_db_busy, 0);
    struct buf out = {0};

    buf_printf(&out, "{\"uptime\":%llu", (unsigned long long)p.uptime_s);
    put_total(&out, "requests", api_sum(s, api_http_requests, 0), p.uptime_s);
    put_total(&out, "messages", api_sum(s, api_messages, 0), p.uptime_s);
    buf_printf(&out,
               ",\"database\":{\"poolSize\":%llu,\"idleConnections\":%llu,"
               "\"waitingRequests\":%llu}",
               (unsigned long long)open, (unsigned long long)(open > busy ? open - busy : 0),
               (unsigned long long)api_sum(s, api_db_queued, 0));
    buf_printf(&out,
               ",\"memory\":{\"rss\":%llu,\"heapTotal\":%llu,\"heapUsed\":%llu,"
               "\"external\":0,\"arrayBuffers\":0}",
               (unsigned long long)p.used.resident_bytes, (unsigned long long)p.heap_bytes,
               (unsigned long long)p.heap_used_bytes);
    buf_put_lit(&out, ",\"cpu\":{\"user\":");
    js_put_number(&out, (double)p.used.user_us / 1e6);
    buf_put_lit(&out, ",\"system\":");
    js_put_number(&out, (double)p.used.system_us / 1e6);
    buf_put_lit(&out, "}}");
    http_reply_json(req, 200, &out);
}

const struct http_route api_metrics = {
    .verb = HTTP_GET,
    .path = "/metrics",
    .detail = true,
    .op = "metrics",
    .handle = metrics_handle,
    .unknown = UNKNOWN_IGNORED,
};
