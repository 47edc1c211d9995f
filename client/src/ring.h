// ring.h: maps a key to a server, identically in every client with the same servers.
//
// Each server has 128 points on a ring of 32 bits: FNV-1a of "<url>#<n>". A key belongs to the
// first point at or behind FNV-1a of the key. When a server is removed, only its keys move.
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

// The first server from the key's point on for which usable(server, ctx) is true; the key's own
// server if there is none.
unsigned ring_find(const struct ring *r, span key, bool (*usable)(unsigned server, void *ctx),
                   void *ctx);

#endif
