// auth_int.h: the rules, shared by auth.c and guard.c.
#ifndef QUEEN_AUTH_AUTH_INT_H
#define QUEEN_AUTH_AUTH_INT_H

#include <stdbool.h>

#include "auth/auth.h"
#include "auth/jwks.h"
#include "auth/keyset.h"

struct auth {
    struct auth_conf conf;
    struct key_table *api_keys;
    struct keyset *keys;     // the secret and the static public key
    struct jwks *jwks;       // NULL: none
    struct revoked *revoked; // NULL: none; also in conf.rules
    struct limit_table *limit_table;
    struct limits limits; // the default
};

bool auth_takes(const struct auth *a, enum jwt_alg alg);
bool auth_skips(const struct auth *a, span path);

#endif
