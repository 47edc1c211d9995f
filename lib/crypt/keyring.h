// keyring.h: the keys of encryption at rest, by id.
//
// The first key encrypts, all of them decrypt: a new key is put in front, and an old one may
// go when nothing is stored under it any more.  Written as
//
//      64 hex digits                       one key; its id is worked out from it
//      id:64 hex digits,id:64 hex digits   several, the newest first; an id may be left out
//
// Read-only once made, so any thread may use it.
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

// Given (keyring_free).  f says in one line what is wrong, without showing a key.
MUST_USE int keyring_parse(span text, struct keyring **k, struct fault *f);
void keyring_free(struct keyring *k); // NULL is fine; wipes the keys
const struct keyring_key *keyring_find(const struct keyring *k, span id); // NULL: none

#endif
