// scan.h: one pass over JSON text, giving spans of it.
//
// The cursor accepts exactly what PostgreSQL accepts as jsonb: no \u0000, no lone
// surrogates, valid UTF-8, numbers within numeric's range, nesting up to 256.  The
// first mistake sticks: from then on every js_next_*() says "no more", and
// js_finish() names the error.  So loops need no checks inside.
//
//      struct js j = js_read(body);
//      span key;
//      js_enter_object(&j);
//      while (js_next_key(&j, &key)) {
//          if (span_eq(key, SPAN("items")))
//              ...
//          else
//              js_skip(&j);
//      }
//      int rc = js_finish(&j);
#ifndef QUEEN_JSON_SCAN_H
#define QUEEN_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/span.h"

enum { JS_MAX_DEPTH = 256 };

enum js_type { JS_NONE, JS_NULL, JS_BOOL, JS_NUMBER, JS_STRING, JS_ARRAY, JS_OBJECT };

struct js {
    const char *pos;
    const char *end;
    const char *start;
    const char *why; // static sentence about the first mistake, or NULL
    int rc;
    int depth;
    bool fresh; // just entered: no comma before the first element
};

struct js js_read(span text);       // text is borrowed as long as the spans are
enum js_type js_peek(struct js *j); // type of the value that comes next; JS_NONE at a mistake
void js_enter_object(struct js *j); // fails unless an object comes next
void js_enter_array(struct js *j);
// key: the raw text between the quotes.  A key that was written with escapes is never equal
// to one of ours unless unescaped with js_text(); use js_key_is() where it matters.
bool js_next_key(struct js *j, span *key); // false after the last: object is left
bool js_key_is(span key, span name);       // compares what the key means, escapes undone
bool js_next_item(struct js *j);           // false after the last: array is left
span js_skip(struct js *j);                // raw text of the next value, validated
void js_fail(struct js *j, int code, const char *why); // the caller's own reason
MUST_USE int js_finish(const struct js *j);            // 0, or the first mistake; also fails
                                                       // when text follows the value
size_t js_offset(const struct js *j);                  // where the cursor (or mistake) is

// ---- raw value spans, as given by js_skip() ----

enum js_type js_type_of(span raw);
// The characters of a string value (raw starts with '"').  Borrowed from raw when it
// holds no escapes, else unescaped into the arena.
span js_text(span raw, struct arena *a);
// An integer value; also a string that holds one ("30").  false: neither, or out of range.
bool js_int(span raw, int64_t *v);
bool js_bool(span raw, bool *v); // true and false only

#endif
