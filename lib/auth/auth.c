// auth.c: builds the rules for tokens from the settings.
#include <stdlib.h>

#include <openssl/crypto.h>

#include "auth/auth_int.h"
#include "auth/fetch.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { GAP_MS = 5000, FAILED_GAP_MS = 1000, GOOD_SECRET_BYTES = 32 };

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
    int rc = add_keys(a, f);
    if (rc == 0)
        rc = check_algorithm(a, f);
    if (rc == 0)
        rc = start_fetching(a, f);
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
    keyset_unref(a->keys);
    free(a);
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
    case AUTH_RS256:
    case AUTH_EDDSA: {
        bool is_rsa = c->algorithm == AUTH_RS256;
        if (!has_pem && !has_jwks)
            return fault_set(f, QE_CONF,
                             "JWT_ALGORITHM %s requires JWT_PUBLIC_KEY or JWT_JWKS_URL",
                             is_rsa ? "RS256" : "EdDSA");
        if (has_pem && !keyset_has(a->keys, is_rsa ? JWT_RS256 : JWT_EDDSA))
            return fault_set(f, QE_CONF, "JWT_PUBLIC_KEY must be a key for JWT_ALGORITHM %s",
                             is_rsa ? "RS256" : "EdDSA");
        break;
    }
    case AUTH_AUTO:
        if (!keyset_has(a->keys, JWT_HS256) && !has_pem && !has_jwks)
            return fault_set(
                f, QE_CONF,
                "JWT_ALGORITHM auto requires JWT_SECRET, JWT_PUBLIC_KEY or JWT_JWKS_URL");
        break;
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
    switch (a->conf.algorithm) {
    case AUTH_HS256:
        return alg == JWT_HS256;
    case AUTH_RS256:
        return alg == JWT_RS256;
    case AUTH_EDDSA:
        return alg == JWT_EDDSA;
    case AUTH_AUTO:
        return true;
    }
    return false;
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
