// sink.h: collects the spans of one loop into batches for the collector.
//
// A batch is handed over when it has SINK_BATCH_BYTES, or a second after its first span.
#ifndef QUEEN_TRACE_SINK_H
#define QUEEN_TRACE_SINK_H

#include <uv.h>

#include "trace/collector.h"
#include "trace/span.h"

enum { SINK_BATCH_BYTES = 64 << 10, SINK_HOLD_MS = 1000 };

struct trace_sink;

struct trace_sink *trace_sink_open(uv_loop_t *loop, struct collector *c); // c: borrowed
void trace_sink_add(struct trace_sink *k, const struct trace_span *s);
struct collector *trace_sink_collector(const struct trace_sink *k); // borrowed
// Hands over the last batch. Frees k when its timer is closed. k may be NULL.
void trace_sink_close(struct trace_sink *k);

#endif
