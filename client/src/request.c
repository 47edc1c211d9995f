// request.c: encodes a call as HTTP/1.1.
#include <string.h>
#include <strings.h>

#include "call_int.h"

// Text without line breaks or other control characters.
bool request_is_line(const char *text)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    return true;
}

// A token of RFC 9110.
static bool is_token(const char *text)
{
    for (const char *at = text; at && *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c <= ' ' || c >= 127 || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return text && *text != '\0';
}

// These headers determine the framing and the destination. Conflicting values would allow
// request smuggling.
static bool is_ours_alone(const char *name)
{
    static const char *const names[] = {"connection", "content-length", "host",
                                        "transfer-encoding"};

    for (size_t i = 0; i < countof(names); i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

bool request_is_sound(const struct call *call)
{
    if (!is_token(call->method) || call->path[0] != '/' || strpbrk(call->path, " #") ||
        !request_is_line(call->path) || !request_is_line(call->traceparent))
        return false;
    for (size_t i = 0; i < call->n_headers; i++)
        if (!is_token(call->headers[i].name) || is_ours_alone(call->headers[i].name) ||
            !request_is_line(call->headers[i].value))
            return false;
    return true;
}

bool request_has_header(const struct call *call, const char *name)
{
    for (size_t i = 0; i < call->n_headers; i++)
        if (call->headers[i].name && strcasecmp(call->headers[i].name, name) == 0)
            return true;
    return false;
}

static void put_header(struct buf *out, const char *name, span value)
{
    buf_put(out, span_of(name));
    buf_put_lit(out, ": ");
    buf_put(out, value);
    buf_put_lit(out, "\r\n");
}

// Adds a default header, unless the caller has set one of that name.
static void put_default(const struct call *call, struct buf *out, const char *name, span value)
{
    if (!request_has_header(call, name))
        put_header(out, name, value);
}

static void put_body(const struct call *call, struct buf *out)
{
    bool expects_none = strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;

    if (call->has_body)
        put_default(call, out, "Content-Type", SPAN("application/json"));
    if (call->is_packed)
        put_header(out, "Content-Encoding", SPAN("gzip"));
    if (call->has_body || !expects_none) {
        buf_put_lit(out, "Content-Length: ");
        buf_put_u64(out, call->body.len);
        buf_put_lit(out, "\r\n");
    }
    buf_put_lit(out, "\r\n");
    buf_put(out, buf_span(&call->body));
}

void request_write(struct call *call, struct buf *out)
{
    struct queen_client *c = call->client;
    const struct address *a = &c->servers.list[call->server].address;
    span token = token_now(&c->token);

    buf_put(out, span_of(call->method));
    buf_putc(out, ' ');
    buf_put(out, span_of(a->prefix));
    buf_put(out, span_of(call->path));
    buf_put_lit(out, " HTTP/1.1\r\n");
    put_header(out, "Host", span_of(a->authority));
    put_default(call, out, "User-Agent", span_of(c->conf.user_agent));
    if (token.ptr && !request_has_header(call, "Authorization")) {
        buf_put_lit(out, "Authorization: Bearer ");
        buf_put(out, token);
        buf_put_lit(out, "\r\n");
    }
    if (c->conf.compress)
        put_default(call, out, "Accept-Encoding", SPAN("gzip"));
    if (call->traceparent)
        put_default(call, out, "traceparent", span_of(call->traceparent));
    for (size_t i = 0; i < call->n_headers; i++)
        put_header(out, call->headers[i].name, span_of(call->headers[i].value));
    put_body(call, out);
}
