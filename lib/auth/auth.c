// auth.c: builds the rules for tokens and keys from the settings.
#include <stdlib.h>

#include <openssl/crypto.h>

#include "auth/auth_int.h"
#include "auth/client_cert.h"
#include "auth/revoked.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/fetch.h"

enum { GAP_MS = 5000, FAILED_GAP_MS = 1000, GOOD_SECRET_BYTES = 32 };

static int read_limits(struct auth *a, struct fault *f);
static int read_admin_key(struct auth *a, struct fault *f);
static int read_rules(struct auth *a, struct fault *f);
static int add_keys(struct auth *a, struct fault *f);
static int check_algorithm(const struct auth *a, struct fault *f);
static int start_fetching(struct auth *a, struct fault *f);

int auth_new(struct auth **out, const struct auth_conf *conf, struct fault *f)
{
    struct auth *a = mem_new(struct auth);

    // The fetching thread may outlive main(): see jwks_free().
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    a->conf = *conf;
    a->keys = keyset_new();
    a->api_keys = key_table_new();
    a->limit_table = limits_new();
    int rc = client_roles_check(conf->client_roles, f);
    if (rc == 0)
        rc = read_limits(a, f);
    if (rc == 0)
        rc = read_admin_key(a, f);
    if (rc == 0)
        rc = read_rules(a, f);
    if (rc == 0 && conf->jwt) {
        rc = add_keys(a, f);
        if (rc == 0)
            rc = check_algorithm(a, f);
        if (rc == 0)
            rc = start_fetching(a, f);
        if (rc == 0 && conf->revoked_file[0] != '\0')
            rc = revoked_new(&a->revoked, conf->revoked_file, f);
        a->conf.rules.revoked = a->revoked;
    }
    if (rc != 0) {
        auth_free(a);
        a = NULL;
    }
    *out = a;
    return rc;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    jwks_free(a->jwks);
    revoked_free(a->revoked);
    keyset_unref(a->keys);
    key_table_free(a->api_keys);
    limits_free(a->limit_table);
    free(a);
}

bool auth_is_protected(const struct auth *a)
{
    return a->conf.jwt || a->conf.admin_key_file[0] != '\0' || a->conf.client_roles[0] != '\0';
}

struct key_table *auth_keys(struct auth *a) { return a->api_keys; }
struct limit_table *auth_limits(struct auth *a) { return a->limit_table; }

static int read_limits(struct auth *a, struct fault *f)
{
    if (limits_parse(span_of(a->conf.limits ? a->conf.limits : ""), &a->limits, f) == 0)
        return 0;
    fault_prefix(f, "QUEEN_LIMITS: ");
    return f->code = QE_CONF;
}

static int read_admin_key(struct auth *a, struct fault *f)
{
    if (a->conf.admin_key_file[0] == '\0')
        return 0;
    int rc = key_table_read_admin(a->api_keys, a->conf.admin_key_file, f);
    if (rc != 0)
        fault_prefix(f, "QUEEN_ADMIN_KEY_FILE: ");
    return rc;
}

static int read_rules(struct auth *a, struct fault *f)
{
    if (a->conf.rules_file[0] == '\0')
        return 0;
    int rc = key_table_read_rules(a->api_keys, a->conf.rules_file, f);
    if (rc != 0)
        fault_prefix(f, "QUEEN_RULES_FILE: ");
    return rc;
}

void auth_reload(struct auth *a)
{
    struct fault f;

    if (read_admin_key(a, &f) != 0)
        log_warn("auth.reload_failed", "why=\"%s\"", f.text);
    if (a->revoked)
        revoked_reload(a->revoked);
    if (read_rules(a, &f) != 0)
        log_warn("auth.reload_failed", "why=\"%s\"", f.text);
}

static int add_keys(struct auth *a, struct fault *f)
{
    const struct auth_conf *c = &a->conf;

    if (c->secret[0] != '\0' && auth_takes(a, JWT_HS256)) {
        span secret = span_of(c->secret);
        if (secret.len < GOOD_SECRET_BYTES)
            log_warn("auth.weak_secret",
                     "bytes=%zu why=\"JWT_SECRET is shorter than %d bytes\"", secret.len,
                     GOOD_SECRET_BYTES);
        keyset_add_secret(a->keys, secret);
    }
    if (c->public_key[0] == '\0' || c->algorithm == AUTH_HS256)
        return 0;
    int rc = keyset_add_pem(a->keys, span_of(c->public_key), f);
    if (rc != 0)
        fault_prefix(f, "JWT_PUBLIC_KEY is invalid: ");
    return rc;
}

static int check_algorithm(const struct auth *a, struct fault *f)
{
    const struct auth_conf *c = &a->conf;
    bool has_jwks = c->jwks_url[0] != '\0', has_pem = c->public_key[0] != '\0';

    switch (c->algorithm) {
    case AUTH_HS256:
        if (!keyset_has(a->keys, JWT_HS256))
            return fault_set(f, QE_CONF, "JWT_ALGORITHM HS256 needs JWT_SECRET");
        break;
    case AUTH_AUTO:
        if (!keyset_has(a->keys, JWT_HS256) && !has_pem && !has_jwks)
            return fault_set(
                f, QE_CONF,
                "JWT_ALGORITHM auto requires JWT_SECRET, JWT_PUBLIC_KEY or JWT_JWKS_URL");
        break;
    default: {
        enum jwt_alg alg = (enum jwt_alg)c->algorithm;
        if (!has_pem && !has_jwks)
            return fault_set(f, QE_CONF,
                             "JWT_ALGORITHM %s requires JWT_PUBLIC_KEY or JWT_JWKS_URL",
                             jwt_alg_name(alg));
        if (has_pem && !keyset_has(a->keys, alg))
            return fault_set(f, QE_CONF, "JWT_PUBLIC_KEY must be a key for JWT_ALGORITHM %s",
                             jwt_alg_name(alg));
        break;
    }
    }
    return 0;
}

// A static key takes precedence: then nothing is fetched.
static int start_fetching(struct auth *a, struct fault *f)
{
    const struct auth_conf *c = &a->conf;
    span url = span_of(c->jwks_url);

    if (url.len == 0 || c->public_key[0] != '\0' || c->algorithm == AUTH_HS256)
        return 0;
    if (!str_starts(url, SPAN("http://")) && !str_starts(url, SPAN("https://")))
        return fault_set(f, QE_CONF, "JWT_JWKS_URL must start with http:// or https://");
    if (str_url_user(url).ptr) // it is logged
        return fault_set(f, QE_CONF, "JWT_JWKS_URL must not contain a user or password");
    if (c->check_only)
        return 0;
    return jwks_new(&a->jwks,
                    &(struct jwks_conf){.url = c->jwks_url,
                                        .refresh_s = c->jwks_refresh_s,
                                        .timeout_ms = c->jwks_timeout_ms,
                                        .gap_ms = GAP_MS,
                                        .failed_gap_ms = FAILED_GAP_MS,
                                        .fetch = fetch_get},
                    f);
}

bool auth_takes(const struct auth *a, enum jwt_alg alg)
{
    return a->conf.algorithm == AUTH_AUTO || (enum jwt_alg)a->conf.algorithm == alg;
}

bool auth_skips(const struct auth *a, span path)
{
    span rest = span_of(a->conf.skip_paths), entry;

    while (str_split(&rest, ',', &entry)) {
        entry = str_trim(entry);
        if (entry.len == 0)
            continue;
        bool is_prefix = entry.len > 1 && entry.ptr[entry.len - 1] == '/';
        if (span_eq(entry, path) || (is_prefix && str_starts(path, entry)))
            return true;
    }
    return false;
}
