// members.c: reads members of JSON objects.
#include "platform/members.h"

#include "base/known.h"
#include "base/str.h"
#include "json/scan.h"

enum { MAX_NAME = 200 };

static int read_members(span text, const char *const *names, span *raw, struct fault *f)
{
    const struct known_names known = {.texts = names};
    struct js j = js_read(text);
    span key;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        unsigned i = 0;
        while (names[i] && !js_key_is(key, span_of(names[i])))
            i++;
        span value = js_skip(&j);
        if (names[i])
            raw[i] = value;
        else if (j.rc == 0 && known_check(key, &known, KNOWN_ONLY, "member", f) != 0)
            return f->code;
    }
    if (js_finish(&j) == 0)
        return 0;
    return fault_set(f, QE_BAD_JSON, "Invalid JSON at byte %zu: %s", js_offset(&j),
                     j.why ? j.why : "something follows the value");
}

bool members_read(struct http_req *req, const char *const *names, span *raw)
{
    struct fault f;

    if (read_members(http_req_body(req), names, raw, &f) == 0)
        return true;
    http_reply_fault(req, &f);
    return false;
}

// Something that was meant to limit a deletion must not be ignored.
bool members_read_none(struct http_req *req)
{
    static const char *const names[] = {NULL};

    return str_trim(http_req_body(req)).len == 0 || members_read(req, names, NULL);
}

bool members_read_object(struct http_req *req, span object, const char *in,
                         const char *const *names, span *raw)
{
    struct fault f;

    if (read_members(object, names, raw, &f) == 0)
        return true;
    fault_prefix(&f, "%s: ", in);
    http_reply_fault(req, &f);
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
