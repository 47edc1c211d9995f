// keyset.c: which key verifies what.  Keys and signatures are made here, by OpenSSL.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include "auth/keyset.h"
#include "base/base64.h"
#include "base/buf.h"

#define TEXT "aGVhZA.Y2xhaW1z"

static EVP_PKEY *rsa, *rsa2, *ed;
static struct keyset *keys;
static uint8_t signature[512];

static int make(void **state)
{
    (void)state;
    rsa = EVP_RSA_gen(2048);
    rsa2 = EVP_RSA_gen(2048);
    ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    return rsa && rsa2 && ed ? 0 : -1;
}

static int unmake(void **state)
{
    (void)state;
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(rsa2);
    EVP_PKEY_free(ed);
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

static struct jwt signed_by(EVP_PKEY *key, enum jwt_alg alg, span kid)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    size_t n = sizeof signature;
    assert_int_equal(
        EVP_DigestSignInit(c, NULL, alg == JWT_RS256 ? EVP_sha256() : NULL, NULL, key), 1);
    assert_int_equal(
        EVP_DigestSign(c, signature, &n, (const unsigned char *)TEXT, sizeof TEXT - 1), 1);
    EVP_MD_CTX_free(c);
    return (struct jwt){
        .signed_part = SPAN(TEXT), .signature = {(char *)signature, n}, .alg = alg, .kid = kid};
}

static struct jwt signed_with(const char *secret, size_t len)
{
    unsigned n;
    HMAC(EVP_sha256(), secret, (int)len, (const unsigned char *)TEXT, sizeof TEXT - 1,
         signature, &n);
    return (struct jwt){.signed_part = SPAN(TEXT),
                        .signature = {(char *)signature, n},
                        .alg = JWT_HS256,
                        .kid = SPAN_NONE};
}

static char *pem_of(EVP_PKEY *key)
{
    BIO *b = BIO_new(BIO_s_mem());
    char *data, *copy;
    PEM_write_bio_PUBKEY(b, key);
    long n = BIO_get_mem_data(b, &data);
    copy = strndup(data, (size_t)n);
    BIO_free(b);
    return copy;
}

static void put_url64(struct buf *out, const uint8_t *bytes, size_t n)
{
    char text[1024] = "";
    base64_encode(bytes, n, text);
    for (char *c = text; *c && *c != '='; c++)
        buf_putc(out, *c == '+' ? '-' : *c == '/' ? '_' : *c);
}

// The member of a set for a key; more: further members.
static void put_jwk(struct buf *out, EVP_PKEY *key, const char *kid, const char *more)
{
    uint8_t bytes[512];
    size_t n = sizeof bytes;
    BIGNUM *bn = NULL;
    if (EVP_PKEY_is_a(key, "ED25519")) {
        EVP_PKEY_get_raw_public_key(key, bytes, &n);
        buf_put_lit(out, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
        put_url64(out, bytes, n);
    } else {
        EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &bn);
        n = (size_t)BN_bn2bin(bn, bytes);
        BN_free(bn);
        buf_put_lit(out, "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"");
        put_url64(out, bytes, n);
    }
    buf_printf(out, "\"%s%s%s%s}", kid ? ",\"kid\":\"" : "", kid ? kid : "", kid ? "\"" : "",
               more);
}

static void a_secret_verifies_its_own_signature(void **state)
{
    (void)state;
    keyset_add_secret(keys, SPAN("s3cret"));
    struct jwt t = signed_with("s3cret", 6);
    assert_int_equal(keyset_verify(keys, &t), 0);
    t.kid = SPAN("any");
    assert_int_equal(keyset_verify(keys, &t), 0);
    t.signature.len--;
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    t.signature.len = 0;
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    t = signed_with("other", 5);
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    t = signed_with("s3cret", 6);
    t.signed_part.len--;
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
}

static void a_pem_key_verifies_also_with_its_breaks_written_out(void **state)
{
    (void)state;
    struct fault f;
    char *pem = pem_of(rsa), *flat = calloc(2, strlen(pem) + 1), *to = flat;
    for (const char *c = pem; *c; c++) {
        if (*c == '\n')
            *to++ = '\\', *to++ = 'n';
        else
            *to++ = *c;
    }
    assert_int_equal(keyset_add_pem(keys, span_of(flat), &f), 0);
    struct jwt t = signed_by(rsa, JWT_RS256, SPAN("any"));
    assert_int_equal(keyset_verify(keys, &t), 0);
    signature[7] ^= 1;
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    t = signed_by(rsa2, JWT_RS256, SPAN_NONE);
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    // The public key is no secret: HS256 with it has no key at all.
    t = signed_with(pem, strlen(pem));
    assert_int_equal(keyset_verify(keys, &t), QE_NOT_FOUND);
    free(pem);
    free(flat);
}

static void an_ed25519_key_verifies(void **state)
{
    (void)state;
    struct fault f;
    char *pem = pem_of(ed);
    assert_int_equal(keyset_add_pem(keys, span_of(pem), &f), 0);
    free(pem);
    assert_true(keyset_has(keys, JWT_EDDSA));
    assert_false(keyset_has(keys, JWT_RS256));
    struct jwt t = signed_by(ed, JWT_EDDSA, SPAN_NONE);
    assert_int_equal(keyset_verify(keys, &t), 0);
    signature[0] ^= 1;
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    t.alg = JWT_RS256;
    assert_int_equal(keyset_verify(keys, &t), QE_NOT_FOUND);
}

static void an_invalid_public_key_is_refused(void **state)
{
    (void)state;
    struct fault f;
    EVP_PKEY *small = EVP_RSA_gen(1024), *ec = EVP_EC_gen("secp256k1");
    char *pem = pem_of(small);
    assert_int_equal(keyset_add_pem(keys, span_of(pem), &f), QE_CONF);
    assert_non_null(strstr(f.text, "2048"));
    free(pem);
    pem = pem_of(ec);
    assert_int_equal(keyset_add_pem(keys, span_of(pem), &f), QE_CONF);
    free(pem);
    assert_int_equal(keyset_add_pem(keys, SPAN("hello"), &f), QE_CONF);
    assert_int_equal(
        keyset_add_pem(
            keys, SPAN("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"), &f),
        QE_CONF);
    EVP_PKEY_free(small);
    EVP_PKEY_free(ec);
}

static void a_published_key_is_found_by_its_id(void **state)
{
    (void)state;
    struct fault f;
    struct buf set = {0};
    buf_put_lit(&set, "{\"keys\":[7,{\"kty\":\"EC\"},");
    put_jwk(&set, rsa2, "enc", ",\"use\":\"enc\"");
    buf_putc(&set, ',');
    put_jwk(&set, rsa2, "other", ",\"alg\":\"RS512\"");
    buf_putc(&set, ',');
    put_jwk(&set, rsa, "r1", ",\"use\":\"sig\",\"alg\":\"RS256\"");
    buf_putc(&set, ',');
    put_jwk(&set, rsa2, "r2", "");
    buf_putc(&set, ',');
    put_jwk(&set, ed, "e1", "");
    buf_put_lit(&set, "],\"more\":{}}");
    assert_int_equal(keyset_add_jwks(keys, buf_span(&set), &f), 0);
    buf_free(&set);
    struct jwt t = signed_by(rsa, JWT_RS256, SPAN("r1"));
    assert_int_equal(keyset_verify(keys, &t), 0);
    t.kid = SPAN_NONE; // the first that suits
    assert_int_equal(keyset_verify(keys, &t), 0);
    t.kid = SPAN("r2");
    assert_int_equal(keyset_verify(keys, &t), QE_UNAUTHORIZED);
    t.kid = SPAN("r3");
    assert_int_equal(keyset_verify(keys, &t), QE_NOT_FOUND);
    t = signed_by(rsa2, JWT_RS256, SPAN("r2"));
    assert_int_equal(keyset_verify(keys, &t), 0);
    t.kid = SPAN_NONE; // any key of the algorithm will do, not only the first
    assert_int_equal(keyset_verify(keys, &t), 0);
    t.kid = SPAN("enc");
    assert_int_equal(keyset_verify(keys, &t), QE_NOT_FOUND);
    t.kid = SPAN("other");
    assert_int_equal(keyset_verify(keys, &t), QE_NOT_FOUND);
    t = signed_by(ed, JWT_EDDSA, SPAN("e1"));
    assert_int_equal(keyset_verify(keys, &t), 0);
}

static void a_set_without_keys_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"keys\":[]}",
        "{\"keys\":{}}",
        "{\"keys\":[{}]}",
        "<html>",
        "{\"keys\":[{\"kty\":\"RSA\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AQAB\"}]}",
        "{\"keys\":["};
    struct fault f;
    for (unsigned i = 0; i < countof(wrong); i++)
        if (keyset_add_jwks(keys, span_of(wrong[i]), &f) == 0)
            fail_msg("accepted: %s", wrong[i]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_secret_verifies_its_own_signature),
        T(a_pem_key_verifies_also_with_its_breaks_written_out),
        T(an_ed25519_key_verifies),
        T(an_invalid_public_key_is_refused),
        T(a_published_key_is_found_by_its_id),
        T(a_set_without_keys_is_refused),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
