// revoked.h: tokens that are refused although they are valid, by their id (jti).
//
// The list is a file with one id per line; "#" begins a comment. Every process that is
// configured with the file reads it at start and again when it changes: it looks at most once a
// second, when a token is checked, and after revoked_reload(). While the file cannot be read,
// the last list stays in force.
#ifndef QUEEN_AUTH_REVOKED_H
#define QUEEN_AUTH_REVOKED_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

// How long the result of a check may be kept.
enum { REVOKED_KEEP_S = 1 };

struct revoked;

// path is borrowed. Fails if the file cannot be read.
MUST_USE int revoked_new(struct revoked **r, const char *path, struct fault *f);
void revoked_free(struct revoked *r); // r may be NULL

bool revoked_has(struct revoked *r, span jti); // any thread
void revoked_reload(struct revoked *r);        // any thread: reads the file at the next check

#endif
