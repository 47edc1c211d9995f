// trace_context.c: checks and keeps traceparent and tracestate.
#include "api/trace_context.h"

#include <string.h>

#include "base/buf.h"
#include "http/req.h"
#include "trace/span.h"
#include "json/write.h"

// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
enum { VERSION_AT = 0, TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, PARENT_CHARS = 55 };
enum { MAX_PARENT_CHARS = 255 }; // of versions to come

static bool is_hex(const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(at[i] >= '0' && at[i] <= '9') && !(at[i] >= 'a' && at[i] <= 'f'))
            return false;
    return true;
}

static bool is_zero(const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != '0')
            return false;
    return true;
}

static bool is_printable(span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < ' ' || text.ptr[i] > '~')
            return false;
    return true;
}

bool trace_parent_is_valid(span text)
{
    const char *at = text.ptr;

    if (text.len < PARENT_CHARS || text.len > MAX_PARENT_CHARS || !is_hex(at + VERSION_AT, 2) ||
        at[2] != '-' || !is_hex(at + TRACE_AT, 32) || at[35] != '-' ||
        !is_hex(at + SPAN_AT, 16) || at[52] != '-' || !is_hex(at + FLAGS_AT, 2))
        return false;
    if (memcmp(at, "ff", 2) == 0 || is_zero(at + TRACE_AT, 32) || is_zero(at + SPAN_AT, 16))
        return false;
    if (text.len == PARENT_CHARS)
        return true;
    // A later version may have more fields; version 00 may not.
    return memcmp(at, "00", 2) != 0 && at[PARENT_CHARS] == '-' && is_printable(text) &&
           !memchr(at, ' ', text.len);
}

bool trace_state_is_valid(span text)
{
    return text.len <= TRACE_STATE_CHARS && is_printable(text);
}

span trace_context(struct arena *a, span parent, span state)
{
    struct buf out = {0};

    buf_put_lit(&out, "{\"traceparent\":");
    js_put_text(&out, parent);
    if (state.len > 0) {
        buf_put_lit(&out, ",\"tracestate\":");
        js_put_text(&out, state);
    }
    buf_putc(&out, '}');
    span copy = out.failed ? SPAN_NONE : arena_copy(a, buf_span(&out));
    buf_free(&out);
    return copy;
}

span trace_context_of(struct http_req *req)
{
    const struct trace_span *own = http_req_trace(req);
    if (own && !own->has_parent) { // of a trace that begins here
        char text[TRACE_PARENT_CHARS];
        trace_place_write(&own->place, text);
        return trace_context(http_req_arena(req), (span){text, sizeof text}, SPAN_NONE);
    }
    if (!http_req_has(req, RARE_TRACEPARENT))
        return SPAN_NONE;

    span parent = http_req_header(req, SPAN("traceparent"));
    span state = http_req_header(req, SPAN("tracestate"));
    if (!trace_parent_is_valid(parent))
        return SPAN_NONE;
    return trace_context(http_req_arena(req), parent,
                         trace_state_is_valid(state) ? state : SPAN_NONE);
}
