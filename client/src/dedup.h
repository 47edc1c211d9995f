// dedup.h: was this event handled a moment ago, and is its acknowledgement in doubt?
//
// A window of the ids handled last, bounded by count and by age.  Ids are kept as 128 bits of
// XXH3: two different ones are taken for the same once in 10^30 or so.
#ifndef QUEEN_CLIENT_DEDUP_H
#define QUEEN_CLIENT_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct dedup;

struct dedup *dedup_new(unsigned max_count, uint64_t max_age_ms);
void dedup_free(struct dedup *d); // NULL is fine
bool dedup_has(struct dedup *d, span id, uint64_t now_ms);
void dedup_add(struct dedup *d, span id, uint64_t now_ms); // not one that it has
void dedup_clear(struct dedup *d);
void dedup_hide(struct dedup *d); // those in it are not found ...
void dedup_show(struct dedup *d); // ... until now

#endif
