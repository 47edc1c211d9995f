// observe.c: request counts and durations by endpoint.
#include <stdio.h>

#include "http/prom_text.h"
#include "platform/platform_int.h"

void platform_observe(void *app, const struct http_route *route, int status, uint64_t us)
{
    struct platform *p = app;
    size_t i = route ? http_route_index(p->routes, route) : http_routes_count(p->routes);

    histogram_add(&p->stats[i].us, us);
    counter_add(&p->stats[i].class_[status >= 100 && status < 600 ? status / 100 : 0], 1);
}

static const char *route_op(size_t i)
{
    return platform_routes[i] ? platform_routes[i]->op : "none";
}

void observe_expose(struct platform *p, struct buf *out)
{
    size_t n = http_routes_count(p->routes) + 1;
    char labels[96];

    prom_family(out, "queen_platform_http_requests_total", "counter",
                "responses by endpoint and first digit of the status");
    for (size_t i = 0; i < n; i++)
        for (unsigned class = 1; class < 6; class ++) {
            uint64_t v = counter_get(&p->stats[i].class_[class]);
            snprintf(labels, sizeof labels, "op=\"%s\",status=\"%uxx\"", route_op(i), class);
            if (v > 0)
                prom_u64(out, "queen_platform_http_requests_total", labels, v);
        }
    prom_family(out, "queen_platform_http_request_duration_seconds", "histogram",
                "from the header of a request to the header of its response");
    for (size_t i = 0; i < n; i++) {
        snprintf(labels, sizeof labels, "op=\"%s\"", route_op(i));
        if (histogram_count_le(&p->stats[i].us, UINT64_MAX) > 0)
            prom_histogram(out, "queen_platform_http_request_duration_seconds", labels,
                           &p->stats[i].us, 1e-6);
    }
}
