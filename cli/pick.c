// pick.c: extracts single values from a server's JSON.
#include "cli/pick.h"

#include "base/str.h"
#include "json/scan.h"

static span member(span object, span name)
{
    struct js j = js_read(object);
    span key, found = SPAN_NONE;

    if (js_peek(&j) != JS_OBJECT)
        return SPAN_NONE;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        bool here = js_key_is(key, name);
        span value = js_skip(&j);
        if (here && !found.ptr)
            found = value;
    }
    return js_finish(&j) == 0 ? found : SPAN_NONE;
}

span pick(span json, const char *path)
{
    span rest = span_of(path), name;

    while (json.ptr && str_split(&rest, '.', &name))
        json = member(json, name);
    return json;
}

span pick_text(span json, const char *path, struct arena *a)
{
    span raw = pick(json, path);

    switch (raw.ptr ? js_type_of(raw) : JS_NONE) {
    case JS_NONE:
    case JS_NULL:
        return SPAN_NONE;
    case JS_STRING:
        return js_text(raw, a);
    default:
        return raw;
    }
}

const char *pick_cstr(span json, const char *path, struct arena *a)
{
    span text = pick_text(json, path, a);

    return text.ptr ? arena_cstr(a, text) : NULL;
}

int64_t pick_int(span json, const char *path)
{
    span raw = pick(json, path);
    int64_t v;

    return raw.ptr && js_int(raw, &v) ? v : 0;
}

double pick_number(span json, const char *path)
{
    span raw = pick(json, path);
    double v;

    return raw.ptr && str_parse_double(raw, &v) ? v : 0;
}

bool pick_bool(span json, const char *path)
{
    span raw = pick(json, path);
    bool v;

    return raw.ptr && js_bool(raw, &v) && v;
}

// rest is what follows the last element, from its comma or bracket on.
bool pick_next(span *rest, span *item)
{
    const char *p = rest->ptr, *end = p ? p + rest->len : p;

    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    if (p >= end || (*p != '[' && *p != ','))
        return false;
    struct js j = js_read((span){p + 1, (size_t)(end - p - 1)});
    if (js_peek(&j) == JS_NONE) // "]" of an empty array
        return false;
    *item = js_skip(&j);
    if (!item->ptr)
        return false;
    const char *after = item->ptr + item->len;
    *rest = (span){after, (size_t)(end - after)};
    return true;
}
