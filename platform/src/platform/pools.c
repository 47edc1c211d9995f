// GET /api/v1/pools: the connection pools of tenants, summarized and one by one; and their
// metrics.
#include "tenant/pools.h"
#include "http/prom_text.h"
#include "platform/platform_int.h"
#include "json/write.h"

static void pools_put_time(struct buf *out, const char *name, const struct histogram *h)
{
    buf_printf(out, "\"%s\":{\"n\":%llu,\"p50Ms\":%.3f,\"p99Ms\":%.3f,\"maxMs\":%.3f}", name,
               (unsigned long long)h->n, (double)histogram_quantile(h, 0.5) / 1e3,
               (double)histogram_quantile(h, 0.99) / 1e3,
               (double)histogram_quantile(h, 1) / 1e3);
}

static void put_figures(struct platform *p, struct buf *out)
{
    const struct tenant_pools_stats *s = tenant_pools_stats(p->pools);
    uint64_t gets = s->hits + s->misses;

    buf_printf(out,
               "\"max\":%d,\"open\":%u,\"held\":%u,\"idle\":%u,\"closing\":%u,\"waiting\":%u,"
               "\"down\":%u,\"known\":%u",
               p->conf->pools_max, s->n_pools, s->n_held, s->n_idle, s->n_closing, s->n_waiting,
               s->n_down, s->n_known);
    buf_printf(out, ",\"hits\":%llu,\"misses\":%llu,\"hitRate\":%.4f",
               (unsigned long long)s->hits, (unsigned long long)s->misses,
               gets > 0 ? (double)s->hits / (double)gets : 0);
    buf_printf(out,
               ",\"waits\":%llu,\"timeouts\":%llu,\"evictions\":%llu,\"expired\":%llu,"
               "\"replaced\":%llu,\"failedOpens\":%llu,\"failedChecks\":%llu,\"refused\":%llu,"
               "\"breakersOpened\":%llu",
               (unsigned long long)s->waits, (unsigned long long)s->timeouts,
               (unsigned long long)s->evicted, (unsigned long long)s->expired,
               (unsigned long long)s->replaced, (unsigned long long)s->failed_opens,
               (unsigned long long)s->failed_checks, (unsigned long long)s->refused,
               (unsigned long long)s->breakers_opened);
    buf_put_lit(out, ",\"get\":{");
    pools_put_time(out, "hit", &s->hit_us);
    buf_putc(out, ',');
    pools_put_time(out, "miss", &s->miss_us);
    buf_putc(out, '}');
}

static void put_view(void *ctx, const struct tenant_pool_view *v)
{
    struct buf *out = ctx;

    if (out->ptr[out->len - 1] == '}')
        buf_putc(out, ',');
    buf_put_lit(out, "{\"tenant\":");
    js_put_text(out, v->name);
    buf_printf(
        out,
        ",\"kind\":\"%s\",\"state\":\"%s\",\"refs\":%u,\"connections\":%u,\"waiting\":%u,"
        "\"idleMs\":%llu,\"downMs\":%llu,\"error\":",
        v->kind == TENANT_MYSQL ? "mysql" : "postgresql", v->state, v->refs, v->conns,
        v->waiting, (unsigned long long)v->idle_ms, (unsigned long long)v->down_ms);
    js_put_text_or_null(out, v->error[0] ? span_of(v->error) : SPAN_NONE);
    buf_putc(out, '}');
}

static void pools_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct buf out = {0};

    buf_putc(&out, '{');
    put_figures(p, &out);
    buf_put_lit(&out, ",\"tenants\":[");
    tenant_pools_each(p->pools, put_view, &out);
    buf_put_lit(&out, "]}");
    http_reply_json(req, 200, &out);
}

static void pools_put_json(struct platform *p, struct buf *out)
{
    if (!p->pools)
        return;
    buf_put_lit(out, ",\"pools\":{");
    put_figures(p, out);
    buf_putc(out, '}');
}

static void pools_expose(struct platform *p, struct buf *out)
{
    static const char duration[] = "queen_platform_pool_get_duration_seconds";

    if (!p->pools)
        return;
    const struct tenant_pools_stats *s = tenant_pools_stats(p->pools);
#define GAUGE(name, help, v)   prom_single(out, "queen_platform_pool" name, "gauge", help, v)
#define COUNTER(name, help, v) prom_single(out, "queen_platform_pool" name, "counter", help, v)
    GAUGE("s_max", "tenants that may have a pool", (uint64_t)p->conf->pools_max);
    GAUGE("s_open", "pools, including closing ones", s->n_pools);
    GAUGE("s_active", "pools in use", s->n_held);
    GAUGE("s_idle", "idle pools", s->n_idle);
    GAUGE("_waiting", "requests that wait for a pool", s->n_waiting);
    GAUGE("_tenants_down", "tenants whose database is down", s->n_down);
    COUNTER("_hits_total", "requests that found a pool", s->hits);
    COUNTER("_misses_total", "requests that waited for a pool to open", s->misses);
    COUNTER("_waits_total", "requests that found no room for a pool", s->waits);
    COUNTER("_timeouts_total", "requests that timed out", s->timeouts);
    COUNTER("_evictions_total", "pools closed to make room", s->evicted);
    COUNTER("_expired_total", "idle pools closed", s->expired);
    COUNTER("_replaced_total", "pools replaced: unhealthy or outdated credentials",
            s->replaced);
    COUNTER("_failed_opens_total", "pools that could not be opened", s->failed_opens);
    COUNTER("_health_check_failures_total", "health checks that failed", s->failed_checks);
    COUNTER("_refused_total", "requests refused because the tenant is down", s->refused);
    COUNTER("_breakers_opened_total", "number of times that a breaker opened",
            s->breakers_opened);
#undef GAUGE
#undef COUNTER
    prom_family(out, duration, "histogram", "time from the request for a pool to its use");
    prom_histogram(out, duration, "result=\"hit\"", &s->hit_us, 1e-6);
    prom_histogram(out, duration, "result=\"miss\"", &s->miss_us, 1e-6);
}

const struct platform_part platform_pools_part = {
    .name = "pools", .expose = pools_expose, .put_json = pools_put_json};

const struct http_route platform_pools = {
    .verb = HTTP_GET,
    .path = "/api/v1/pools",
    .access = ACCESS_READ_ONLY,
    .op = "pools",
    .handle = pools_handle,
};
