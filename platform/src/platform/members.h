// members.h: members of JSON objects: of a request's body, and of answers we made ourselves.
#ifndef QUEEN_PLATFORM_MEMBERS_H
#define QUEEN_PLATFORM_MEMBERS_H

#include "http/req.h"

// The body's members of these names, raw; the last value of each, SPAN_NONE: not there.  Others
// are skipped.  false: it is no object; answered.
bool members_read(struct http_req *req, const char *const *names, unsigned n, span *raw);
// A raw value that is a text of 1 to 200 bytes.  false: answered with what it is called.
bool members_name(struct http_req *req, span raw, const char *what, span *out);
// The value of an object's member: the characters of a text, raw JSON of all else.  SPAN_NONE:
// it has none of the name.
span member_of(span object, const char *name, struct arena *a);

#endif
