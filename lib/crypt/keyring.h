// keyring.h: the keys of encryption at rest, by id.
//
// The first key encrypts, all of them decrypt. To rotate, put the new key in front; remove an
// old key once nothing is stored under it. Written as
//
//     64 hex digits                       one key; its id is derived from it
//     id:64 hex digits,id:64 hex digits   several, the newest first; an id may be omitted
//
// Read-only once created, so any thread may use it.
#ifndef QUEEN_CRYPT_KEYRING_H
#define QUEEN_CRYPT_KEYRING_H

#include <stdint.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

enum { KEYRING_KEY_BYTES = 32, KEYRING_ID_CHARS = 32, KEYRING_MAX_KEYS = 32 };

struct keyring_key {
    char id[KEYRING_ID_CHARS + 1]; // letters, digits, '-', '_' and '.'
    uint8_t bytes[KEYRING_KEY_BYTES];
};

struct keyring {
    unsigned n;                               // at least 1
    struct keyring_key key[KEYRING_MAX_KEYS]; // newest first; ids differ
};

// Given (keyring_free). f names the mistake without showing a key.
MUST_USE int keyring_parse(span text, struct keyring **k, struct fault *f);
void keyring_free(struct keyring *k); // k may be NULL; wipes the keys
const struct keyring_key *keyring_find(const struct keyring *k, span id); // NULL: unknown id

#endif
