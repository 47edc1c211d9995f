// auth.h: from settings to rules about tokens, for both servers.
#ifndef QUEEN_SETTINGS_AUTH_H
#define QUEEN_SETTINGS_AUTH_H

#include "auth/auth.h"
#include "conf/conf.h"

// Given: auth_free().  NULL and 0: no tokens are asked for.
MUST_USE int settings_auth(const struct conf_jwt *c, struct auth **a, struct fault *f);

#endif
