// base64.h: bytes as text, in the two alphabets of RFC 4648.
#ifndef QUEEN_BASE_BASE64_H
#define QUEEN_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define BASE64_SIZE(n) (((n) + 2) / 3 * 4) // characters that n bytes become

// The usual alphabet, padded with '='; writes BASE64_SIZE(n) characters, no NUL.  `bytes` may
// be the last n bytes of the room for the text: then the text takes their place.
void base64_encode(const uint8_t *bytes, size_t n, char *out);
// Exactly what base64_encode() writes: padded, no spaces, unused bits 0.  Writes at most
// text.len / 4 * 3 bytes; false: it is something else.
bool base64_decode(span text, uint8_t *out, size_t *n);
// The alphabet for addresses, without padding, unused bits 0: as in tokens.
bool base64_decode_url(span text, uint8_t *out, size_t *n);

#endif
