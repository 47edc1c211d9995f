// address.h: where a server is.
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
    char *prefix;    // path in front of all paths, without a slash at its end; often ""
};

// http[s]://host[:port][/prefix]; 6632 and, with TLS, 443 are the default ports.  Fills a
// (address_deinit() frees), or fails with QUEEN_E_ARGUMENT.
MUST_USE int address_parse(struct address *a, span url, struct queen_error *err);
void address_deinit(struct address *a);

#endif
