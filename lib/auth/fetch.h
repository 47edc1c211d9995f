// fetch.h: fetches a small document with HTTP GET. Blocks: for work threads only.
#ifndef QUEEN_AUTH_FETCH_H
#define QUEEN_AUTH_FETCH_H

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

enum { FETCH_MAX_BYTES = 1 << 20 };

// http or https; certificates are checked against the system's authorities. The body is
// appended to out (given, also on failure: buf_free).
MUST_USE int fetch_get(const char *url, unsigned timeout_ms, struct buf *out, struct fault *f);

#endif
