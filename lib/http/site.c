// site.c: the checks of Origin and Host.
#include "http/site.h"

#include "base/str.h"

struct http_site http_site_new(bool is_protected, const char *origins, const char *hosts,
                               const char *listen_host)
{
    struct http_site s = {.checked = !is_protected,
                          .origins = str_trim(span_of(origins)),
                          .hosts = span_of(hosts),
                          .listen_host = span_of(listen_host)};

    s.any_origin = span_eq(s.origins, SPAN("*")) || (s.origins.len == 0 && is_protected);
    return s;
}

static bool is_listed(span list, span item)
{
    span entry;

    while (str_split(&list, ',', &entry)) {
        entry = str_trim(entry);
        if (span_eq(entry, SPAN("*")) || (entry.len > 0 && str_eq_nocase(entry, item)))
            return true;
    }
    return false;
}

static span without_port(span host)
{
    const char *colon = host.len > 0 ? memrchr(host.ptr, ':', host.len) : NULL;

    return colon ? (span){host.ptr, (size_t)(colon - host.ptr)} : host;
}

// Browsers take such names for IPv4 addresses, so nobody can register them.
static bool is_digits_and_dots(span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] != '.' && (name.ptr[i] < '0' || name.ptr[i] > '9'))
            return false;
    return true;
}

static bool ends_with(span name, span end)
{
    return name.len >= end.len &&
           str_eq_nocase((span){name.ptr + name.len - end.len, end.len}, end);
}

bool http_site_takes_host(const struct http_site *s, span host)
{
    if (!s->checked || host.len == 0)
        return true;
    if (host.ptr[0] == '[') // an IPv6 address
        return true;
    span name = without_port(host);
    // localhost and other names without a dot belong to the local network: an attacker cannot
    // register them in the public DNS.
    if (!memchr(name.ptr, '.', name.len) || is_digits_and_dots(name) ||
        ends_with(name, SPAN(".localhost")))
        return true;
    return str_eq_nocase(name, s->listen_host) || is_listed(s->hosts, name);
}

bool http_site_lists_origin(const struct http_site *s, span origin, span host)
{
    static const span schemes[] = {{"http://", 7}, {"https://", 8}};

    if (is_listed(s->origins, origin))
        return true;
    for (unsigned i = 0; i < countof(schemes); i++)
        if (host.len > 0 && origin.len == schemes[i].len + host.len &&
            str_eq_nocase((span){origin.ptr, schemes[i].len}, schemes[i]) &&
            ends_with(origin, host))
            return true;
    return false;
}

bool http_site_takes_origin(const struct http_site *s, span origin, span host)
{
    return s->any_origin || http_site_lists_origin(s, origin, host);
}

// "same-site" is another port or subdomain, thus another server.
bool http_site_is_own(span fetch_site)
{
    return span_eq(fetch_site, SPAN("same-origin")) || span_eq(fetch_site, SPAN("none"));
}
