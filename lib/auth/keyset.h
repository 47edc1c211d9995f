// keyset.h: the keys that verify tokens.
//
// Built by one thread, then read-only and shared by reference counting.
#ifndef QUEEN_AUTH_KEYSET_H
#define QUEEN_AUTH_KEYSET_H

#include <stdbool.h>

#include "auth/jwt.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

struct keyset;

struct keyset *keyset_new(void); // with one reference
struct keyset *keyset_ref(struct keyset *k);
void keyset_unref(struct keyset *k); // k may be NULL

// For HS256; the bytes are copied as they are.
void keyset_add_secret(struct keyset *k, span secret);
// A public key in PEM form: RSA of at least 2048 bits (RS256, PS256, PS384 and PS512; an
// RSA-PSS key only the last three), Ed25519, or EC on P-256, P-384 or P-521 (ES256, ES384,
// ES512). The two characters "\n" count as a line break.
MUST_USE int keyset_add_pem(struct keyset *k, span pem, struct fault *f);
// {"keys": [...]}: adds keys of the kinds above, skips the others. A key with "alg" verifies
// only that algorithm.
MUST_USE int keyset_add_jwks(struct keyset *k, span json, struct fault *f);
bool keyset_has(const struct keyset *k, enum jwt_alg alg);

// Each key has the algorithms it may be used for. The token only chooses among them, so that no
// key is used in a way its owner did not mean.
//
// 0; QE_UNAUTHORIZED: the signature is invalid; QE_NOT_FOUND: no key for it. A token with a
// kid needs the key of that id, or a key that was added without one.
MUST_USE int keyset_verify(const struct keyset *k, const struct jwt *t);

#endif
