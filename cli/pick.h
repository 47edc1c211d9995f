// pick.h: single values out of JSON that a server sent.
#ifndef QUEEN_CLI_PICK_H
#define QUEEN_CLI_PICK_H

#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"

// Raw text of the value at a path like "messages.pending"; SPAN_NONE: there is none, or the
// text is no JSON object.  Borrowed from json.
span pick(span json, const char *path);
// A string without quotes and escapes; of other values their text; SPAN_NONE for null and for
// what is missing.  Borrowed from json or in the arena.
span pick_text(span json, const char *path, struct arena *a);
const char *pick_cstr(span json, const char *path, struct arena *a); // NULL for null
int64_t pick_int(span json, const char *path);                       // 0 for what is no integer
double pick_number(span json, const char *path);
bool pick_bool(span json, const char *path); // false for what is no true

// The elements of a JSON array, one after another:
//      span rest = pick(body, "queues"), item;
//      while (pick_next(&rest, &item)) ...
// rest is the array before the first call and the library's afterwards.
bool pick_next(span *rest, span *item);

#endif
