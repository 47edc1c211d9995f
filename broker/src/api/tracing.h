// tracing.h: spans of the requests that push, pop and acknowledge messages (lib/trace).
//
// Off unless the settings name a collector: then api.traces is NULL and nothing here is called
// but tracing_note*(), which look at one pointer.
//
// Recorded are requests whose traceparent is sampled; of those without one the configured
// share; and pops that deliver a message of a sampled trace. A recorded request without a
// traceparent gives its messages the context of its own span.
#ifndef QUEEN_API_TRACING_H
#define QUEEN_API_TRACING_H

#include "base/span.h"
#include "trace/span.h"

struct http_req;
struct push_item;

// For http_server_conf.begin and traced; app is the struct api.
void tracing_begin(void *app, struct http_req *req);
void tracing_end(void *app, struct http_req *req, int status);

// Names and numbers for the span, if there is one; SPAN_NONE and 0: unknown.
void tracing_note(struct http_req *req, span queue, span partition, span group, unsigned n);
// The queue counts if all items have the same.
void tracing_note_items(struct http_req *req, const struct push_item *items, unsigned n);

// The trace context in the metadata of a delivered message becomes a link. Any thread.
void tracing_link(struct trace_links **links, span meta);
// *links: given, NULL afterwards. A pop that was not recorded is now if a link is sampled.
void tracing_take_links(struct http_req *req, struct trace_links **links);

#endif
