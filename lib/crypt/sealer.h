// sealer.h: payloads to ciphertext and back.  AES-256-GCM.
//
// A sealed payload is a JSON object, so that every reader of JSON still gets JSON:
//
//      {"encrypted":"<base64>","iv":"<16 bytes>","authTag":"<16 bytes>","keyId":"<id>"}
//
// The plaintext is the payload's text as it was sent; there is no associated data.  What makes
// a payload count as sealed is the message's flag, never its shape.  An object without keyId
// (written by another product) is tried with every key.
//
// A sealer belongs to one thread; it keeps the ciphers, so that neither way allocates anything
// but room in the buffer it writes to.
#ifndef QUEEN_CRYPT_SEALER_H
#define QUEEN_CRYPT_SEALER_H

#include "base/attrs.h"
#include "base/buf.h"
#include "crypt/keyring.h"

struct sealer;

struct sealer *sealer_new(const struct keyring *k); // k is borrowed
void sealer_free(struct sealer *s);                 // NULL is fine

size_t sealer_size(const struct sealer *s, size_t n_plain); // what sealer_seal() will add
// Appends plain, sealed with the newest key.  If there is no room, out->failed says so.
void sealer_seal(struct sealer *s, struct buf *out, span plain);

// Appends what sealed holds.  false: no key fits, or it is not what we sealed; out is as before
// then, unless out->failed.
MUST_USE bool sealer_open(struct sealer *s, struct buf *out, span sealed);

#endif
