// dedup.h: remembers recently handled events whose acknowledgement is unconfirmed.
//
// A window of the last ids, limited by count and by age. Ids are stored as 128-bit XXH3
// hashes: two different ids collide about once in 10^30.
#ifndef QUEEN_CLIENT_DEDUP_H
#define QUEEN_CLIENT_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct dedup;

struct dedup *dedup_new(unsigned max_count, uint64_t max_age_ms);
void dedup_free(struct dedup *d); // d may be NULL
bool dedup_has(struct dedup *d, span id, uint64_t now_ms);
void dedup_add(struct dedup *d, span id, uint64_t now_ms); // id must not be in it yet
void dedup_clear(struct dedup *d);
void dedup_hide(struct dedup *d); // present entries are not found ...
void dedup_show(struct dedup *d); // ... until this call

#endif
