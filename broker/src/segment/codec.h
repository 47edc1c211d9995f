// codec.h: pack messages into a segment body, walk one.  Format:
// docs/internals/segment-format.md.
//
// A payload is copied as the producer sent it: bytes in, same bytes out.
#ifndef QUEEN_SEGMENT_CODEC_H
#define QUEEN_SEGMENT_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/span.h"

enum {
    SEGMENT_MAX_MESSAGES = 256,    // a pop of one message never reads more than its segment ...
    SEGMENT_MAX_BYTES = 64 * 1024, // ... nor, unless the message itself is larger, this much
    SEGMENT_KEY_SPAN_MS = 1000,    // UUIDv7 keys of one segment lie this close together
    SEGMENT_MAX_META = 65535,
};

// A message as it is stored.  All spans are borrowed.
struct segment_message {
    span txid;            // SPAN_NONE: it is the text of the key
    span producer;        // SPAN_NONE: none
    span payload;         // JSON text
    span meta;            // JSON object of further fields (traceparent, ...); SPAN_NONE: none
    const uint8_t *trace; // 16 bytes or NULL
    const uint8_t *id;    // explicit message id (pushed by SQL) or NULL: derived
    bool encrypted;
};

// Whether every length fits into its field.
bool segment_fits(const struct segment_message *m);
void segment_begin(struct buf *body);
// One that does not fit is not written: body->failed is set.
void segment_put(struct buf *body, const struct segment_message *m);
// All of it but the payload's bytes, which the caller puts next: m->payload.len of them.
void segment_put_head(struct buf *body, const struct segment_message *m);
size_t segment_id_at(const struct segment_message *m); // where its id comes to stand, 0-based
size_t segment_size(const struct segment_message *m);  // bytes that segment_put() will add

// Walks a body from its first message.  The spans given out are borrowed from it.
struct segment_walk {
    const char *pos, *end;
    int rc; // 0, or QE_BAD_SEGMENT once something did not fit
};
struct segment_walk segment_walk(span body);
bool segment_next(struct segment_walk *w, struct segment_message *m); // false: end or damage
bool segment_skip(struct segment_walk *w, unsigned n); // false: fewer than n left

// The id of message `pos` of the segment created at created_us (microseconds since 1970) in
// lane `lane`: see broker/sql/helpers/message_id.sql.
void segment_message_id(int64_t created_us, unsigned pos, int64_t lane, uint8_t id[16]);

#endif
