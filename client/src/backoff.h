// backoff.h: the delay before the next attempt.
#ifndef QUEEN_CLIENT_BACKOFF_H
#define QUEEN_CLIENT_BACKOFF_H

#include <stdint.h>

enum { BACKOFF_MAX_MS = 60000 };

// failed: number of failed attempts, from 1. The delay is first_ms and doubles each time.
static inline unsigned backoff_ms(unsigned first_ms, unsigned failed)
{
    uint64_t ms = failed > 16 ? BACKOFF_MAX_MS : (uint64_t)first_ms << (failed - 1);

    return ms < BACKOFF_MAX_MS ? (unsigned)ms : BACKOFF_MAX_MS;
}

#endif
