// sink.c: writes spans as JSON and hands batches of them to the collector.
#include "trace/sink.h"

#include <stdlib.h>

#include "base/mem.h"

struct trace_sink {
    struct collector *collector;
    struct buf spans;
    unsigned n;
    uv_timer_t hold; // runs while there are spans
};

static void hand_over(struct trace_sink *k)
{
    uv_timer_stop(&k->hold);
    if (k->n > 0)
        collector_send(k->collector, &k->spans, k->n);
    k->n = 0;
}

static void on_hold(uv_timer_t *hold) { hand_over(hold->data); }

struct trace_sink *trace_sink_open(uv_loop_t *loop, struct collector *c)
{
    struct trace_sink *k = mem_new(struct trace_sink);

    k->collector = c;
    k->spans.max = 2 * SINK_BATCH_BYTES;
    uv_timer_init(loop, &k->hold);
    k->hold.data = k;
    return k;
}

struct collector *trace_sink_collector(const struct trace_sink *k) { return k->collector; }

void trace_sink_add(struct trace_sink *k, const struct trace_span *s)
{
    if (k->n > 0)
        buf_putc(&k->spans, ',');
    else
        uv_timer_start(&k->hold, on_hold, SINK_HOLD_MS, 0);
    trace_span_put(s, &k->spans);
    k->n++;
    if (k->spans.len >= SINK_BATCH_BYTES || k->spans.failed)
        hand_over(k);
}

static void on_sink_closed(uv_handle_t *h)
{
    struct trace_sink *k = h->data;

    buf_free(&k->spans);
    free(k);
}

void trace_sink_close(struct trace_sink *k)
{
    if (!k)
        return;
    hand_over(k);
    uv_close((uv_handle_t *)&k->hold, on_sink_closed);
}
