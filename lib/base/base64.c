// base64.c: encodes and decodes groups of three bytes and four characters.
#include "base/base64.h"

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *bytes, size_t n, char *out)
{
    // Each group is read before it is written, and writing never overtakes reading (see
    // base64.h).
    for (; n >= 3; n -= 3, bytes += 3) {
        uint32_t v = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
        *out++ = letters[v >> 18];
        *out++ = letters[v >> 12 & 63];
        *out++ = letters[v >> 6 & 63];
        *out++ = letters[v & 63];
    }
    if (n > 0) {
        uint32_t v = (uint32_t)bytes[0] << 16 | (n > 1 ? (uint32_t)bytes[1] << 8 : 0);
        *out++ = letters[v >> 18];
        *out++ = letters[v >> 12 & 63];
        *out++ = n > 1 ? letters[v >> 6 & 63] : '=';
        *out = '=';
    }
}

// Value of a character; 64 if it is not in the alphabet.
static unsigned value_of(char c, char c62, char c63)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (unsigned)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0') + 52;
    return c == c62 ? 62 : c == c63 ? 63 : 64;
}

// text has no padding.
static bool base64_decode_text(span text, char c62, char c63, uint8_t *out, size_t *n)
{
    uint8_t *at = out;
    uint32_t bits = 0;
    unsigned bad = 0, have = 0;

    *n = 0;
    if (text.len % 4 == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned v = value_of(text.ptr[i], c62, c63);
        bad |= v & 64;
        bits = bits << 6 | v;
        if (++have == 4) {
            *at++ = (uint8_t)(bits >> 16);
            *at++ = (uint8_t)(bits >> 8);
            *at++ = (uint8_t)bits;
            have = 0;
        }
    }
    if (have == 2) {
        *at++ = (uint8_t)(bits >> 4);
        bad |= bits & 15;
    } else if (have == 3) {
        *at++ = (uint8_t)(bits >> 10);
        *at++ = (uint8_t)(bits >> 2);
        bad |= bits & 3;
    }
    *n = (size_t)(at - out);
    return bad == 0;
}

bool base64_decode(span text, uint8_t *out, size_t *n)
{
    *n = 0;
    if (text.len % 4 != 0)
        return false;
    for (unsigned i = 0; i < 2 && text.len > 0 && text.ptr[text.len - 1] == '='; i++)
        text.len--;
    return base64_decode_text(text, '+', '/', out, n);
}

bool base64_decode_url(span text, uint8_t *out, size_t *n)
{
    return base64_decode_text(text, '-', '_', out, n);
}
