// jwt.h: a token taken apart, and what its claims allow.
//
//      token ──► jwt_parse ──► keyset_verify ──► jwt_check ──► who may do what
//
// Nothing of a parsed token may be believed before its signature has been verified.
#ifndef QUEEN_AUTH_JWT_H
#define QUEEN_AUTH_JWT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"
#include "http/route.h"

enum jwt_alg { JWT_HS256, JWT_RS256, JWT_EDDSA };

// All spans are borrowed from the token or lie in the arena.
struct jwt {
    span signed_part; // "header.claims", what the signature is about
    span signature;   // bytes
    enum jwt_alg alg;
    span kid;    // SPAN_NONE: none
    span claims; // JSON text
};

// Three parts, base64url, a header with an algorithm we know and without "crit".  "none" is
// none of them.  f says for people what is wrong; QE_UNAUTHORIZED.
MUST_USE int jwt_parse(span token, struct arena *a, struct jwt *t, struct fault *f);

struct jwt_rules {
    span issuer, audience; // "": not asked for
    int64_t skew_s;
    span role_claim, roles_claim;           // one role; a list of them
    span role_admin, role_write, role_read; // "": nobody has it
};

struct jwt_claims {
    span sub;               // SPAN_NONE: none, or empty
    span username;          // for the log
    enum http_access level; // ACCESS_PUBLIC: none of the roles
    int64_t until_s;        // the claims hold until then, skew included; INT64_MAX: for ever
};

// The claims of a verified token.  now_s: seconds since 1970.
MUST_USE int jwt_check(const struct jwt *t, const struct jwt_rules *rules, int64_t now_s,
                       struct arena *a, struct jwt_claims *claims, struct fault *f);

#endif
