// write.h: writes JSON into a buf.
//
// Only the elements: callers write the structure of their objects as literals, which keeps it
// readable, and put payloads as raw spans.
#ifndef QUEEN_JSON_WRITE_H
#define QUEEN_JSON_WRITE_H

#include "base/buf.h"

void js_put_text(struct buf *b, span text);         // quoted and escaped
void js_put_text_or_null(struct buf *b, span text); // null when text.ptr is NULL
void js_put_escaped(struct buf *b, span text);      // escaped, without the quotes
void js_put_bool(struct buf *b, bool v);
void js_put_number(struct buf *b, double v); // finite; integers without fraction

#endif
