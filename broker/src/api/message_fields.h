// message_fields.h: fields of a message beside its payload, stored with it.
//
//      correlationId   which business event it belongs to: found again by it
//      eventType       which kind of event: the queue may have a retry policy for it
//      retryPolicy     how a failure of this very message is retried
//
// They become members of the object that the message carries (segment/codec.h, meta), beside
// the trace context.  A message without them costs nothing.
#ifndef QUEEN_API_MESSAGE_FIELDS_H
#define QUEEN_API_MESSAGE_FIELDS_H

#include "base/arena.h"
#include "base/span.h"

struct message_fields {
    span correlation, type; // text; SPAN_NONE: none
    span policy;            // JSON object; SPAN_NONE: none
};

// meta: an object to which they are added, SPAN_NONE: none.  In the arena; SPAN_NONE when there
// is nothing at all.
span message_fields_add(struct arena *a, span meta, const struct message_fields *f);

#endif
