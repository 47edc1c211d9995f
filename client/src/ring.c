// ring.c: a hash ring as a sorted array of points.
#include "ring.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/fnv.h"
#include "base/mem.h"

// Equal points, which are rare, are ordered by server, so that every client agrees.
static int compare_points(const void *a, const void *b)
{
    const struct ring_point *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->server < y->server ? -1 : x->server > y->server;
}

void ring_init(struct ring *r, const span *names, unsigned n_servers)
{
    struct buf text = {0};

    *r = (struct ring){.points =
                           mem_new_array(struct ring_point, (size_t)n_servers * RING_POINTS)};
    for (unsigned s = 0; s < n_servers; s++) {
        for (unsigned i = 0; i < RING_POINTS; i++) {
            buf_reset(&text);
            buf_put(&text, names[s]);
            buf_putc(&text, '#');
            buf_put_u64(&text, i);
            r->points[r->n++] = (struct ring_point){fnv1a(buf_span(&text)), s};
        }
    }
    buf_free(&text);
    qsort(r->points, r->n, sizeof *r->points, compare_points);
}

void ring_deinit(struct ring *r) { free(r->points); }

// Index of the first point at or behind the hash, which may be n.
static size_t ring_seek(const struct ring *r, uint32_t hash)
{
    size_t low = 0, high = r->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->points[middle].at < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

unsigned ring_find(const struct ring *r, span key, bool (*usable)(unsigned server, void *ctx),
                   void *ctx)
{
    assert(r->n > 0);
    size_t first = ring_seek(r, fnv1a(key));

    for (size_t i = 0; i < r->n; i++) {
        unsigned server = r->points[(first + i) % r->n].server;
        if (usable(server, ctx))
            return server;
    }
    return r->points[first % r->n].server;
}
