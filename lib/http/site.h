// site.h: protects a server without authentication from web pages.
//
// A browser sends requests to any address that a page names, also to 127.0.0.1. Three headers
// that a page cannot forge identify such requests:
//
//     Origin           another site's page: refused with 403 unless the origin is configured
//     Sec-Fetch-Site   the same for requests that have no Origin: images, scripts, links. Links
//                      to files, which no route handles, are accepted
//     Host             a name that an attacker pointed at our address (DNS rebinding): 403
//
// Requests without these (curl, servers, command lines) are not affected. A server with
// authentication needs no check, because a browser does not add tokens by itself. It does add
// client certificates, so these do not count for pages of other origins.
#ifndef QUEEN_HTTP_SITE_H
#define QUEEN_HTTP_SITE_H

#include <stdbool.h>

#include "base/span.h"

// The warning of a server that is neither protected nor limited to its machine.
#define HTTP_SITE_EXPOSED                                                            \
    "no authentication on a network address: everybody who reaches this server can " \
    "use it"

struct http_site {    // texts are borrowed
    bool checked;     // no authentication: check Origin, Sec-Fetch-Site and Host
    bool any_origin;  // answers carry "Access-Control-Allow-Origin: *"
    span origins;     // comma-separated origins that pages may have; "*": any
    span hosts;       // comma-separated further names of this server; "*": any
    span listen_host; // the configured address or name
};

// protected: authentication is enabled. origins and hosts are settings, "" if not set.
struct http_site http_site_new(bool is_protected, const char *origins, const char *hosts,
                               const char *listen_host);
bool http_site_takes_host(const struct http_site *s, span host);
// host: the value of the request's Host header, for pages that this server delivers itself.
bool http_site_takes_origin(const struct http_site *s, span origin, span host);
// The same without the default of a server with authentication, which takes any origin.
bool http_site_lists_origin(const struct http_site *s, span origin, span host);
// The value of Sec-Fetch-Site: the user or a page of this server has sent the request.
bool http_site_is_own(span fetch_site);

#endif
