// Names and addresses of peers.
#include "peer/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

// The end of the host and, behind a colon, its port ("" when there is none).  NULL: neither.
static const char *peer_address_split(span item, span *host)
{
    const char *end = item.ptr + item.len;

    if (item.len > 0 && item.ptr[0] == '[') {
        const char *close = memchr(item.ptr, ']', item.len);
        if (!close || (close + 1 < end && close[1] != ':'))
            return NULL;
        *host = (span){item.ptr + 1, (size_t)(close - item.ptr) - 1};
        return close + 1 < end ? close + 2 : end;
    }
    const char *colon = memchr(item.ptr, ':', item.len);
    if (colon && memchr(colon + 1, ':', (size_t)(end - colon) - 1))
        colon = NULL; // a bare IPv6 address
    *host = (span){item.ptr, (size_t)((colon ? colon : end) - item.ptr)};
    return colon ? colon + 1 : end;
}

static int parse_one(span item, unsigned port, struct peer_name *name, struct fault *f)
{
    const char *end = item.ptr + item.len;
    span host = SPAN_NONE;
    const char *digits = peer_address_split(item, &host);

    name->port = port;
    if (digits && digits < end) {
        char *stop;
        unsigned long n = strtoul(digits, &stop, 10);
        name->port = stop == end && n > 0 && n < 65536 ? (unsigned)n : 0;
    }
    if (!digits || host.len == 0 || host.len >= PEER_HOST || name->port == 0)
        return fault_set(f, QE_CONF, "QUEEN_UDP_PEERS: \"%.*s\" is not host or host:port",
                         SPAN_ARG(item));
    memcpy(name->host, host.ptr, host.len);
    name->host[host.len] = '\0';
    return 0;
}

int peer_names_parse(const char *list, unsigned port, struct peer_name names[PEERS_MAX],
                     unsigned *n, struct fault *f)
{
    int rc = 0;

    *n = 0;
    while (*list != '\0' && rc == 0) {
        size_t skip = strspn(list, ", \t");
        size_t len = strcspn(list + skip, ", \t");
        if (len > 0 && *n == PEERS_MAX)
            return fault_set(f, QE_CONF, "QUEEN_UDP_PEERS: names more than %d servers",
                             PEERS_MAX);
        if (len > 0)
            rc = parse_one((span){list + skip, len}, port, &names[(*n)++], f);
        list += skip + len;
    }
    return rc;
}

socklen_t address_len(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

bool address_eq(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6) {
        const struct sockaddr_in6 *x = (const void *)a, *y = (const void *)b;
        return x->sin6_port == y->sin6_port &&
               memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
    }
    const struct sockaddr_in *x = (const void *)a, *y = (const void *)b;
    return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
}

void address_format(const struct sockaddr_storage *a, char out[PEER_ADDRESS])
{
    out[0] = '\0';
    if (a->ss_family == AF_INET6) {
        const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(in6))
            inet_ntop(AF_INET, in6->s6_addr + 12, out, PEER_ADDRESS);
        else
            inet_ntop(AF_INET6, in6, out, PEER_ADDRESS);
    } else if (a->ss_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, out,
                  PEER_ADDRESS);
    }
}
