// auth.c: copies the JWT settings into the configuration of lib/auth.
#include "settings/auth.h"

int settings_auth(const struct conf_jwt *c, struct auth **a, struct fault *f)
{
    _Static_assert((int)CONF_AUTO == (int)AUTH_AUTO && (int)CONF_EDDSA == (int)AUTH_EDDSA,
                   "the lists of algorithms differ");
    *a = NULL;
    if (!c->enabled)
        return 0;
    return auth_new(a,
                    &(struct auth_conf){
                        .algorithm = (enum auth_algorithm)c->algorithm,
                        .secret = c->secret,
                        .public_key = c->public_key,
                        .jwks_url = c->jwks_url,
                        .jwks_refresh_s = (unsigned)c->jwks_refresh_s,
                        .jwks_timeout_ms = (unsigned)c->jwks_timeout_ms,
                        .skip_paths = c->skip_paths,
                        .rules = {.issuer = span_of(c->issuer),
                                  .audience = span_of(c->audience),
                                  .skew_s = c->clock_skew_s,
                                  .role_claim = span_of(c->roles_claim),
                                  .roles_claim = span_of(c->roles_array_claim),
                                  .role_admin = span_of(c->role_admin),
                                  .role_write = span_of(c->role_read_write),
                                  .role_read = span_of(c->role_read_only)},
                    },
                    f);
}
