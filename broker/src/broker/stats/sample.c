// sample.c: gauges and their tree.
#include "broker/stats/sample.h"

#include <stdbool.h>
#include <string.h>

void gauge_add(struct gauge *g, double v)
{
    if (g->n == 0 || v < g->min)
        g->min = v;
    if (g->n == 0 || v > g->max)
        g->max = v;
    g->last = v;
    g->sum += v;
    g->n++;
}

double gauge_avg(const struct gauge *g) { return g->n > 0 ? g->sum / (double)g->n : 0; }

double usage_share(uint64_t before_us, uint64_t after_us, uint64_t passed_us)
{
    if (passed_us == 0 || after_us <= before_us)
        return 0;
    return (double)(after_us - before_us) * 10000 / (double)passed_us;
}

static unsigned dots(const char *name)
{
    unsigned n = 0;

    for (; *name; name++)
        n += *name == '.';
    return n;
}

// How many objects around `name` are open already when `last` was written before.
static unsigned common_depth(const char *last, const char *name)
{
    unsigned depth = 0;

    for (size_t i = 0; last[i] && last[i] == name[i]; i++)
        depth += name[i] == '.';
    return depth;
}

void gauges_put(struct buf *out, const struct gauge *gauges, const char *const *names,
                unsigned n)
{
    const char *last = "";
    bool first = true;

    buf_putc(out, '{');
    for (unsigned i = 0; i < n; i++) {
        const struct gauge *g = &gauges[i];
        if (g->n == 0)
            continue;
        unsigned common = common_depth(last, names[i]);
        for (unsigned depth = dots(last); depth > common; depth--)
            buf_putc(out, '}');
        if (!first)
            buf_putc(out, ',');
        const char *part = names[i];
        for (unsigned skip = common; skip > 0; skip--)
            part = strchr(part, '.') + 1;
        for (const char *dot; (dot = strchr(part, '.')); part = dot + 1)
            buf_printf(out, "\"%.*s\":{", (int)(dot - part), part);
        buf_printf(out, "\"%s\":{\"avg\":%.2f,\"min\":%.2f,\"max\":%.2f,\"last\":%.2f}", part,
                   gauge_avg(g), g->min, g->max, g->last);
        last = names[i];
        first = false;
    }
    for (unsigned depth = dots(last); depth > 0; depth--)
        buf_putc(out, '}');
    buf_putc(out, '}');
}
