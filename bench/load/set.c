// set.c: a set of numbers: open addressing, linear probing, no tombstones.
#include "bench/load/set.h"

#include <stdlib.h>

#include "base/mem.h"

static size_t home_of(const struct bench_set *s, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (s->cap - 1);
}

// The slot that holds key, or the free one where it would go.
static size_t bench_set_find(const struct bench_set *s, uint64_t key)
{
    size_t i = home_of(s, key);

    while (s->slot[i] != 0 && s->slot[i] != key)
        i = (i + 1) & (s->cap - 1);
    return i;
}

static void set_grow(struct bench_set *s)
{
    struct bench_set old = *s;

    s->cap = old.cap > 0 ? old.cap * 2 : 256;
    s->slot = mem_new_array(uint64_t, s->cap);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slot[i] != 0)
            s->slot[bench_set_find(s, old.slot[i])] = old.slot[i];
    free(old.slot);
}

void bench_set_add(struct bench_set *s, uint64_t v)
{
    if (s->n * 2 >= s->cap)
        set_grow(s);
    size_t i = bench_set_find(s, v + 1);
    if (s->slot[i] == 0) {
        s->slot[i] = v + 1;
        s->n++;
    }
}

bool bench_set_has(const struct bench_set *s, uint64_t v)
{
    return s->n > 0 && s->slot[bench_set_find(s, v + 1)] != 0;
}

bool bench_set_take(struct bench_set *s, uint64_t v)
{
    if (s->n == 0)
        return false;
    size_t hole = bench_set_find(s, v + 1);
    if (s->slot[hole] == 0)
        return false;
    s->n--;

    // Close the hole: move up entries that could be in it, so that a search never stops early
    // at a gap.
    size_t mask = s->cap - 1;
    for (size_t i = (hole + 1) & mask; s->slot[i] != 0; i = (i + 1) & mask) {
        size_t home = home_of(s, s->slot[i]);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            s->slot[hole] = s->slot[i];
            hole = i;
        }
    }
    s->slot[hole] = 0;
    return true;
}

void bench_set_free(struct bench_set *s)
{
    free(s->slot);
    *s = (struct bench_set){0};
}
