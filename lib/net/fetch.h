// fetch.h: short HTTP requests of our own. They block: for work threads only.
#ifndef QUEEN_NET_FETCH_H
#define QUEEN_NET_FETCH_H

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

enum { FETCH_MAX_BYTES = 1 << 20 };

// http or https; certificates are checked against the system's authorities. The body is
// appended to out (given, also on failure: buf_free).
MUST_USE int fetch_get(const char *url, unsigned timeout_ms, struct buf *out, struct fault *f);

// A POST. The answer must be 200; its body is not read. f->code is QE_BAD_REQUEST if the server
// refused the request with another 4xx than 408 and 429, so that a repetition cannot help.
struct fetch_header {
    const char *name, *value;
};
struct ssl_ctx_st;
struct fetch_post {
    struct ssl_ctx_st
        *tls; // fetch_tls_new(), for many requests: it reads the system's authorities
    const char *url, *content_type;
    const struct fetch_header *headers;
    unsigned n_headers;
    span body;
    unsigned timeout_ms;
};
MUST_USE int fetch_post(const struct fetch_post *post, struct fault *f);
MUST_USE int fetch_tls_new(struct ssl_ctx_st **tls, struct fault *f);
void fetch_tls_free(struct ssl_ctx_st *tls); // tls may be NULL
// Whether an address can be used; the fault names what is wrong.
MUST_USE int fetch_check_url(const char *url, struct fault *f);

#endif
