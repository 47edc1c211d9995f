// keyset.h: the keys that tokens are verified with.
//
// Built by one thread, then read-only and shared by counted references.
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
void keyset_unref(struct keyset *k); // NULL is fine

// For HS256; the bytes are copied as they are.
void keyset_add_secret(struct keyset *k, span secret);
// A public key, RSA of at least 2048 bits or Ed25519; "\n" in two characters is a line break.
MUST_USE int keyset_add_pem(struct keyset *k, span pem, struct fault *f);
// {"keys": [...]}: takes those that can verify RS256 or EdDSA, leaves the others.
MUST_USE int keyset_add_jwks(struct keyset *k, span json, struct fault *f);
bool keyset_has(const struct keyset *k, enum jwt_alg alg);

// 0; QE_UNAUTHORIZED: the signature is wrong; QE_NOT_FOUND: no key for it.  A token with a kid
// wants the key of that id, unless the key was added without one.
MUST_USE int keyset_verify(const struct keyset *k, const struct jwt *t);

#endif
