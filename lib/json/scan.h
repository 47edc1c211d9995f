// scan.h: a cursor that reads JSON text in one pass and returns spans of it.
//
// The cursor accepts exactly the values that PostgreSQL accepts as jsonb: no \u0000, no lone
// surrogates, valid UTF-8, numbers within numeric's range, nesting up to 256. The first error
// is kept: from then on every js_next_*() returns false, and js_finish() returns the error.
// Loops need no checks inside.
//
//     struct js j = js_read(body);
//     span key;
//     js_enter_object(&j);
//     while (js_next_key(&j, &key)) {
//         if (span_eq(key, SPAN("items")))
//             ...
//         else
//             js_skip(&j);
//     }
//     int rc = js_finish(&j);
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
    const char *why; // static text for the first error, or NULL
    int rc;
    int depth;
    bool fresh; // just entered: no comma before the first element
};

struct js js_read(span text);       // text is borrowed for as long as the spans are used
enum js_type js_peek(struct js *j); // type of the next value; JS_NONE after an error
void js_enter_object(struct js *j); // fails unless an object comes next
void js_enter_array(struct js *j);
// key: the raw text between the quotes. A key written with escapes does not equal its plain
// form until js_text() has decoded it; use js_key_is() where that matters.
bool js_next_key(struct js *j, span *key); // false after the last key, past the object
bool js_key_is(span key, span name);       // compares the decoded key
bool js_next_item(struct js *j);           // false after the last item, past the array
span js_skip(struct js *j);                // raw text of the next value, validated
void js_fail(struct js *j, int code, const char *why); // sets an error of the caller
MUST_USE int
js_finish(const struct js *j); // 0, or the first error; also fails when text follows the value
size_t js_offset(const struct js *j); // position of the cursor (or of the error)

// ---- raw value spans, as returned by js_skip() ----

enum js_type js_type_of(span raw);
// The characters of a string value (raw starts with '"'). Borrowed from raw if it holds no
// escapes, else decoded into the arena.
span js_text(span raw, struct arena *a);
// An integer value, or a string that holds one ("30"). false: neither, or out of range.
bool js_int(span raw, int64_t *v);
bool js_bool(span raw, bool *v); // true and false only

#endif
