// api_key.c: makes, recognises and compares API keys.
#include "auth/api_key.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/base64.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#define PREFIX SPAN("qk_")
enum { SECRET_BYTES = 32, SECRET_CHARS = 43 };

void api_key_make(char text[API_KEY_TEXT + 1])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t id[API_KEY_ID / 2], secret[SECRET_BYTES];
    char encoded[BASE64_SIZE(SECRET_BYTES)];
    char *at = text;

    id_random(id, sizeof id);
    id_random(secret, sizeof secret);
    memcpy(at, PREFIX.ptr, PREFIX.len);
    at += PREFIX.len;
    for (unsigned i = 0; i < sizeof id; i++) {
        *at++ = hex[id[i] >> 4];
        *at++ = hex[id[i] & 15];
    }
    *at++ = '_';
    base64_encode(secret, sizeof secret, encoded);
    for (unsigned i = 0; i < SECRET_CHARS; i++) {
        char c = encoded[i];
        *at++ = (char)(c == '+' ? '-' : c == '/' ? '_' : c);
    }
    *at = '\0';
    OPENSSL_cleanse(secret, sizeof secret);
    OPENSSL_cleanse(encoded, sizeof encoded);
}

span api_key_id(span text)
{
    uint8_t secret[SECRET_CHARS];
    size_t n;

    if (text.len != API_KEY_TEXT || !str_starts(text, PREFIX))
        return SPAN_NONE;
    span id = {text.ptr + PREFIX.len, API_KEY_ID};
    for (unsigned i = 0; i < API_KEY_ID; i++)
        if (!((id.ptr[i] >= '0' && id.ptr[i] <= '9') || (id.ptr[i] >= 'a' && id.ptr[i] <= 'f')))
            return SPAN_NONE;
    const char *mark = id.ptr + id.len;
    if (*mark != '_' || !base64_decode_url((span){mark + 1, SECRET_CHARS}, secret, &n))
        return SPAN_NONE;
    OPENSSL_cleanse(secret, sizeof secret);
    return id;
}

void api_key_hash(span text, uint8_t hash[API_KEY_HASH])
{
    SHA256((const unsigned char *)text.ptr, text.len, hash);
}

bool api_key_matches(span text, const uint8_t hash[API_KEY_HASH])
{
    uint8_t own[API_KEY_HASH];

    api_key_hash(text, own);
    return CRYPTO_memcmp(own, hash, sizeof own) == 0;
}

bool api_key_is_meant(span token)
{
    return str_starts(token, PREFIX) && !memchr(token.ptr, '.', token.len);
}
