// A binary heap whose members store their position, so that any can be moved or removed.
#include "batch/due.h"

#include <stdlib.h>

#include "base/mem.h"

static void due_put(struct due_heap *h, unsigned place, struct due *d)
{
    h->at[place - 1] = d;
    d->place = place;
}

static void sift_up(struct due_heap *h, struct due *d)
{
    unsigned place = d->place;

    while (place > 1 && h->at[place / 2 - 1]->at_us > d->at_us) {
        due_put(h, place, h->at[place / 2 - 1]);
        place /= 2;
    }
    due_put(h, place, d);
}

static void sift_down(struct due_heap *h, struct due *d)
{
    unsigned place = d->place;

    for (;;) {
        unsigned child = place * 2;
        if (child > h->n)
            break;
        if (child < h->n && h->at[child]->at_us < h->at[child - 1]->at_us)
            child++;
        if (h->at[child - 1]->at_us >= d->at_us)
            break;
        due_put(h, place, h->at[child - 1]);
        place = child;
    }
    due_put(h, place, d);
}

void due_deinit(struct due_heap *h)
{
    free(h->at);
    *h = (struct due_heap){0};
}

void due_set(struct due_heap *h, struct due *d, uint64_t at_us, void (*expire)(struct due *d))
{
    d->expire = expire;
    if (d->place == 0) {
        if (h->n == h->cap) {
            h->cap = h->cap > 0 ? h->cap * 2 : 64;
            h->at = mem_realloc(h->at, h->cap * sizeof *h->at);
        }
        d->at_us = at_us;
        due_put(h, ++h->n, d);
        sift_up(h, d);
    } else if (at_us != d->at_us) {
        bool earlier = at_us < d->at_us;
        d->at_us = at_us;
        if (earlier)
            sift_up(h, d);
        else
            sift_down(h, d);
    }
}

void due_cancel(struct due_heap *h, struct due *d)
{
    if (d->place == 0)
        return;
    struct due *last = h->at[--h->n];
    unsigned place = d->place;
    d->place = 0;
    if (last == d)
        return;
    due_put(h, place, last);
    sift_up(h, last);
    sift_down(h, last);
}

uint64_t due_next_us(const struct due_heap *h)
{
    return h->n > 0 ? h->at[0]->at_us : UINT64_MAX;
}

void due_run(struct due_heap *h, uint64_t now_us)
{
    for (unsigned left = h->n; left > 0 && h->n > 0 && h->at[0]->at_us <= now_us; left--) {
        struct due *d = h->at[0];
        due_cancel(h, d);
        d->expire(d);
    }
}
