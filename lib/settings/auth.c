// auth.c: copies the settings of tokens and keys into the configuration of lib/auth.
#include "settings/auth.h"

static struct auth_conf auth_conf_of(const struct conf_jwt *c, const struct conf_access *access,
                                     const struct conf_tls *tls)
{
    _Static_assert((int)CONF_AUTO == (int)AUTH_AUTO && (int)CONF_EDDSA == (int)JWT_EDDSA &&
                       (int)CONF_ES256 == (int)JWT_ES256 && (int)CONF_PS512 == (int)JWT_PS512,
                   "the lists of algorithms differ");
    return (struct auth_conf){
        .admin_key_file = access->admin_key_file,
        .client_roles = tls->client_roles,
        .rules_file = access->rules_file,
        .jwt = c->enabled,
        .algorithm = (enum auth_algorithm)c->algorithm,
        .secret = c->secret,
        .public_key = c->public_key,
        .jwks_url = c->jwks_url,
        .jwks_refresh_s = (unsigned)c->jwks_refresh_s,
        .jwks_timeout_ms = (unsigned)c->jwks_timeout_ms,
        .skip_paths = c->skip_paths,
        .revoked_file = c->revoked_file,
        .limits = access->limits,
        .rules = {.issuer = span_of(c->issuer),
                  .audience = span_of(c->audience),
                  .skew_s = c->clock_skew_s,
                  .require_exp = c->require_exp,
                  .role_claim = span_of(c->roles_claim),
                  .roles_claim = span_of(c->roles_array_claim),
                  .rules_claim = span_of(access->rules_claim),
                  .limits_claim = span_of(access->limits_claim),
                  .role_admin = span_of(c->role_admin),
                  .role_write = span_of(c->role_read_write),
                  .role_read = span_of(c->role_read_only)},
    };
}

int settings_auth(const struct conf_jwt *c, const struct conf_access *access,
                  const struct conf_tls *tls, struct auth **a, struct fault *f)
{
    struct auth_conf conf = auth_conf_of(c, access, tls);

    return auth_new(a, &conf, f);
}

int settings_check_auth(const struct conf_jwt *c, const struct conf_access *access,
                        const struct conf_tls *tls, struct fault *f)
{
    struct auth_conf conf = auth_conf_of(c, access, tls);
    struct auth *a;

    conf.check_only = true;
    int rc = auth_new(&a, &conf, f);
    auth_free(a);
    return rc;
}
