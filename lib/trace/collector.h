// collector.h: sends spans to an OpenTelemetry collector, with OTLP over HTTP.
//
//      workers ──► collector_send ──► bounded queue ──► its thread ──► POST .../v1/traces
//
// One per process. A worker only moves bytes into the queue. What does not fit, or cannot be
// sent, is dropped and counted: neither a slow nor a missing collector holds up a request.
#ifndef QUEEN_TRACE_COLLECTOR_H
#define QUEEN_TRACE_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum {
    COLLECTOR_MAX_BYTES = 4 << 20, // of the queue
    COLLECTOR_TIMEOUT_MS = 5000,   // of a request
    COLLECTOR_ATTEMPTS = 3,        // per batch, with COLLECTOR_PAUSE_MS between them
    COLLECTOR_PAUSE_MS = 1000,
};

struct collector_conf {  // texts are borrowed for the collector's life
    const char *url;     // base address: http://localhost:4318
    const char *headers; // "name=value,name=value"; values percent-encoded; "": none
    const char *service, *server, *version;
    double ratio; // share of the traces that begin here
};

struct collector_stats {
    uint64_t sent, dropped; // spans
    uint64_t queued_bytes;
};

struct collector;

// Checks the settings without starting anything.
MUST_USE int collector_check(const struct collector_conf *conf, struct fault *f);
MUST_USE int collector_new(struct collector **c, const struct collector_conf *conf,
                           struct fault *f);
// After all sinks are closed. Waits for the queue to be sent, for at most two seconds.
void collector_free(struct collector *c); // c may be NULL

// Whether a trace that begins here is recorded; any thread.
bool collector_samples(const struct collector *c);
// n spans as JSON, separated by commas. Any thread. spans: given.
void collector_send(struct collector *c, struct buf *spans, unsigned n);
struct collector_stats collector_stats(struct collector *c); // any thread

#endif
