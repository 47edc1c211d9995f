// base64.h: base64 in the two alphabets of RFC 4648.
#ifndef QUEEN_BASE_BASE64_H
#define QUEEN_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define BASE64_SIZE(n) (((n) + 2) / 3 * 4) // characters needed for n bytes

// The standard alphabet, padded with '='. Writes BASE64_SIZE(n) characters, no NUL. `bytes`
// may be the last n bytes of `out`: the text then overwrites them.
void base64_encode(const uint8_t *bytes, size_t n, char *out);
// Accepts exactly the output of base64_encode(): padded, no spaces, unused bits 0. Writes at
// most text.len / 4 * 3 bytes. Returns false for anything else.
bool base64_decode(span text, uint8_t *out, size_t *n);
// The URL-safe alphabet without padding, unused bits 0, as used in JSON Web Tokens.
bool base64_decode_url(span text, uint8_t *out, size_t *n);

#endif
