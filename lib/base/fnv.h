// fnv.h: FNV-1a of 32 bits: the hash that clients and servers in every language can compute.
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

// Which of n partitions a key belongs to.  The upper half is folded in: in the lower bits alone
// upper and lower case letters are the same.
static inline uint32_t fnv_partition(span key, uint32_t n)
{
    uint32_t h = fnv1a(key);

    return (h ^ h >> 16) % n;
}

#endif
