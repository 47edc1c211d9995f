// dedup.c: a ring of ids in order of time, with hash chains through it.
#include "dedup.h"

#include <assert.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

enum { NONE = -1 };

struct entry {
    XXH128_hash_t id;
    uint64_t at_ms;
    int next; // next in the same chain
};

struct dedup {
    unsigned max_count;
    uint64_t max_age_ms;
    struct entry *ring;
    unsigned first, n; // index of the oldest, and count
    unsigned n_hidden; // hidden entries, from the oldest on
    int *heads;        // max_count chains
};

struct dedup *dedup_new(unsigned max_count, uint64_t max_age_ms)
{
    struct dedup *d = mem_new(struct dedup);

    assert(max_count > 0);
    d->max_count = max_count;
    d->max_age_ms = max_age_ms;
    d->ring = mem_new_array(struct entry, max_count);
    d->heads = mem_new_array(int, max_count);
    for (unsigned i = 0; i < max_count; i++)
        d->heads[i] = NONE;
    return d;
}

void dedup_free(struct dedup *d)
{
    if (!d)
        return;
    free(d->ring);
    free(d->heads);
    free(d);
}

static int *head_of(struct dedup *d, XXH128_hash_t id)
{
    assert(d->max_count > 0);
    return &d->heads[id.low64 % d->max_count];
}

static void drop_oldest(struct dedup *d)
{
    int at = (int)d->first;
    int *link = head_of(d, d->ring[at].id);

    while (*link != at)
        link = &d->ring[*link].next;
    *link = d->ring[at].next;
    d->first = (d->first + 1) % d->max_count;
    d->n--;
    d->n_hidden -= d->n_hidden > 0;
}

static void drop_old(struct dedup *d, uint64_t now_ms)
{
    while (d->n > 0 && now_ms - d->ring[d->first].at_ms > d->max_age_ms)
        drop_oldest(d);
}

static bool is_hidden(const struct dedup *d, int at)
{
    return ((unsigned)at + d->max_count - d->first) % d->max_count < d->n_hidden;
}

bool dedup_has(struct dedup *d, span id, uint64_t now_ms)
{
    XXH128_hash_t hash = XXH3_128bits(id.ptr, id.len);

    drop_old(d, now_ms);
    for (int at = *head_of(d, hash); at != NONE; at = d->ring[at].next)
        if (XXH128_isEqual(d->ring[at].id, hash) && !is_hidden(d, at))
            return true;
    return false;
}

void dedup_add(struct dedup *d, span id, uint64_t now_ms)
{
    drop_old(d, now_ms);
    if (d->n == d->max_count)
        drop_oldest(d);
    unsigned at = (d->first + d->n++) % d->max_count;
    XXH128_hash_t hash = XXH3_128bits(id.ptr, id.len);
    int *head = head_of(d, hash);
    d->ring[at] = (struct entry){.id = hash, .at_ms = now_ms, .next = *head};
    *head = (int)at;
}

void dedup_clear(struct dedup *d)
{
    while (d->n > 0)
        drop_oldest(d);
}

void dedup_hide(struct dedup *d) { d->n_hidden = d->n; }
void dedup_show(struct dedup *d) { d->n_hidden = 0; }
