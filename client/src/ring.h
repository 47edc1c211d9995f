// ring.h: which server a key belongs to, the same in every client that knows the same servers.
//
// Each server has 128 points on a ring of 32 bits: FNV-1a of "<url>#<n>".  A key belongs to the
// first point at or behind FNV-1a of the key.  When a server goes, only its keys move.
#ifndef QUEEN_CLIENT_RING_H
#define QUEEN_CLIENT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum { RING_POINTS = 128 };

struct ring_point {
    uint32_t at;
    unsigned server;
};

struct ring {
    struct ring_point *points; // sorted
    size_t n;
};

void ring_init(struct ring *r, const span *names, unsigned n_servers);
void ring_deinit(struct ring *r);

// The server of the key's first point for which usable(server, ctx) holds; the first of all
// when there is none.
unsigned ring_find(const struct ring *r, span key, bool (*usable)(unsigned server, void *ctx),
                   void *ctx);

#endif
