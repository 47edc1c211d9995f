// sealer.c: AES-256-GCM, base64 and the JSON envelope.
#include "crypt/sealer.h"

#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/base64.h"
#include "base/id.h"
#include "base/mem.h"

enum { IV_BYTES = 16, TAG_BYTES = 16, SHORT_CHARS = BASE64_SIZE(16) };

#define HEAD   "{\"encrypted\":\""
#define IV     "\",\"iv\":\""
#define TAG    "\",\"authTag\":\""
#define KEY_ID "\",\"keyId\":\""
#define NAME   "\",\"for\":\""
#define END    "\"}"

struct sealer {
    const struct keyring *keys;
    size_t id_len; // of the newest key
    EVP_CIPHER_CTX *seal;
    EVP_CIPHER_CTX *open[KEYRING_MAX_KEYS]; // same order as keys
};

// The parts of a sealed payload.
struct pieces {
    span text, iv, tag, id, name; // id and name are SPAN_NONE if absent
};

static EVP_CIPHER_CTX *cipher(const struct keyring_key *key, bool encrypts)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

    if (!c || EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, NULL, NULL, encrypts) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, IV_BYTES, NULL) != 1 ||
        EVP_CipherInit_ex(c, NULL, NULL, key->bytes, NULL, encrypts) != 1)
        BUG("this OpenSSL has no AES-256-GCM");
    return c;
}

struct sealer *sealer_new(const struct keyring *k)
{
    struct sealer *s = mem_new(struct sealer);

    s->keys = k;
    s->id_len = strlen(k->key[0].id);
    s->seal = cipher(&k->key[0], true);
    for (unsigned i = 0; i < k->n; i++)
        s->open[i] = cipher(&k->key[i], false);
    return s;
}

void sealer_free(struct sealer *s)
{
    if (!s)
        return;
    EVP_CIPHER_CTX_free(s->seal);
    for (unsigned i = 0; i < s->keys->n; i++)
        EVP_CIPHER_CTX_free(s->open[i]);
    free(s);
}

// ---- sealing ----

size_t sealer_size(const struct sealer *s, size_t n_plain, bool bound)
{
    return sizeof(HEAD IV TAG KEY_ID END) - 1 + BASE64_SIZE(n_plain) + (size_t)2 * SHORT_CHARS +
           s->id_len + (bound ? sizeof(NAME) - 1 + SHORT_CHARS : 0);
}

static char *sealer_put(char *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}
#define PUT(at, literal) sealer_put(at, literal, sizeof(literal) - 1)

void sealer_seal(struct sealer *s, struct buf *out, span plain, const uint8_t *name)
{
    uint8_t iv[IV_BYTES], tag[TAG_BYTES];
    size_t size = sealer_size(s, plain.len, name != NULL), room = BASE64_SIZE(plain.len);
    int n = 0, rest = 0;

    if (!buf_reserve(out, size))
        return;
    char *at = PUT(out->ptr + out->len, HEAD);
    // Encrypt into the end of the room for the text, then encode to base64 in place.
    uint8_t *raw = (uint8_t *)at + room - plain.len;
    id_random(iv, sizeof iv);
    if (EVP_EncryptInit_ex(s->seal, NULL, NULL, NULL, iv) != 1 ||
        (name && EVP_EncryptUpdate(s->seal, NULL, &n, name, SEALER_NAME_BYTES) != 1) ||
        EVP_EncryptUpdate(s->seal, raw, &n, (const uint8_t *)plain.ptr, (int)plain.len) != 1 ||
        EVP_EncryptFinal_ex(s->seal, raw + n, &rest) != 1 ||
        EVP_CIPHER_CTX_ctrl(s->seal, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, tag) != 1)
        BUG("AES-256-GCM does not encrypt");
    base64_encode(raw, plain.len, at);
    at = PUT(at + room, IV);
    base64_encode(iv, sizeof iv, at);
    at = PUT(at + SHORT_CHARS, TAG);
    base64_encode(tag, sizeof tag, at);
    at = PUT(at + SHORT_CHARS, KEY_ID);
    at = sealer_put(at, s->keys->key[0].id, s->id_len);
    if (name) {
        at = PUT(at, NAME);
        base64_encode(name, SEALER_NAME_BYTES, at);
        at += SHORT_CHARS;
    }
    (void)PUT(at, END);
    out->len += size;
}

// ---- opening ----

// Takes one member in the order we write them. None of the values can contain an escape.
static bool sealer_take(span *rest, span before, span *value)
{
    if (rest->len < before.len || memcmp(rest->ptr, before.ptr, before.len) != 0)
        return false;
    const char *from = rest->ptr + before.len, *end = rest->ptr + rest->len;
    const char *quote = memchr(from, '"', (size_t)(end - from));
    if (!quote)
        return false;
    *value = (span){from, (size_t)(quote - from)};
    *rest = (span){quote, (size_t)(end - quote)};
    return true;
}

// The layout that sealer_seal() writes, with or without keyId and name. A payload that went
// through jsonb has another order and spaces: see take_any().
static bool take_ours(span sealed, struct pieces *p)
{
    span rest = sealed;

    if (!sealer_take(&rest, SPAN(HEAD), &p->text) || !sealer_take(&rest, SPAN(IV), &p->iv) ||
        !sealer_take(&rest, SPAN(TAG), &p->tag))
        return false;
    if (!sealer_take(&rest, SPAN(KEY_ID), &p->id))
        p->id = SPAN_NONE;
    if (!sealer_take(&rest, SPAN(NAME), &p->name))
        p->name = SPAN_NONE;
    return span_eq(rest, SPAN(END));
}

static span skip_space(span s)
{
    while (s.len > 0 && (*s.ptr == ' ' || *s.ptr == '\n' || *s.ptr == '\t' || *s.ptr == '\r'))
        s.ptr++, s.len--;
    return s;
}

// Parses an object of strings without escapes, in any order.
static bool take_any(span sealed, struct pieces *p)
{
    span rest = skip_space(sealed), key, value;

    for (char lead = '{'; rest.len > 0 && *rest.ptr == lead; lead = ',') {
        rest = skip_space((span){rest.ptr + 1, rest.len - 1});
        if (!sealer_take(&rest, SPAN("\""), &key))
            return false;
        rest = skip_space((span){rest.ptr + 1, rest.len - 1});
        if (rest.len == 0 || *rest.ptr != ':')
            return false;
        rest = skip_space((span){rest.ptr + 1, rest.len - 1});
        if (!sealer_take(&rest, SPAN("\""), &value))
            return false;
        rest = skip_space((span){rest.ptr + 1, rest.len - 1});
        if (span_eq(key, SPAN("encrypted")))
            p->text = value;
        else if (span_eq(key, SPAN("iv")))
            p->iv = value;
        else if (span_eq(key, SPAN("authTag")))
            p->tag = value;
        else if (span_eq(key, SPAN("keyId")))
            p->id = value;
        else if (span_eq(key, SPAN("for")))
            p->name = value;
        else
            return false;
    }
    if (rest.len == 0 || *rest.ptr != '}' ||
        skip_space((span){rest.ptr + 1, rest.len - 1}).len > 0)
        return false;
    return p->text.ptr && p->iv.ptr && p->tag.ptr;
}

// raw: n bytes of ciphertext, decrypted in place. A wrong key destroys them.
static bool try_key(EVP_CIPHER_CTX *c, const uint8_t *iv, uint8_t *tag, const uint8_t *name,
                    uint8_t *raw, size_t n)
{
    int done = 0, rest = 0;

    return EVP_DecryptInit_ex(c, NULL, NULL, NULL, iv) == 1 &&
           (!name || EVP_DecryptUpdate(c, NULL, &done, name, SEALER_NAME_BYTES) == 1) &&
           EVP_DecryptUpdate(c, raw, &done, raw, (int)n) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) == 1 &&
           EVP_DecryptFinal_ex(c, raw + done, &rest) == 1;
}

static bool is_candidate(const struct sealer *s, unsigned i, span id)
{
    return !id.ptr || span_eq(id, span_of(s->keys->key[i].id));
}

// One that is not bound fits any message: it was sealed so, or its tag does not fit.
static bool is_bound_to(const struct pieces *p, const uint8_t *wanted, uint8_t *name)
{
    size_t n;

    return !p->name.ptr ||
           (p->name.len == SHORT_CHARS && base64_decode(p->name, name, &n) &&
            n == SEALER_NAME_BYTES && (!wanted || memcmp(name, wanted, n) == 0));
}

bool sealer_open(struct sealer *s, struct buf *out, span sealed, const uint8_t *name)
{
    struct pieces p = {SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE};
    uint8_t iv[SHORT_CHARS / 4 * 3], tag[SHORT_CHARS / 4 * 3], bound[SHORT_CHARS / 4 * 3];
    size_t n, n_iv, n_tag;

    if (!take_ours(sealed, &p)) {
        p = (struct pieces){SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE};
        if (!take_any(sealed, &p))
            return false;
    }
    if (p.iv.len != SHORT_CHARS || p.tag.len != SHORT_CHARS ||
        !base64_decode(p.iv, iv, &n_iv) || !base64_decode(p.tag, tag, &n_tag) ||
        n_iv != IV_BYTES || n_tag != TAG_BYTES || !is_bound_to(&p, name, bound) ||
        !buf_reserve(out, p.text.len))
        return false;
    uint8_t *raw = (uint8_t *)out->ptr + out->len;
    for (unsigned i = 0; i < s->keys->n; i++) {
        if (!is_candidate(s, i, p.id))
            continue;
        if (!base64_decode(p.text, raw, &n))
            return false;
        if (try_key(s->open[i], iv, tag, p.name.ptr ? bound : NULL, raw, n)) {
            out->len += n;
            return true;
        }
        OPENSSL_cleanse(raw, n); // do not leave unauthenticated plaintext in memory
    }
    return false;
}
