// trace_context.h: W3C Trace Context of the messages that a request brings.
//
// A producer gives the trace of a message, in the header of its request or in an item
// of its own; the message carries it as {"traceparent":"00-...","tracestate":"..."}
// (segment/codec.h, meta) and the consumer continues it.
#ifndef QUEEN_API_TRACE_CONTEXT_H
#define QUEEN_API_TRACE_CONTEXT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/span.h"

struct http_req;

enum { TRACE_STATE_CHARS = 512 };

bool trace_parent_is_valid(span text);
bool trace_state_is_valid(span text); // SPAN_NONE passes

// Both must be valid.  The object, in the arena.
span trace_context(struct arena *a, span parent, span state);
// That of the request's headers. A malformed one is ignored, as the recommendation wants it.
// Without one: that of the request's own span if this server records it, else SPAN_NONE.
span trace_context_of(struct http_req *req);

#endif
