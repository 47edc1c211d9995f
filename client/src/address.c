// address.c: parses the URL of a server.
#include "address.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "fail.h"

static int url_bad(struct queen_error *err, span url, const char *why)
{
    return fail_set(err, QUEEN_E_ARGUMENT, "url \"" SPAN_FMT "\": %s", SPAN_ARG(url), why);
}

// Splits "host", "host:port", "[v6]" or "[v6]:port"; false for anything else.
static bool split_host(span authority, span *host, span *port)
{
    *port = SPAN_NONE;
    if (authority.len > 0 && authority.ptr[0] == '[') {
        const char *end = memchr(authority.ptr, ']', authority.len);
        if (!end)
            return false;
        *host = (span){authority.ptr + 1, (size_t)(end - authority.ptr) - 1};
        size_t used = host->len + 2;
        if (used == authority.len)
            return host->len > 0;
        *port = (span){authority.ptr + used + 1, authority.len - used - 1};
        return authority.ptr[used] == ':';
    }
    span rest = authority;
    str_split(&rest, ':', host);
    if (rest.ptr)
        *port = rest;
    return host->len > 0;
}

int address_parse(struct address *a, span url, struct queen_error *err)
{
    span rest = url, host, port;
    uint64_t number;

    if (str_url_user(url).ptr) // do not print it
        return fail_set(err, QUEEN_E_ARGUMENT,
                        "the url must not contain a user or password: use a token");
    *a = (struct address){.tls = str_starts(url, SPAN("https://"))};
    if (!a->tls && !str_starts(url, SPAN("http://")))
        return url_bad(err, url, "must start with http:// or https://");
    size_t scheme = a->tls ? 8 : 7;
    rest = (span){rest.ptr + scheme, rest.len - scheme};

    const char *slash = rest.len > 0 ? memchr(rest.ptr, '/', rest.len) : NULL;
    span authority = {rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len};
    span prefix = {authority.ptr + authority.len, rest.len - authority.len};
    while (prefix.len > 0 && prefix.ptr[prefix.len - 1] == '/')
        prefix.len--;
    for (size_t i = 0; i < rest.len; i++)
        if ((unsigned char)rest.ptr[i] <= ' ' || strchr("@?#\x7f", rest.ptr[i]))
            return url_bad(err, url, "has an invalid character");
    if (!split_host(authority, &host, &port))
        return url_bad(err, url, "has no host");
    if (!port.ptr)
        port = a->tls ? SPAN("443") : SPAN("6632");
    if (!str_parse_u64(port, &number) || number == 0 || number > 65535)
        return url_bad(err, url, "must have a port from 1 to 65535");

    a->host = mem_strndup(host.ptr, host.len);
    a->port = mem_strndup(port.ptr, port.len);
    a->authority = mem_strndup(authority.ptr, authority.len);
    a->prefix = mem_strndup(prefix.ptr, prefix.len);
    return 0;
}

void address_deinit(struct address *a)
{
    free(a->host);
    free(a->port);
    free(a->authority);
    free(a->prefix);
}
