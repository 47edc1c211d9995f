// sealer.h: encrypts and decrypts payloads with AES-256-GCM.
//
// A sealed payload is a JSON object, so that every reader of JSON still gets JSON:
//
//     {"encrypted":"<base64>","iv":"<16 bytes>","authTag":"<16 bytes>","keyId":"<id>"}
//
// The plaintext is the payload's text as it was sent. The message's flag decides whether a
// payload is sealed, never its shape. An object without keyId (written by another product) is
// tried with every key.
//
// A payload may be bound to its message, by a name of 16 bytes: it is the associated data, and
// the object has it as "for":"<base64>". Whoever knows which message it opens a payload for
// gives its name, and a payload bound to another does not open.
//
// A sealer belongs to one thread. It keeps the cipher contexts, so that sealing and opening
// allocate nothing except room in the output buffer.
#ifndef QUEEN_CRYPT_SEALER_H
#define QUEEN_CRYPT_SEALER_H

#include "base/attrs.h"
#include "base/buf.h"
#include "crypt/keyring.h"

struct sealer;

struct sealer *sealer_new(const struct keyring *k); // k is borrowed
void sealer_free(struct sealer *s);                 // s may be NULL

enum { SEALER_NAME_BYTES = 16 };

// Bytes that sealer_seal() will append.
size_t sealer_size(const struct sealer *s, size_t n_plain, bool bound);
// Appends plain, sealed with the newest key. If there is no room, out->failed is set.
// name: of SEALER_NAME_BYTES; NULL: the payload is not bound.
void sealer_seal(struct sealer *s, struct buf *out, span plain, const uint8_t *name);

// Appends the plaintext of sealed. false: no key fits, it is bound to another message, or it is
// not a sealed payload; out is then unchanged, unless out->failed. name: NULL: any message.
MUST_USE bool sealer_open(struct sealer *s, struct buf *out, span sealed, const uint8_t *name);

#endif
