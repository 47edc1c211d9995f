// cache.h: counts that were just asked for.
//
// A person who builds a segment asks for its count again and again, and so do others.  An entry
// is used while it is younger than the caller's limit; the answer says how old it is.
#ifndef QUEEN_AUDIENCE_CACHE_H
#define QUEEN_AUDIENCE_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "audience/ask.h"
#include "base/span.h"

struct audience_cache;

struct audience_counted {
    int64_t count;
    struct audience_source source;
    uint64_t at_us; // monotonic
};

struct audience_cache *audience_cache_new(unsigned max_entries);
void audience_cache_free(struct audience_cache *c);

// A key is made of the tenant's identity (tenant_identity(): a tenant that was removed or
// changed is not found any more), the wanted path and the definition.
void audience_cache_key(struct buf *out, uint64_t tenant, span path, span filter);
bool audience_cache_find(struct audience_cache *c, span key, uint64_t max_age_us,
                         struct audience_counted *out);
void audience_cache_add(struct audience_cache *c, span key, const struct audience_counted *v);

#endif
