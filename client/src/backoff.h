// backoff.h: how long to wait before the next attempt.
#ifndef QUEEN_CLIENT_BACKOFF_H
#define QUEEN_CLIENT_BACKOFF_H

#include <stdint.h>

enum { BACKOFF_MAX_MS = 60000 };

// failed: attempts that have failed, from 1.  first_ms, twice that, four times that ...
static inline unsigned backoff_ms(unsigned first_ms, unsigned failed)
{
    uint64_t ms = failed > 16 ? BACKOFF_MAX_MS : (uint64_t)first_ms << (failed - 1);

    return ms < BACKOFF_MAX_MS ? (unsigned)ms : BACKOFF_MAX_MS;
}

#endif
