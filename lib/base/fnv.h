// fnv.h: 32-bit FNV-1a, a hash that clients and servers can compute in any language.
#ifndef QUEEN_BASE_FNV_H
#define QUEEN_BASE_FNV_H

#include <stdint.h>

#include "base/span.h"

static inline uint32_t fnv1a(span text)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.ptr[i]) * 16777619u;
    return h;
}

// The partition, out of n, of a key. The upper half is folded in, because the lower bits alone
// do not distinguish upper and lower case letters.
static inline uint32_t fnv_partition(span key, uint32_t n)
{
    uint32_t h = fnv1a(key);

    return (h ^ h >> 16) % n;
}

#endif
