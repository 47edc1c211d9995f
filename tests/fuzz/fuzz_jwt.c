// fuzz_jwt.c: any text as a token and any JSON as a key set: no crash, no byte outside, nothing
// accepted that was not signed.
//
// build: lib/auth/jwt.c lib/auth/keyset.c lib/auth/revoked.c lib/auth/identity_limits.c lib/json/scan.c lib/json/text.c -lcrypto
#include <stdlib.h>
#include <string.h>

#include "auth/jwt.h"
#include "auth/keyset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct jwt_rules rules = {.issuer = {"me", 2},
                                       .audience = {"q", 1},
                                       .skew_s = 30,
                                       .role_claim = {"role", 4},
                                       .roles_claim = {"roles", 5},
                                       .role_admin = {"admin", 5},
                                       .role_write = {"read-write", 10},
                                       .role_read = {"read-only", 9}};

// A public key whose private half was thrown away: signatures are decoded, and none is valid.
static const char curve_key[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
                                "\"x\":\"pTB35bY_G_6KYw6v0LwO1QtpT3OMaQ8HZeolHUVxAaA\","
                                "\"y\":\"46JvbyvEw-lICbFU4nK7cMYxDPFAd3q2HGujusGeCSQ\"}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1); // of exact length, so that ASan sees an overrun
    span text = {copy, size};
    struct arena a;
    struct jwt t;
    struct jwt_claims claims;
    struct fault f;
    struct keyset *keys = keyset_new();

    memcpy(copy, data, size);
    arena_init(&a);
    keyset_add_secret(keys, SPAN("a secret that the fuzzer does not know"));
    if (keyset_add_jwks(keys, span_of(curve_key), &f) != 0)
        BUG("the key of the fuzzer is not accepted");
    if (jwt_parse(text, &a, &t, &f) == 0) {
        if (keyset_verify(keys, &t) == 0)
            BUG("accepted without a signature");
        if (jwt_check(&t, &rules, 1000, &a, &claims, &f) == 0 && claims.until_s < 1000)
            BUG("expired and accepted");
    }
    t = (struct jwt){.claims = text};
    if (jwt_check(&t, &rules, 1000, &a, &claims, &f) == 0 && claims.level > ACCESS_ADMIN)
        BUG("a level that is none");
    (void)!keyset_add_jwks(keys, text, &f);
    keyset_unref(keys);
    arena_deinit(&a);
    free(copy);
    return 0;
}
