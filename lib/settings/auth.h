// auth.h: builds the token checks of both servers from their settings.
#ifndef QUEEN_SETTINGS_AUTH_H
#define QUEEN_SETTINGS_AUTH_H

#include "auth/auth.h"
#include "conf/conf.h"

// Given: auth_free(). Returns 0 and sets *a to NULL if authentication is off.
MUST_USE int settings_auth(const struct conf_jwt *c, struct auth **a, struct fault *f);

#endif
