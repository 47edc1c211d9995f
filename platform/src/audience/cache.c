// cache.c: a map by key and a list by age; the oldest entry is evicted.
#include "audience/cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

struct entry {
    UT_hash_handle hh;
    TAILQ_ENTRY(entry) link; // oldest first
    struct audience_counted value;
    size_t key_len;
    char key[];
};

struct audience_cache {
    struct entry *by_key;
    TAILQ_HEAD(, entry) by_age;
    unsigned n, max;
    size_t key_bytes;
};

struct audience_cache *audience_cache_new(unsigned max_entries)
{
    struct audience_cache *c = mem_new(struct audience_cache);

    TAILQ_INIT(&c->by_age);
    c->max = max_entries;
    return c;
}

static void cache_drop(struct audience_cache *c, struct entry *e)
{
    HASH_DEL(c->by_key, e);
    TAILQ_REMOVE(&c->by_age, e, link);
    c->n--;
    c->key_bytes -= e->key_len;
    free(e);
}

void audience_cache_free(struct audience_cache *c)
{
    while (!TAILQ_EMPTY(&c->by_age))
        cache_drop(c, TAILQ_FIRST(&c->by_age));
    free(c);
}

// Only the last part may contain NUL, so keys are unambiguous.
void audience_cache_key(struct buf *out, uint64_t tenant, span path, span filter)
{
    buf_printf(out, "%llu", (unsigned long long)tenant);
    buf_putc(out, '\0');
    buf_put(out, path);
    buf_putc(out, '\0');
    buf_put(out, filter);
}

static struct entry *cache_find(struct audience_cache *c, span key)
{
    struct entry *e;

    HASH_FIND(hh, c->by_key, key.ptr, key.len, e);
    return e;
}

bool audience_cache_find(struct audience_cache *c, span key, uint64_t max_age_us,
                         struct audience_counted *out)
{
    struct entry *e = cache_find(c, key);

    if (e == NULL || clock_mono_us() - e->value.at_us > max_age_us)
        return false;
    *out = e->value;
    return true;
}

void audience_cache_add(struct audience_cache *c, span key, const struct audience_counted *v)
{
    struct entry *e = cache_find(c, key);

    if (key.len > AUDIENCE_CACHE_BYTES)
        return;
    if (e != NULL)
        cache_drop(c, e);
    while (c->n == c->max || c->key_bytes + key.len > AUDIENCE_CACHE_BYTES)
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        cache_drop(c, TAILQ_FIRST(&c->by_age));
    e = mem_zalloc(1, sizeof *e + key.len);
    e->value = *v;
    e->key_len = key.len;
    memcpy(e->key, key.ptr, key.len);
    HASH_ADD_KEYPTR(hh, c->by_key, e->key, e->key_len, e);
    TAILQ_INSERT_TAIL(&c->by_age, e, link);
    c->n++;
    c->key_bytes += key.len;
}
