// keyset.c: parses keys and verifies signatures.
#include "auth/keyset.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/decoder.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/mem.h"
#include "json/scan.h"

enum { MAX_KEYS = 64, MIN_RSA_BITS = 2048, ED25519_BYTES = 32, MAX_FIELD_BYTES = 66 };

#define ALG(a)   (1u << (a))
#define ALGS_PSS (ALG(JWT_PS256) | ALG(JWT_PS384) | ALG(JWT_PS512))

// An algorithm on an elliptic curve.
static const struct curve {
    enum jwt_alg alg;
    const char *jwk, *group; // names in a JWK and in OpenSSL
    size_t field_bytes;
} curves[] = {
    {JWT_ES256, "P-256", "prime256v1", 32},
    {JWT_ES384, "P-384", "secp384r1", 48},
    {JWT_ES512, "P-521", "secp521r1", 66},
};

struct key {
    unsigned algs; // ALG() of each algorithm that it verifies
    char *kid;     // "": matches any token
    EVP_PKEY *pkey;
    char *secret; // for HS256
    size_t n_secret;
};

struct keyset {
    atomic_uint refs;
    unsigned n;
    struct key key[MAX_KEYS];
};

struct keyset *keyset_new(void)
{
    struct keyset *k = mem_new(struct keyset);

    atomic_init(&k->refs, 1);
    return k;
}

struct keyset *keyset_ref(struct keyset *k)
{
    atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    return k;
}

void keyset_unref(struct keyset *k)
{
    if (!k || atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (unsigned i = 0; i < k->n; i++) {
        free(k->key[i].kid);
        EVP_PKEY_free(k->key[i].pkey);
        if (k->key[i].secret)
            OPENSSL_cleanse(k->key[i].secret, k->key[i].n_secret);
        free(k->key[i].secret);
    }
    free(k);
}

// ---- adding ----

void keyset_add_secret(struct keyset *k, span secret)
{
    if (k->n == MAX_KEYS)
        BUG("too many secrets");
    k->key[k->n++] = (struct key){.algs = ALG(JWT_HS256),
                                  .kid = mem_strndup("", 0),
                                  .secret = mem_strndup(secret.ptr, secret.len),
                                  .n_secret = secret.len};
}

// The algorithms that a key can be used for; 0: none.
static unsigned algs_of(EVP_PKEY *pkey)
{
    char group[32] = "";

    if (EVP_PKEY_is_a(pkey, "ED25519"))
        return ALG(JWT_EDDSA);
    if (EVP_PKEY_is_a(pkey, "RSA"))
        return ALG(JWT_RS256) | ALGS_PSS;
    if (EVP_PKEY_is_a(pkey, "RSA-PSS"))
        return ALGS_PSS;
    if (EVP_PKEY_is_a(pkey, "EC") &&
        EVP_PKEY_get_utf8_string_param(pkey, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group,
                                       NULL) == 1)
        for (unsigned i = 0; i < countof(curves); i++)
            if (strcmp(group, curves[i].group) == 0)
                return ALG(curves[i].alg);
    return 0;
}

// Takes pkey. Returns NULL, or the reason why the key cannot be used. only: a set of
// algorithms.
static const char *add_pkey(struct keyset *k, EVP_PKEY *pkey, span kid, unsigned only)
{
    const char *why = NULL;
    unsigned algs = algs_of(pkey);

    if (algs == 0)
        why = "it is neither an RSA nor an Ed25519 key nor one on P-256, P-384 or P-521";
    else if (algs & ALGS_PSS && EVP_PKEY_get_bits(pkey) < MIN_RSA_BITS)
        why = "an RSA key needs at least 2048 bits";
    else if ((algs & only) == 0)
        why = "it is not a key for its algorithm";
    if (!why && k->n == MAX_KEYS)
        why = "there are too many keys";
    if (why)
        EVP_PKEY_free(pkey);
    else
        k->key[k->n++] = (struct key){.algs = algs & only,
                                      .kid = mem_strndup(kid.ptr ? kid.ptr : "", kid.len),
                                      .pkey = pkey};
    return why;
}

int keyset_add_pem(struct keyset *k, span pem, struct fault *f)
{
    EVP_PKEY *pkey = NULL;
    char *text = mem_strndup(pem.ptr, pem.len);
    size_t n = 0;

    for (size_t i = 0; i < pem.len; i++) {
        bool breaks = pem.ptr[i] == '\\' && i + 1 < pem.len && pem.ptr[i + 1] == 'n';
        text[n++] = breaks ? '\n' : pem.ptr[i];
        i += breaks;
    }
    const unsigned char *at = (const unsigned char *)text;
    OSSL_DECODER_CTX *d = OSSL_DECODER_CTX_new_for_pkey(&pkey, "PEM", NULL, NULL,
                                                        EVP_PKEY_PUBLIC_KEY, NULL, NULL);
    bool ok = d && OSSL_DECODER_from_data(d, &at, &n) == 1 && pkey;
    OSSL_DECODER_CTX_free(d);
    free(text);
    ERR_clear_error();
    if (!ok) {
        EVP_PKEY_free(pkey);
        return fault_set(f, QE_CONF, "it is not a public key in PEM form");
    }
    const char *why = add_pkey(k, pkey, SPAN_NONE, UINT_MAX);
    return why ? fault_set(f, QE_CONF, "%s", why) : 0;
}

static EVP_PKEY *make_rsa(struct arena *a, span n_text, span e_text)
{
    uint8_t *n = arena_alloc(a, n_text.len + 3), *e = arena_alloc(a, e_text.len + 3);
    size_t n_len, e_len;
    EVP_PKEY *pkey = NULL;

    if (!base64_decode_url(n_text, n, &n_len) || !base64_decode_url(e_text, e, &e_len) ||
        n_len > 2048 || e_len > 8)
        return NULL;
    BIGNUM *bn_n = BN_bin2bn(n, (int)n_len, NULL), *bn_e = BN_bin2bn(e, (int)e_len, NULL);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    if (b && c && OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, bn_n) == 1 &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_E, bn_e) == 1 &&
        (params = OSSL_PARAM_BLD_to_param(b)) && EVP_PKEY_fromdata_init(c) == 1 &&
        EVP_PKEY_fromdata(c, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
        pkey = NULL;
    EVP_PKEY_CTX_free(c);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(b);
    BN_free(bn_n);
    BN_free(bn_e);
    return pkey;
}

static EVP_PKEY *make_ed25519(struct arena *a, span x_text)
{
    uint8_t *x = arena_alloc(a, x_text.len + 3);
    size_t n;

    if (!base64_decode_url(x_text, x, &n) || n != ED25519_BYTES)
        return NULL;
    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x, n);
}

// Coordinates of exactly the length of the curve. OpenSSL refuses a point that is not on it.
static EVP_PKEY *make_ec(struct arena *a, span crv, span x_text, span y_text)
{
    const struct curve *c = NULL;
    uint8_t point[1 + 2 * MAX_FIELD_BYTES];
    EVP_PKEY *pkey = NULL;
    size_t n_x, n_y;

    for (unsigned i = 0; i < countof(curves); i++)
        if (span_eq(crv, span_of(curves[i].jwk)))
            c = &curves[i];
    uint8_t *x = arena_alloc(a, x_text.len + 3), *y = arena_alloc(a, y_text.len + 3);
    if (!c || !base64_decode_url(x_text, x, &n_x) || !base64_decode_url(y_text, y, &n_y) ||
        n_x != c->field_bytes || n_y != c->field_bytes)
        return NULL;
    point[0] = POINT_CONVERSION_UNCOMPRESSED;
    memcpy(point + 1, x, n_x);
    memcpy(point + 1 + n_x, y, n_y);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (b && ctx &&
        OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, c->group, 0) == 1 &&
        OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + n_x + n_y) ==
            1 &&
        (params = OSSL_PARAM_BLD_to_param(b)) && EVP_PKEY_fromdata_init(ctx) == 1 &&
        EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
        pkey = NULL;
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(b);
    return pkey;
}

// The algorithms that "alg" of a published key permits; 0: one that we do not support.
static unsigned algs_permitted(span alg)
{
    enum jwt_alg one;

    if (!alg.ptr)
        return UINT_MAX;
    if (span_eq(alg, SPAN("Ed25519"))) // the later name of EdDSA on this curve
        return ALG(JWT_EDDSA);
    return jwt_alg_find(alg, &one) ? ALG(one) : 0;
}

// Adds one key of a published set; keys for other purposes are skipped.
static void take_jwk(struct keyset *k, struct js *j, struct arena *a)
{
    enum { KTY, KID, USE, ALG_, N, E, CRV, X, Y, FIELDS };
    static const span names[FIELDS] = {{"kty", 3}, {"kid", 3}, {"use", 3}, {"alg", 3}, {"n", 1},
                                       {"e", 1},   {"crv", 3}, {"x", 1},   {"y", 1}};
    span value[FIELDS] = {{0}}, key;
    EVP_PKEY *pkey = NULL;

    if (js_peek(j) != JS_OBJECT) {
        js_skip(j);
        return;
    }
    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span raw = js_skip(j);
        for (unsigned i = 0; i < FIELDS; i++)
            if (js_key_is(key, names[i]) && js_type_of(raw) == JS_STRING)
                value[i] = js_text(raw, a);
    }
    if (j->rc != 0 || (value[USE].ptr && !span_eq(value[USE], SPAN("sig"))))
        return;
    if (span_eq(value[KTY], SPAN("RSA")))
        pkey = make_rsa(a, value[N], value[E]);
    else if (span_eq(value[KTY], SPAN("OKP")) && span_eq(value[CRV], SPAN("Ed25519")))
        pkey = make_ed25519(a, value[X]);
    else if (span_eq(value[KTY], SPAN("EC")))
        pkey = make_ec(a, value[CRV], value[X], value[Y]);
    if (pkey)
        (void)add_pkey(k, pkey, value[KID], algs_permitted(value[ALG_]));
    ERR_clear_error();
}

int keyset_add_jwks(struct keyset *k, span json, struct fault *f)
{
    struct js j = js_read(json);
    struct arena a;
    unsigned before = k->n;
    span key;

    arena_init(&a);
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (!js_key_is(key, SPAN("keys")) || js_peek(&j) != JS_ARRAY) {
            js_skip(&j);
            continue;
        }
        js_enter_array(&j);
        while (js_next_item(&j))
            take_jwk(k, &j, &a);
    }
    arena_deinit(&a);
    if (js_finish(&j) != 0)
        return fault_set(f, QE_BAD_JSON, "the answer is not a JSON object");
    if (k->n == before)
        return fault_set(f, QE_NOT_FOUND, "the set holds no key that can be used");
    return 0;
}

bool keyset_has(const struct keyset *k, enum jwt_alg alg)
{
    for (unsigned i = 0; i < k->n; i++)
        if (k->key[i].algs & ALG(alg))
            return true;
    return false;
}

// ---- verifying ----

static bool verify_hmac(const struct key *key, const struct jwt *t)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (!HMAC(EVP_sha256(), key->secret, (int)key->n_secret,
              (const unsigned char *)t->signed_part.ptr, t->signed_part.len, mac, &n))
        return false;
    return t->signature.len == n && CRYPTO_memcmp(mac, t->signature.ptr, n) == 0;
}

static const EVP_MD *digest_of(enum jwt_alg alg)
{
    switch (alg) {
    case JWT_ES384:
    case JWT_PS384:
        return EVP_sha384();
    case JWT_ES512:
    case JWT_PS512:
        return EVP_sha512();
    case JWT_EDDSA:
        return NULL; // part of the algorithm
    default:
        return EVP_sha256();
    }
}

// The signature of a token is r and s, each with the length of the curve's field. OpenSSL wants
// their ASN.1 form. Given (OPENSSL_free); NULL: wrong length.
static unsigned char *asn1_signature(const struct jwt *t, int *len)
{
    unsigned char *der = NULL;
    size_t half = 0;

    for (unsigned i = 0; i < countof(curves); i++)
        if (curves[i].alg == t->alg)
            half = curves[i].field_bytes;
    if (half == 0 || t->signature.len != 2 * half)
        return NULL;
    const unsigned char *bytes = (const unsigned char *)t->signature.ptr;
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, (int)half, NULL),
           *s = BN_bin2bn(bytes + half, (int)half, NULL);
    if (sig && r && s && ECDSA_SIG_set0(sig, r, s) == 1) { // takes both
        *len = i2d_ECDSA_SIG(sig, &der);
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(sig);
    return *len > 0 ? der : NULL;
}

// The salt must be as long as the digest (RFC 7518, 3.5).
static bool use_pss(EVP_PKEY_CTX *c)
{
    return EVP_PKEY_CTX_set_rsa_padding(c, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(c, RSA_PSS_SALTLEN_DIGEST) == 1;
}

static bool verify_pkey(const struct key *key, const struct jwt *t)
{
    const unsigned char *signature = (const unsigned char *)t->signature.ptr;
    size_t len = t->signature.len;
    bool is_ec = t->alg == JWT_ES256 || t->alg == JWT_ES384 || t->alg == JWT_ES512;
    unsigned char *der = NULL;
    EVP_PKEY_CTX *pkey = NULL; // owned by c
    int der_len = 0;

    if (is_ec) {
        der = asn1_signature(t, &der_len);
        signature = der;
        len = (size_t)der_len;
        if (!der)
            return false;
    }
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c && EVP_DigestVerifyInit(c, &pkey, digest_of(t->alg), NULL, key->pkey) == 1 &&
              (!(ALG(t->alg) & ALGS_PSS) || use_pss(pkey)) &&
              EVP_DigestVerify(c, signature, len, (const unsigned char *)t->signed_part.ptr,
                               t->signed_part.len) == 1;
    EVP_MD_CTX_free(c);
    OPENSSL_free(der);
    ERR_clear_error();
    return ok;
}

// A token without kid may have been signed with any key of its algorithm, e.g. during key
// rotation.
int keyset_verify(const struct keyset *k, const struct jwt *t)
{
    int rc = QE_NOT_FOUND;

    for (unsigned i = 0; i < k->n; i++) {
        const struct key *key = &k->key[i];
        // Only the key's own algorithms: otherwise a public key could serve as an HS256 secret.
        if (!(key->algs & ALG(t->alg)))
            continue;
        if (t->kid.ptr && key->kid[0] != '\0' && !span_eq(t->kid, span_of(key->kid)))
            continue;
        if (t->alg == JWT_HS256 ? verify_hmac(key, t) : verify_pkey(key, t))
            return 0;
        rc = QE_UNAUTHORIZED;
    }
    return rc;
}
