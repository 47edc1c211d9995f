// gzip.h: compresses and decompresses gzip. No I/O; may run on any thread.
#ifndef QUEEN_HTTP_GZIP_H
#define QUEEN_HTTP_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/span.h"

// Whether a client that sent this Accept-Encoding prefers gzip to the plain answer.
bool gzip_is_wanted(span accept_encoding);

// Appends the compressed input to *out. QE_TOO_LARGE: it does not get smaller; QE_NO_MEMORY.
MUST_USE int gzip_pack(span in, struct buf *out);

// Appends the decompressed input to *out. QE_TOO_LARGE: more than max bytes; QE_BAD_REQUEST:
// not gzip, or truncated; QE_NO_MEMORY.
MUST_USE int gzip_unpack(span in, size_t max, struct buf *out);

#endif
