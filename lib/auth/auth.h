// auth.h: the rules of a process for tokens and access.
//
// Built at start from the settings, read-only afterwards (except the published keys, see
// jwks.h). Workers apply them through guard.h.
#ifndef QUEEN_AUTH_AUTH_H
#define QUEEN_AUTH_AUTH_H

#include "auth/jwt.h"
#include "auth/key_table.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

struct auth;

// One algorithm of enum jwt_alg, or all for which there are keys.
enum auth_algorithm { AUTH_HS256 = JWT_HS256, AUTH_AUTO = JWT_ALGS };

struct auth_conf {              // all texts are borrowed for auth's life; "": not set
    const char *admin_key_file; // API key of the administrator
    const char *client_roles;   // of client certificates (client_cert.h)
    const char *rules_file;     // permissions by subject
    bool jwt;                   // accept JSON Web Tokens; the settings below are for them
    enum auth_algorithm algorithm;
    const char *secret, *public_key, *jwks_url;
    unsigned jwks_refresh_s, jwks_timeout_ms;
    bool check_only;        // the settings are checked: fetch no keys
    const char *skip_paths; // comma-separated
    const char *revoked_file;
    const char *limits; // of identities that bring none of their own (identity_limits.h)
    struct jwt_rules rules;
};

// Fails if the settings cannot work: an algorithm without a key, or an invalid key. Starts
// fetching published keys.
MUST_USE int auth_new(struct auth **a, const struct auth_conf *conf, struct fault *f);
void auth_free(struct auth *a); // a may be NULL; call after all guards are closed

// The settings require authentication. Without them requests are admitted until the table of
// keys has a key: a server that lacks the settings of the others must not be a way around them.
bool auth_is_protected(const struct auth *a);
struct key_table *auth_keys(struct auth *a);     // borrowed
struct limit_table *auth_limits(struct auth *a); // borrowed
void auth_reload(struct auth *a);                // reads the files again; failures are logged

#endif
