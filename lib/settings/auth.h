// auth.h: builds the checks of tokens and keys of both servers from their settings.
#ifndef QUEEN_SETTINGS_AUTH_H
#define QUEEN_SETTINGS_AUTH_H

#include "auth/auth.h"
#include "conf/shared.h"

// Given: auth_free(). See auth_is_protected().
MUST_USE int settings_auth(const struct conf_jwt *c, const struct conf_access *access,
                           const struct conf_tls *tls, struct auth **a, struct fault *f);
// The same checks, without contacting a server for keys.
MUST_USE int settings_check_auth(const struct conf_jwt *c, const struct conf_access *access,
                                 const struct conf_tls *tls, struct fault *f);

#endif
