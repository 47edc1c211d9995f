// auth.h: the rules of a process for tokens and access.
//
// Built at start from the settings, read-only afterwards (except the published keys, see
// jwks.h). Workers apply them through guard.h.
#ifndef QUEEN_AUTH_AUTH_H
#define QUEEN_AUTH_AUTH_H

#include "auth/jwt.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

struct auth;

enum auth_algorithm { AUTH_HS256, AUTH_RS256, AUTH_EDDSA, AUTH_AUTO };

struct auth_conf { // all texts are borrowed for auth's life; "": not set
    enum auth_algorithm algorithm;
    const char *secret, *public_key, *jwks_url;
    unsigned jwks_refresh_s, jwks_timeout_ms;
    const char *skip_paths; // comma-separated
    struct jwt_rules rules;
};

// Fails if the settings cannot work: an algorithm without a key, or an invalid key. Starts
// fetching published keys.
MUST_USE int auth_new(struct auth **a, const struct auth_conf *conf, struct fault *f);
void auth_free(struct auth *a); // a may be NULL; call after all guards are closed

#endif
