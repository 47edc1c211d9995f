// api_key.h: the text and the hash of an API key.
//
//     qk_0123456789abcdef_<43 characters of base64url>
//        id, 64 bits      secret, 256 bits
//
// The id finds the key and is no secret: it is listed and logged. A server stores only the
// SHA-256 of the whole text. A slow hash would add nothing, because a secret of 256 random bits
// cannot be guessed.
//
// A key contains no dot and a JSON Web Token always does, so neither can be taken for the
// other.
#ifndef QUEEN_AUTH_API_KEY_H
#define QUEEN_AUTH_API_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum { API_KEY_ID = 16, API_KEY_TEXT = 3 + API_KEY_ID + 1 + 43, API_KEY_HASH = 32 };

void api_key_make(char text[API_KEY_TEXT + 1]); // NUL-terminated
// The id inside text, which is borrowed; SPAN_NONE: text does not have the form of a key.
span api_key_id(span text);
void api_key_hash(span text, uint8_t hash[API_KEY_HASH]);
// In constant time.
bool api_key_matches(span text, const uint8_t hash[API_KEY_HASH]);
// Whether a token is meant as a key: it is then never tried as a JSON Web Token.
bool api_key_is_meant(span token);

#endif
