// jwt_keys.h: the settings for tokens, rows of the tables of both servers.
//
// A table that includes them has a struct conf_jwt as its field jwt and defines AT(); the
// argument is part of the first row.
#ifndef QUEEN_CONF_JWT_KEYS_H
#define QUEEN_CONF_JWT_KEYS_H

// clang-format off
#define JWT_KEYS(...) \
    {__VA_ARGS__ .name = "JWT_ENABLED", .type = CONF_BOOL, .fallback = "false", AT(jwt.enabled), \
     .text = "All requests except public ones require a token."}, \
    {.name = "JWT_ALGORITHM", .type = CONF_ENUM, .choices = "HS256|RS256|EdDSA|ES256|ES384|ES512|PS256|PS384|PS512|auto", .fallback = "HS256", \
     AT(jwt.algorithm), .text = "Signature algorithm of tokens; auto: that of the token, if a key for it is configured."}, \
    {.name = "JWT_SECRET", TEXT, .secret = true, .fallback = "", AT(jwt.secret), \
     .text = "Key of HS256, used as written."}, \
    {.name = "JWT_PUBLIC_KEY", TEXT, .file = true, .fallback = "", AT(jwt.public_key), \
     .text = "Public key of all algorithms but HS256, PEM; `\\n` may stand for line breaks. Overrides JWT_JWKS_URL."}, \
    {.name = "JWT_JWKS_URL", TEXT, .fallback = "", AT(jwt.jwks_url), \
     .text = "URL of the published keys of all algorithms but HS256, http or https."}, \
    {.name = "JWT_JWKS_REFRESH_INTERVAL", INT(1, 86400), .unit = "s", .fallback = "3600", AT(jwt.jwks_refresh_s), \
     .text = "Keys older than this are fetched again."}, \
    {.name = "JWT_JWKS_TIMEOUT_MS", MS(1), .fallback = "5000", AT(jwt.jwks_timeout_ms), \
     .text = "Timeout for fetching keys; requests that wait for them are then answered with 503."}, \
    {.name = "JWT_ISSUER", TEXT, .fallback = "", AT(jwt.issuer), .text = "Required `iss`; empty: any."}, \
    {.name = "JWT_AUDIENCE", TEXT, .fallback = "", AT(jwt.audience), \
     .text = "Required `aud` (equal to it or in the list); empty: any."}, \
    {.name = "JWT_CLOCK_SKEW", INT(0, 86400), .unit = "s", .fallback = "30", AT(jwt.clock_skew_s), \
     .text = "Allowed clock difference when `exp`, `nbf` and `iat` are checked."}, \
    {.name = "JWT_REQUIRE_EXP", .type = CONF_BOOL, .fallback = "false", AT(jwt.require_exp), \
     .text = "Refuse tokens without `exp`, which would be valid for ever. Recommended."}, \
    {.name = "JWT_SKIP_PATHS", TEXT, .fallback = "/health,/metrics/prometheus,/metrics,/", AT(jwt.skip_paths), \
     .text = "Paths that require no token. A path that ends with `/` covers all below it; `/` covers only itself."}, \
    {.name = "JWT_REVOKED_FILE", TEXT, .fallback = "", AT(jwt.revoked_file), \
     .text = "File with the ids (`jti`) of revoked tokens, one per line; tokens without `jti` are then refused. Changes take effect within 2 s."}, \
    {.name = "JWT_ROLES_CLAIM", TEXT, .fallback = "role", AT(jwt.roles_claim), \
     .text = "Claim that holds one role."}, \
    {.name = "JWT_ROLES_ARRAY_CLAIM", TEXT, .fallback = "roles", AT(jwt.roles_array_claim), \
     .text = "Claim that holds a list of roles."}, \
    {.name = "JWT_ROLE_ADMIN", TEXT, .fallback = "admin", AT(jwt.role_admin), \
     .text = "Role that may do everything."}, \
    {.name = "JWT_ROLE_READ_WRITE", TEXT, .fallback = "read-write", AT(jwt.role_read_write), \
     .text = "Role that may push, pop, acknowledge, configure and read; on the platform: send events, save segments and campaigns."}, \
    {.name = "JWT_ROLE_READ_ONLY", TEXT, .fallback = "read-only", AT(jwt.role_read_only), \
     .text = "Role that may read reports; on the platform also count and preview segments."}
// clang-format on

#endif
