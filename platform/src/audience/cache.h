// cache.h: caches recent counts.
//
// People who build a segment request its count repeatedly.  An entry is used while it is
// younger than the caller's limit; the answer contains its age.
#ifndef QUEEN_AUDIENCE_CACHE_H
#define QUEEN_AUDIENCE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "audience/query.h"
#include "base/span.h"

struct audience_cache;

struct audience_counted {
    int64_t count;
    struct audience_source source;
    uint64_t at_us; // monotonic
};

// Keys contain definitions, which clients choose: together they take at most this much.
enum { AUDIENCE_CACHE_BYTES = 16 << 20 };

struct audience_cache *audience_cache_new(unsigned max_entries);
void audience_cache_free(struct audience_cache *c);

// A key consists of the tenant's identity, the requested path and the definition.  With
// tenant_identity() the entries of a removed or changed tenant are not found any more.
void audience_cache_key(struct buf *out, uint64_t tenant, span path, span filter);
bool audience_cache_find(struct audience_cache *c, span key, uint64_t max_age_us,
                         struct audience_counted *out);
void audience_cache_add(struct audience_cache *c, span key, const struct audience_counted *v);

#endif
