// request.c: a call as HTTP/1.1.
#include <ctype.h>
#include <string.h>

#include "client/call_int.h"

static bool is_line(const char *text)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    return true;
}

static bool is_word(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 127 || *at == ':')
            return false;
    return *text != '\0';
}

bool request_is_sound(const struct call *call)
{
    if (!is_word(call->method) || call->path[0] != '/' || strpbrk(call->path, " #") ||
        !is_line(call->path) || !is_line(call->traceparent))
        return false;
    for (size_t i = 0; i < call->n_headers; i++)
        if (!is_word(call->headers[i].name) || !is_line(call->headers[i].value))
            return false;
    return true;
}

static void put_header(struct buf *out, const char *name, span value)
{
    buf_put(out, span_of(name));
    buf_put_lit(out, ": ");
    buf_put(out, value);
    buf_put_lit(out, "\r\n");
}

static void put_body(const struct call *call, struct buf *out)
{
    bool expects_none = strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;

    if (call->has_body)
        put_header(out, "Content-Type", SPAN("application/json"));
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
    put_header(out, "User-Agent", span_of(c->conf.user_agent));
    if (token.ptr) {
        buf_put_lit(out, "Authorization: Bearer ");
        buf_put(out, token);
        buf_put_lit(out, "\r\n");
    }
    if (c->conf.compress)
        put_header(out, "Accept-Encoding", SPAN("gzip"));
    if (call->traceparent)
        put_header(out, "traceparent", span_of(call->traceparent));
    for (size_t i = 0; i < call->n_headers; i++)
        put_header(out, call->headers[i].name, span_of(call->headers[i].value));
    put_body(call, out);
}
