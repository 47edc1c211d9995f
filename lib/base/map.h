// map.h: hash tables: uthash with seeded XXH3; aborts on OOM.
//
// Intrusive: the entry embeds a UT_hash_handle. Keys come from clients, so the seed is random
// per process. Include this header, never <uthash.h>.
#ifndef QUEEN_BASE_MAP_H
#define QUEEN_BASE_MAP_H

#include <stdint.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

extern uint64_t map_seed; // set once by map_setup(), before threads start
void map_setup(void);

#define HASH_FUNCTION(key, keylen, hashv) \
    ((hashv) = (unsigned)XXH3_64bits_withSeed((key), (keylen), map_seed))
#define uthash_fatal(msg) abort()
#include <uthash.h>

#endif
