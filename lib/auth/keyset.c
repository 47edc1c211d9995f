// keyset.c: parses keys and verifies signatures.
#include "auth/keyset.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/mem.h"
#include "json/scan.h"

enum { MAX_KEYS = 64, MIN_RSA_BITS = 2048, ED25519_BYTES = 32 };

struct key {
    enum jwt_alg alg;
    char *kid; // "": matches any token
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
    k->key[k->n++] = (struct key){.alg = JWT_HS256,
                                  .kid = mem_strndup("", 0),
                                  .secret = mem_strndup(secret.ptr, secret.len),
                                  .n_secret = secret.len};
}

// Takes pkey. Returns NULL, or the reason why the key cannot be used.
static const char *add_pkey(struct keyset *k, EVP_PKEY *pkey, span kid)
{
    const char *why = NULL;
    enum jwt_alg alg = JWT_RS256;

    if (EVP_PKEY_is_a(pkey, "ED25519"))
        alg = JWT_EDDSA;
    else if (!EVP_PKEY_is_a(pkey, "RSA"))
        why = "it is neither an RSA nor an Ed25519 key";
    else if (EVP_PKEY_get_bits(pkey) < MIN_RSA_BITS)
        why = "an RSA key needs at least 2048 bits";
    if (!why && k->n == MAX_KEYS)
        why = "there are too many keys";
    if (why)
        EVP_PKEY_free(pkey);
    else
        k->key[k->n++] = (struct key){
            .alg = alg, .kid = mem_strndup(kid.ptr ? kid.ptr : "", kid.len), .pkey = pkey};
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
    const char *why = add_pkey(k, pkey, SPAN_NONE);
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

// Adds one key of a published set; keys for other purposes are skipped.
static void take_jwk(struct keyset *k, struct js *j, struct arena *a)
{
    enum { KTY, KID, USE, ALG, N, E, CRV, X, FIELDS };
    static const span names[FIELDS] = {{"kty", 3}, {"kid", 3}, {"use", 3}, {"alg", 3},
                                       {"n", 1},   {"e", 1},   {"crv", 3}, {"x", 1}};
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
    if (span_eq(value[KTY], SPAN("RSA")) &&
        (!value[ALG].ptr || span_eq(value[ALG], SPAN("RS256"))))
        pkey = make_rsa(a, value[N], value[E]);
    else if (span_eq(value[KTY], SPAN("OKP")) && span_eq(value[CRV], SPAN("Ed25519")))
        pkey = make_ed25519(a, value[X]);
    if (pkey)
        (void)add_pkey(k, pkey, value[KID]);
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
        return fault_set(f, QE_NOT_FOUND, "the set holds no key for RS256 or EdDSA");
    return 0;
}

bool keyset_has(const struct keyset *k, enum jwt_alg alg)
{
    for (unsigned i = 0; i < k->n; i++)
        if (k->key[i].alg == alg)
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

static bool verify_pkey(const struct key *key, const struct jwt *t)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    const EVP_MD *md = key->alg == JWT_RS256 ? EVP_sha256() : NULL;

    bool ok =
        c && EVP_DigestVerifyInit(c, NULL, md, NULL, key->pkey) == 1 &&
        EVP_DigestVerify(c, (const unsigned char *)t->signature.ptr, t->signature.len,
                         (const unsigned char *)t->signed_part.ptr, t->signed_part.len) == 1;
    EVP_MD_CTX_free(c);
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
        // Use the key's algorithm, never the token's: otherwise a public key could serve as an
        // HS256 secret.
        if (key->alg != t->alg)
            continue;
        if (t->kid.ptr && key->kid[0] != '\0' && !span_eq(t->kid, span_of(key->kid)))
            continue;
        if (key->alg == JWT_HS256 ? verify_hmac(key, t) : verify_pkey(key, t))
            return 0;
        rc = QE_UNAUTHORIZED;
    }
    return rc;
}
