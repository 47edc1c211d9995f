// map.c: the random seed of all hash tables.
#include "base/map.h"

#include "base/id.h"

uint64_t map_seed;

void map_setup(void) { id_random(&map_seed, sizeof map_seed); }
