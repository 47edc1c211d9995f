// pick.h: extracts single values from a server's JSON.
#ifndef QUEEN_CLI_PICK_H
#define QUEEN_CLI_PICK_H

#include <stdint.h>

#include "base/arena.h"
#include "base/span.h"

// Raw text of the value at a path like "messages.pending"; SPAN_NONE: absent, or the text is
// not a JSON object. Borrowed from json.
span pick(span json, const char *path);
// A string, unescaped and without quotes; for other values their text; SPAN_NONE for null and
// if absent. Borrowed from json or in the arena.
span pick_text(span json, const char *path, struct arena *a);
const char *pick_cstr(span json, const char *path, struct arena *a); // NULL for null
int64_t pick_int(span json, const char *path); // 0 if it is not an integer
double pick_number(span json, const char *path);
bool pick_bool(span json, const char *path); // false if it is not true

// Iterates over the elements of a JSON array:
//     span rest = pick(body, "queues"), item;
//     while (pick_next(&rest, &item)) ...
// rest is the array before the first call and private afterwards.
bool pick_next(span *rest, span *item);

#endif
