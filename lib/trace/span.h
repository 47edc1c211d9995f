// span.h: one span of OpenTelemetry, and its form in OTLP.
//
// A span covers one request to this server. It continues the trace of the request's
// traceparent, or begins a new one, and links to the spans of other traces: those that sent the
// messages that the request delivers.
#ifndef QUEEN_TRACE_SPAN_H
#define QUEEN_TRACE_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum { TRACE_MAX_LINKS = 32, TRACE_NAME_BYTES = 256, TRACE_PARENT_CHARS = 55 };

// A place in a trace: what traceparent names.
struct trace_place {
    uint8_t trace[16], span[8];
};

// Links to the spans of delivered messages; spans that equal the last one count once.
struct trace_links {
    struct trace_place at[TRACE_MAX_LINKS];
    unsigned n, n_left_out;
    bool sampled; // some of them are of sampled traces
};

struct trace_name { // cut to the room that there is
    char text[TRACE_NAME_BYTES];
    uint16_t len;
};

struct trace_span {
    struct trace_place place;
    uint8_t parent[8];
    bool has_parent;
    struct trace_links *links; // given: trace_span_free() frees it; NULL: none

    uint64_t start_us, end_us;                 // since 1970
    const char *operation, *category;          // "push", "send"; static
    const char *route;                         // static
    const char *method;                        // static
    struct trace_name queue, partition, group; // len 0: none
    unsigned n_messages;                       // 0: unknown
    int status;                                // of HTTP
};

// Of a valid traceparent: its first 55 characters.
void trace_place_read(span parent, struct trace_place *place, bool *sampled);
// "00-<trace>-<span>-01", without NUL.
void trace_place_write(const struct trace_place *place, char out[TRACE_PARENT_CHARS]);

// A span of its own trace, with a random place.
struct trace_span *trace_span_new(void);
// Makes it a child of parent, in the same trace.
void trace_span_continue(struct trace_span *s, const struct trace_place *parent);
void trace_span_free(struct trace_span *s);
void trace_name_set(struct trace_name *n, span text); // cut between characters
void trace_links_add(struct trace_links *l, const struct trace_place *place, bool sampled);

// The span as an object of ExportTraceServiceRequest in JSON.
void trace_span_put(const struct trace_span *s, struct buf *out);

#endif
