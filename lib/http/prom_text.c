// prom_text.c: writes metrics in the Prometheus text format.
#include "http/prom_text.h"

#include "base/attrs.h"

// A bucket bound: its label for Prometheus, and its value for the histogram.
struct bound {
    const char *le;
    uint64_t value;
};
static const struct bound seconds[] = {
    {"0.0001", 100},  {"0.00025", 250}, {"0.0005", 500},  {"0.001", 1000},  {"0.0025", 2500},
    {"0.005", 5000},  {"0.01", 10000},  {"0.025", 25000}, {"0.05", 50000},  {"0.1", 100000},
    {"0.25", 250000}, {"0.5", 500000},  {"1", 1000000},   {"2.5", 2500000}, {"5", 5000000},
    {"10", 10000000}, {"30", 30000000},
};
static const struct bound counts[] = {
    {"1", 1},       {"2", 2},       {"5", 5},         {"10", 10},   {"20", 20},
    {"50", 50},     {"100", 100},   {"200", 200},     {"500", 500}, {"1000", 1000},
    {"2000", 2000}, {"5000", 5000}, {"10000", 10000},
};

void prom_family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_name(struct buf *out, const char *name, const char *labels)
{
    buf_printf(out, labels ? "%s{%s} " : "%s%s ", name, labels ? labels : "");
}

void prom_u64(struct buf *out, const char *name, const char *labels, uint64_t v)
{
    put_name(out, name, labels);
    buf_put_u64(out, v);
    buf_putc(out, '\n');
}

void prom_seconds(struct buf *out, const char *name, const char *labels, double v)
{
    put_name(out, name, labels);
    buf_printf(out, "%.6f\n", v);
}

void prom_single(struct buf *out, const char *name, const char *type, const char *help,
                 uint64_t v)
{
    prom_family(out, name, type, help);
    prom_u64(out, name, NULL, v);
}

void prom_histogram(struct buf *out, const char *name, const char *labels,
                    const struct histogram *h, double unit)
{
    bool timed = unit < 1;
    const struct bound *bounds = timed ? seconds : counts;
    size_t n = timed ? countof(seconds) : countof(counts);
    uint64_t all = histogram_count_le(h, UINT64_MAX); // not h->n: the owner may be writing
    const char *comma = labels ? "," : "";

    labels = labels ? labels : "";
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %llu\n", name, labels, comma, bounds[i].le,
                   (unsigned long long)histogram_count_le(h, bounds[i].value));
    buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
               (unsigned long long)all);
    buf_printf(out, "%s_sum{%s} %.*f\n", name, labels, timed ? 6 : 0,
               (double)atomic_load_explicit(&h->sum, memory_order_relaxed) * unit);
    buf_printf(out, "%s_count{%s} %llu\n", name, labels, (unsigned long long)all);
}
