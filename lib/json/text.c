// text.c: converts raw value spans to text, integers and booleans.
//
// The cursor has validated all spans here.
#include "base/str.h"
#include "json/scan.h"

// Decodes one escape; returns the number of input bytes used.
static size_t unescape(const char *p, char out[4], size_t *n_out);

span js_text(span raw, struct arena *a)
{
    if (raw.len < 2 || raw.ptr[0] != '"')
        return SPAN_NONE;
    span inner = {raw.ptr + 1, raw.len - 2};
    const char *back = inner.len > 0 ? memchr(inner.ptr, '\\', inner.len) : NULL;
    if (!back)
        return inner;

    // The decoded text is never longer than the escaped one.
    char *text = arena_try_alloc(a, inner.len);
    if (!text)
        return SPAN_NONE; // the arena's rc holds the reason
    const char *p = inner.ptr, *end = inner.ptr + inner.len;
    size_t len = 0;
    while (back) {
        size_t plain = (size_t)(back - p), n;
        memcpy(text + len, p, plain);
        len += plain;
        char bytes[4];
        p = back + unescape(back, bytes, &n);
        memcpy(text + len, bytes, n);
        len += n;
        back = memchr(p, '\\', (size_t)(end - p));
    }
    memcpy(text + len, p, (size_t)(end - p));
    return (span){text, len + (size_t)(end - p)};
}

bool js_key_is(span key, span name)
{
    if (key.len == 0 || !memchr(key.ptr, '\\', key.len))
        return span_eq(key, name);

    const char *p = key.ptr, *end = key.ptr + key.len;
    size_t at = 0;
    while (p < end) {
        char bytes[4] = {*p};
        size_t n = 1;
        p += *p == '\\' ? unescape(p, bytes, &n) : 1;
        if (name.len - at < n || memcmp(name.ptr + at, bytes, n) != 0)
            return false;
        at += n;
    }
    return at == name.len;
}

static unsigned hex4(const char *p)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (unsigned)(p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
    return v;
}

static size_t put_utf8(unsigned c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0) | c);
    return n;
}

static size_t unescape(const char *p, char out[4], size_t *n_out)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";

    if (p[1] == 'u') {
        unsigned c = hex4(p + 2);
        size_t used = 6;
        if (c >= 0xd800 && c <= 0xdbff) {
            c = 0x10000 + ((c & 0x3ff) << 10 | (hex4(p + 8) & 0x3ff));
            used = 12;
        }
        *n_out = put_utf8(c, out);
        return used;
    }
    const char *named = strchr(from, p[1]);
    out[0] = named ? to[named - from] : p[1];
    *n_out = 1;
    return 2;
}

bool js_int(span raw, int64_t *v)
{
    *v = 0;
    if (js_type_of(raw) == JS_STRING && raw.len >= 2)
        return str_parse_i64((span){raw.ptr + 1, raw.len - 2}, v);
    // Languages without integers send 30.0 for 30.
    const char *dot = raw.len > 0 ? memchr(raw.ptr, '.', raw.len) : NULL;
    if (dot) {
        for (const char *p = dot + 1; p < raw.ptr + raw.len; p++)
            if (*p != '0')
                return false;
        raw.len = (size_t)(dot - raw.ptr);
    }
    return str_parse_i64(raw, v);
}

bool js_bool(span raw, bool *v)
{
    *v = span_eq(raw, SPAN("true"));
    return *v || span_eq(raw, SPAN("false"));
}
