// members.c: reads members of JSON objects.
#include "platform/members.h"

#include "json/scan.h"

enum { MAX_NAME = 200 };

bool members_read(struct http_req *req, const char *const *names, unsigned n, span *raw)
{
    struct js j = js_read(http_req_body(req));
    span key;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        unsigned i = 0;
        while (i < n && !js_key_is(key, span_of(names[i])))
            i++;
        span value = js_skip(&j);
        if (i < n)
            raw[i] = value;
    }
    if (js_finish(&j) == 0)
        return true;
    http_reply_errf(req, QE_BAD_JSON, "Invalid JSON at byte %zu: %s", js_offset(&j),
                    j.why ? j.why : "something follows the value");
    return false;
}

bool members_name(struct http_req *req, span raw, const char *what, span *out)
{
    *out = js_type_of(raw) == JS_STRING ? js_text(raw, http_req_arena(req)) : SPAN_NONE;
    if (out->len > 0 && out->len <= MAX_NAME)
        return true;
    http_reply_errf(req, QE_BAD_PARAM, "%s must be a string of 1 to %d bytes", what, MAX_NAME);
    return false;
}

span member_of(span object, const char *name, struct arena *a)
{
    struct js j = js_read(object);
    span key, found = SPAN_NONE;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span value = js_skip(&j);
        if (js_key_is(key, span_of(name)))
            found = value;
    }
    return js_type_of(found) == JS_STRING ? js_text(found, a) : found;
}
