// members.h: reads members of JSON objects: of request bodies and of our own replies.
#ifndef QUEEN_PLATFORM_MEMBERS_H
#define QUEEN_PLATFORM_MEMBERS_H

#include "http/req.h"

// Returns the raw members of the body with these names (ends with NULL): the last value of
// each, SPAN_NONE if absent.  Returns false after replying that the body is not an object or
// has another member.
bool members_read(struct http_req *req, const char *const *names, span *raw);
// For an endpoint that takes no body: returns false after replying that there are members.
bool members_read_none(struct http_req *req);
// As members_read(), for the object that is the member `in` of the body.
bool members_read_object(struct http_req *req, span object, const char *in,
                         const char *const *names, span *raw);
// Checks that a raw value is a string of 1 to 200 bytes.  Returns false after replying with an
// error that names it.
bool members_name(struct http_req *req, span raw, const char *what, span *out);
// Returns the value of a member: the characters of a string, raw JSON of any other value,
// SPAN_NONE if absent.
span member_of(span object, const char *name, struct arena *a);

#endif
