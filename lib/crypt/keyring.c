// keyring.c: parses the list of keys from a setting.
#include "crypt/keyring.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/mem.h"
#include "base/str.h"

static int read_key(struct keyring *k, span part, struct fault *f);
static bool read_hex(span text, uint8_t bytes[KEYRING_KEY_BYTES]);
static int read_id(struct keyring_key *key, span id, unsigned nth, struct fault *f);
static void derive_id(struct keyring_key *key);

int keyring_parse(span text, struct keyring **out, struct fault *f)
{
    struct keyring *k = mem_new(struct keyring);
    span rest = text, part;
    int rc = 0;

    while (rc == 0 && str_split(&rest, ',', &part))
        rc = read_key(k, str_trim(part), f);
    if (rc != 0) {
        keyring_free(k);
        k = NULL;
    }
    *out = k;
    return rc;
}

static int read_key(struct keyring *k, span part, struct fault *f)
{
    unsigned nth = k->n + 1;
    const char *colon = part.len > 0 ? memchr(part.ptr, ':', part.len) : NULL;
    span hex = part;
    int rc = 0;

    if (k->n == KEYRING_MAX_KEYS)
        return fault_set(f, QE_CONF, "QUEEN_ENCRYPTION_KEY must have at most %d keys",
                         KEYRING_MAX_KEYS);
    struct keyring_key key = {0};
    if (colon)
        hex = (span){colon + 1, part.len - (size_t)(colon + 1 - part.ptr)};
    if (!read_hex(hex, key.bytes))
        return fault_set(f, QE_CONF,
                         "QUEEN_ENCRYPTION_KEY: key %u must have 64 hexadecimal digits", nth);
    if (colon)
        rc = read_id(&key, (span){part.ptr, (size_t)(colon - part.ptr)}, nth, f);
    else
        derive_id(&key);
    if (rc == 0 && keyring_find(k, span_of(key.id)))
        rc = fault_set(f, QE_CONF, "QUEEN_ENCRYPTION_KEY: the id %s must not be used twice",
                       key.id);
    if (rc == 0)
        k->key[k->n++] = key;
    OPENSSL_cleanse(&key, sizeof key);
    return rc;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(span text, uint8_t bytes[KEYRING_KEY_BYTES])
{
    if (text.len != (size_t)2 * KEYRING_KEY_BYTES)
        return false;
    for (size_t i = 0; i < KEYRING_KEY_BYTES; i++) {
        int high = digit_of(text.ptr[2 * i]), low = digit_of(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

// The id is stored in every encrypted payload, between quotes.
static int read_id(struct keyring_key *key, span id, unsigned nth, struct fault *f)
{
    bool fits = id.len > 0 && id.len <= KEYRING_ID_CHARS;

    for (size_t i = 0; i < id.len && fits; i++) {
        char c = id.ptr[i], lower = (char)(c | 0x20);
        fits = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' ||
               c == '_' || c == '.';
    }
    if (!fits)
        return fault_set(f, QE_CONF,
                         "QUEEN_ENCRYPTION_KEY: the id of key %u must be 1 to %d letters, "
                         "digits, '-', '_' or '.'",
                         nth, KEYRING_ID_CHARS);
    memcpy(key->id, id.ptr, id.len);
    return 0;
}

// A hash identifies the key and reveals nothing about it.
static void derive_id(struct keyring_key *key)
{
    static const char label[] = "queen key id";
    uint8_t text[sizeof label + KEYRING_KEY_BYTES], hash[SHA256_DIGEST_LENGTH];

    memcpy(text, label, sizeof label);
    memcpy(text + sizeof label, key->bytes, KEYRING_KEY_BYTES);
    SHA256(text, sizeof text, hash);
    snprintf(key->id, sizeof key->id, "%02x%02x%02x%02x", hash[0], hash[1], hash[2], hash[3]);
    OPENSSL_cleanse(text, sizeof text);
}

void keyring_free(struct keyring *k)
{
    if (k)
        OPENSSL_cleanse(k, sizeof *k);
    free(k);
}

const struct keyring_key *keyring_find(const struct keyring *k, span id)
{
    for (unsigned i = 0; i < k->n; i++)
        if (span_eq(span_of(k->key[i].id), id))
            return &k->key[i];
    return NULL;
}
