// jwt.h: parses a token and checks its claims.
//
//     token ──► jwt_parse ──► keyset_verify ──► jwt_check ──► subject and access level
//
// Nothing in a parsed token may be trusted before its signature has been verified.
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
    span signed_part; // "header.claims", the signed bytes
    span signature;   // bytes
    enum jwt_alg alg;
    span kid;    // SPAN_NONE: none
    span claims; // JSON text
};

// Requires three base64url parts and a header with a supported algorithm and without "crit".
// "none" is not supported. On failure returns QE_UNAUTHORIZED with the reason in f.
MUST_USE int jwt_parse(span token, struct arena *a, struct jwt *t, struct fault *f);

struct jwt_rules {
    span issuer, audience; // "": not checked
    int64_t skew_s;
    span role_claim, roles_claim;           // one role; a list of them
    span role_admin, role_write, role_read; // "": no token has it
};

struct jwt_claims {
    span sub;               // SPAN_NONE: none, or empty
    span username;          // for the log
    enum http_access level; // ACCESS_PUBLIC: the token has none of the roles
    int64_t until_s; // the claims are valid until then, skew included; INT64_MAX: for ever
};

// The claims of a verified token.  now_s: seconds since 1970.
MUST_USE int jwt_check(const struct jwt *t, const struct jwt_rules *rules, int64_t now_s,
                       struct arena *a, struct jwt_claims *claims, struct fault *f);

#endif
