// jwt.h: parses a token and checks its claims.
//
//     token ──► jwt_parse ──► keyset_verify ──► jwt_check ──► subject and access level
//
// Nothing in a parsed token may be trusted before its signature has been verified.
#ifndef QUEEN_AUTH_JWT_H
#define QUEEN_AUTH_JWT_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/identity_limits.h"
#include "base/arena.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"
#include "http/route.h"

// In the order of enum auth_algorithm and of the setting JWT_ALGORITHM.
enum jwt_alg {
    JWT_HS256,
    JWT_RS256,
    JWT_EDDSA,
    JWT_ES256,
    JWT_ES384,
    JWT_ES512,
    JWT_PS256,
    JWT_PS384,
    JWT_PS512,
    JWT_ALGS
};

const char *jwt_alg_name(enum jwt_alg alg);      // "ES256"
bool jwt_alg_find(span name, enum jwt_alg *alg); // exact, as in a token's header

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

struct revoked;

struct jwt_rules {
    span issuer, audience; // "": not checked
    int64_t skew_s;
    bool require_exp;                       // refuse tokens that never expire
    span role_claim, roles_claim;           // one role; a list of them
    span rules_claim;                       // rules.h, as a text or a list of texts; "": none
    span limits_claim;                      // identity_limits.h, as a text; "": none
    span role_admin, role_write, role_read; // "": no token has it
    struct revoked *revoked;                // ids of refused tokens; NULL: none
};

struct jwt_claims {
    span sub;               // SPAN_NONE: none, or empty
    span username;          // for the log
    enum http_access level; // ACCESS_PUBLIC: the token has none of the roles
    span rules;             // SPAN_NONE: the token has none
    struct limits limits;   // only if has_limits
    bool has_limits;
    // Until when this result may be kept, skew included; INT64_MAX: for ever. The token itself
    // may be valid for longer, if its revocation has to be checked again.
    int64_t until_s;
};

// The claims of a verified token.  now_s: seconds since 1970.
MUST_USE int jwt_check(const struct jwt *t, const struct jwt_rules *rules, int64_t now_s,
                       struct arena *a, struct jwt_claims *claims, struct fault *f);

#endif
