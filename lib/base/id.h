// id.h: UUIDs and random numbers.
#ifndef QUEEN_BASE_ID_H
#define QUEEN_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

void id_random(void *bytes, size_t n); // from the kernel, buffered per thread
uint64_t id_random_u64(void);          // fast, per thread; not for secrets

// UUIDv7, strictly increasing within the process (any thread), also when the wall clock steps
// back: the 12 bits after the version are 4096ths of a millisecond and keep counting while the
// clock does not advance. The other 62 bits are random.
void id_uuid7(uint8_t out[16]);
void id_uuid4(uint8_t out[16]);

// Parses "0190..." (36 characters, either case); false if it is not a UUID.
bool id_parse_uuid(span text, uint8_t out[16]);
// The same, but accepts only the canonical lower-case form, so that text -> bytes -> text is
// the identity.
bool id_parse_uuid_canonical(span text, uint8_t out[16]);
void id_format_uuid(const uint8_t id[16], char out[36]); // no NUL
static inline bool id_is_uuid7(const uint8_t id[16]) { return id[6] >> 4 == 7; }
uint64_t id_uuid7_ms(const uint8_t id[16]); // the embedded time, milliseconds since 1970

#endif
