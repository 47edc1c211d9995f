// queue_set.c: open addressing; a slot of 0 is free.
#include "broker/outage/queue_set.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

struct queue_set {
    uint64_t *slots;
    unsigned n, cap; // cap: a power of two
};

static uint64_t hash_of(span queue)
{
    uint64_t h = XXH3_64bits_withSeed(queue.ptr, queue.len, map_seed);

    return h != 0 ? h : 1;
}

static uint64_t *slot_of(const struct queue_set *s, uint64_t hash)
{
    unsigned i = (unsigned)hash & (s->cap - 1);

    while (s->slots[i] != 0 && s->slots[i] != hash)
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

struct queue_set *queue_set_new(void) { return mem_new(struct queue_set); }

void queue_set_free(struct queue_set *s)
{
    if (s)
        free(s->slots);
    free(s);
}

void queue_set_add(struct queue_set *s, span queue)
{
    uint64_t hash = hash_of(queue);

    if (2 * (s->n + 1) > s->cap) {
        struct queue_set old = *s;
        s->cap = old.cap > 0 ? 2 * old.cap : 16;
        s->slots = mem_new_array(uint64_t, s->cap);
        for (unsigned i = 0; i < old.cap; i++)
            if (old.slots[i] != 0)
                *slot_of(s, old.slots[i]) = old.slots[i];
        free(old.slots);
    }
    uint64_t *slot = slot_of(s, hash);
    s->n += *slot == 0;
    *slot = hash;
}

bool queue_set_has(const struct queue_set *s, span queue)
{
    return s->n > 0 && *slot_of(s, hash_of(queue)) != 0;
}
