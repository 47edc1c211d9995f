// address.h: the address of a server.
#ifndef QUEEN_CLIENT_ADDRESS_H
#define QUEEN_CLIENT_ADDRESS_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/span.h"
#include "queen/error.h"

struct address {
    bool tls;
    char *host;      // without brackets
    char *port;      // digits
    char *authority; // as in the Host header
    char *prefix;    // prefix of all paths, without a trailing slash; often ""
};

// http[s]://host[:port][/prefix]; the default ports are 6632 and, with TLS, 443. Fills a
// (address_deinit() frees it), or fails with QUEEN_E_ARGUMENT.
MUST_USE int address_parse(struct address *a, span url, struct queen_error *err);
void address_deinit(struct address *a);

#endif
