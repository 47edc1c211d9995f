// keyset.c: elliptic curves and RSA-PSS, and that no key verifies an algorithm it is not for.
// Keys and signatures are made here, by OpenSSL.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "auth/keyset.h"
#include "base/base64.h"
#include "base/buf.h"

#define TEXT "aGVhZA.Y2xhaW1z"

static const struct kind {
    enum jwt_alg alg;
    const char *curve; // NULL: RSA
    size_t half;
} kinds[] = {
    {JWT_ES256, "P-256", 32}, {JWT_ES384, "P-384", 48}, {JWT_ES512, "P-521", 66},
    {JWT_PS256, NULL, 0},     {JWT_PS384, NULL, 0},     {JWT_PS512, NULL, 0},
    {JWT_RS256, NULL, 0},
};

static EVP_PKEY *pkeys[countof(kinds)];
static struct keyset *keys;
static uint8_t signature[1024];

static int make(void **state)
{
    (void)state;
    EVP_PKEY *rsa = EVP_RSA_gen(2048);
    for (unsigned i = 0; i < countof(kinds); i++) {
        pkeys[i] = kinds[i].curve ? EVP_EC_gen(kinds[i].curve) : rsa;
        if (!kinds[i].curve)
            EVP_PKEY_up_ref(rsa);
        if (!pkeys[i])
            return -1;
    }
    EVP_PKEY_free(rsa);
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    for (unsigned i = 0; i < countof(kinds); i++)
        EVP_PKEY_free(pkeys[i]);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    keys = keyset_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keyset_unref(keys);
    return 0;
}

static const EVP_MD *digest(enum jwt_alg alg)
{
    bool is_384 = alg == JWT_ES384 || alg == JWT_PS384,
         is_512 = alg == JWT_ES512 || alg == JWT_PS512;

    return is_384 ? EVP_sha384() : is_512 ? EVP_sha512() : EVP_sha256();
}

// From ASN.1 to r and s of the length of the field.
static size_t flatten(uint8_t *bytes, size_t n, size_t half)
{
    const uint8_t *at = bytes;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &at, (long)n);

    assert_non_null(sig);
    BN_bn2binpad(ECDSA_SIG_get0_r(sig), bytes, (int)half);
    BN_bn2binpad(ECDSA_SIG_get0_s(sig), bytes + half, (int)half);
    ECDSA_SIG_free(sig);
    return 2 * half;
}

static struct jwt sign(EVP_PKEY *key, const struct kind *k, int salt)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    EVP_PKEY_CTX *p;
    size_t n = sizeof signature;

    assert_int_equal(EVP_DigestSignInit(c, &p, digest(k->alg), NULL, key), 1);
    if (k->alg >= JWT_PS256) {
        assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(p, RSA_PKCS1_PSS_PADDING), 1);
        assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(p, salt), 1);
    }
    assert_int_equal(
        EVP_DigestSign(c, signature, &n, (const unsigned char *)TEXT, sizeof TEXT - 1), 1);
    EVP_MD_CTX_free(c);
    if (k->curve)
        n = flatten(signature, n, k->half);
    return (struct jwt){.signed_part = SPAN(TEXT),
                        .signature = {(char *)signature, n},
                        .alg = k->alg,
                        .kid = SPAN_NONE};
}

static void add_pem(EVP_PKEY *key)
{
    BIO *b = BIO_new(BIO_s_mem());
    struct fault f;
    char *data;

    PEM_write_bio_PUBKEY(b, key);
    long n = BIO_get_mem_data(b, &data);
    assert_int_equal(keyset_add_pem(keys, (span){data, (size_t)n}, &f), 0);
    BIO_free(b);
}

static void put_url64(struct buf *out, const uint8_t *bytes, size_t n)
{
    char text[1024] = "";

    base64_encode(bytes, n, text);
    for (char *c = text; *c && *c != '='; c++)
        buf_putc(out, *c == '+' ? '-' : *c == '/' ? '_' : *c);
}

static void put_number(struct buf *out, const char *name, EVP_PKEY *key, const char *param,
                       size_t pad)
{
    uint8_t bytes[512];
    BIGNUM *bn = NULL;

    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &bn), 1);
    size_t n = pad > 0 ? pad : (size_t)BN_num_bytes(bn);
    BN_bn2binpad(bn, bytes, (int)n);
    BN_free(bn);
    buf_printf(out, ",\"%s\":\"", name);
    put_url64(out, bytes, n);
    buf_putc(out, '"');
}

// Adds a set with this key. Returns the result of adding.
static int add_jwk(EVP_PKEY *key, const char *curve, size_t half, const char *alg)
{
    struct buf set = {0};
    struct fault f;

    buf_printf(&set, "{\"keys\":[{\"kty\":\"%s\"", curve ? "EC" : "RSA");
    if (alg)
        buf_printf(&set, ",\"alg\":\"%s\"", alg);
    if (curve) {
        buf_printf(&set, ",\"crv\":\"%s\"", curve);
        put_number(&set, "x", key, OSSL_PKEY_PARAM_EC_PUB_X, half);
        put_number(&set, "y", key, OSSL_PKEY_PARAM_EC_PUB_Y, half);
    } else {
        put_number(&set, "n", key, OSSL_PKEY_PARAM_RSA_N, 0);
        put_number(&set, "e", key, OSSL_PKEY_PARAM_RSA_E, 0);
    }
    buf_put_lit(&set, "}]}");
    int rc = keyset_add_jwks(keys, buf_span(&set), &f);
    buf_free(&set);
    return rc;
}

static void each_algorithm_verifies_with_a_pem_and_with_a_published_key(void **state)
{
    (void)state;
    for (unsigned i = 0; i < countof(kinds); i++)
        for (int published = 0; published < 2; published++) {
            keyset_unref(keys);
            keys = keyset_new();
            if (published)
                assert_int_equal(add_jwk(pkeys[i], kinds[i].curve, kinds[i].half,
                                         jwt_alg_name(kinds[i].alg)),
                                 0);
            else
                add_pem(pkeys[i]);
            assert_true(keyset_has(keys, kinds[i].alg));
            assert_false(keyset_has(keys, JWT_HS256));
            struct jwt t = sign(pkeys[i], &kinds[i], RSA_PSS_SALTLEN_DIGEST);
            assert_int_equal(keyset_verify(keys, &t), 0);
            signature[5] ^= 1;
            assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
            signature[5] ^= 1;
            t.signature.len--;
            assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
            t.signature.len++;
            t.signed_part.len--;
            assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
        }
}

static void a_token_cannot_choose_another_algorithm_for_a_key(void **state)
{
    (void)state;
    for (unsigned i = 0; i < countof(kinds); i++) {
        keyset_unref(keys);
        keys = keyset_new();
        assert_int_equal(
            add_jwk(pkeys[i], kinds[i].curve, kinds[i].half, jwt_alg_name(kinds[i].alg)), 0);
        for (unsigned alg = 0; alg < JWT_ALGS; alg++) {
            struct jwt t = sign(pkeys[i], &kinds[i], RSA_PSS_SALTLEN_DIGEST);
            t.alg = (enum jwt_alg)alg;
            assert_int_equal(keyset_verify(keys, &t), t.alg == kinds[i].alg ? 0 : QE_NOT_FOUND);
        }
    }
}

static void an_rsa_key_without_alg_is_for_all_its_algorithms_and_no_other(void **state)
{
    (void)state;
    assert_int_equal(add_jwk(pkeys[3], NULL, 0, NULL), 0);
    for (unsigned i = 3; i < countof(kinds); i++) {
        struct jwt t = sign(pkeys[3], &kinds[i], RSA_PSS_SALTLEN_DIGEST);
        assert_int_equal(keyset_verify(keys, &t), 0);
        t.alg = t.alg == JWT_RS256 ? JWT_PS256 : JWT_RS256; // the other padding
        assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
        t.alg = JWT_ES256;
        assert_int_equal(keyset_verify(keys, &t), QE_NOT_FOUND);
    }
}

static void a_published_key_with_an_unsuitable_alg_is_skipped(void **state)
{
    (void)state;
    static const char *const for_rsa[] = {"ES256", "RS512", "RSA-OAEP", "HS256", "none", ""};
    static const char *const for_p256[] = {"ES384", "RS256", "EdDSA", "HS256", "ECDH-ES"};

    for (unsigned i = 0; i < countof(for_rsa); i++)
        assert_int_not_equal(add_jwk(pkeys[3], NULL, 0, for_rsa[i]), 0);
    for (unsigned i = 0; i < countof(for_p256); i++)
        assert_int_not_equal(add_jwk(pkeys[0], "P-256", 32, for_p256[i]), 0);
    assert_int_not_equal(add_jwk(pkeys[0], "P-384", 48, NULL), 0); // of another curve
    assert_int_not_equal(add_jwk(pkeys[0], "P-256", 33, NULL), 0); // too long
    assert_int_not_equal(add_jwk(pkeys[0], "secp256k1", 32, NULL), 0);
}

static void a_point_that_is_not_on_the_curve_is_skipped(void **state)
{
    (void)state;
    struct fault f;
    // (1, 1), and the point at infinity written as zeros
    static const char *const sets[] = {
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
    };

    for (unsigned i = 0; i < countof(sets); i++)
        assert_int_not_equal(keyset_add_jwks(keys, span_of(sets[i]), &f), 0);
}

static void signatures_of_zeros_and_of_wrong_length_are_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        add_pem(pkeys[i]);
        memset(signature, 0, sizeof signature);
        struct jwt t = {.signed_part = SPAN(TEXT), .alg = kinds[i].alg, .kid = SPAN_NONE};
        for (size_t n = 0; n <= 140; n++) {
            t.signature = (span){(char *)signature, n};
            assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
        }
        memset(signature, 0xff, sizeof signature); // above the order of the curve
        t.signature.len = 2 * kinds[i].half;
        assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    }
}

// RFC 7518: as long as the digest.
static void a_salt_of_another_length_is_refused(void **state)
{
    (void)state;
    add_pem(pkeys[3]);
    struct jwt t = sign(pkeys[3], &kinds[3], 20);
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
}

static void an_rsa_pss_key_does_not_verify_rs256(void **state)
{
    (void)state;
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "RSA-PSS", NULL);
    EVP_PKEY *key = NULL;

    assert_int_equal(EVP_PKEY_keygen_init(c), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_keygen_bits(c, 2048), 1);
    assert_int_equal(EVP_PKEY_generate(c, &key), 1);
    add_pem(key);
    assert_true(keyset_has(keys, JWT_PS256));
    assert_false(keyset_has(keys, JWT_RS256));
    struct jwt t = sign(key, &kinds[3], RSA_PSS_SALTLEN_DIGEST);
    assert_int_equal(keyset_verify(keys, &t), 0);
    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(c);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_algorithm_verifies_with_a_pem_and_with_a_published_key),
        T(a_token_cannot_choose_another_algorithm_for_a_key),
        T(an_rsa_key_without_alg_is_for_all_its_algorithms_and_no_other),
        T(a_published_key_with_an_unsuitable_alg_is_skipped),
        T(a_point_that_is_not_on_the_curve_is_skipped),
        T(signatures_of_zeros_and_of_wrong_length_are_refused),
        T(a_salt_of_another_length_is_refused),
        T(an_rsa_pss_key_does_not_verify_rs256),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
