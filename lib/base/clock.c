// clock.c: the wall clock, the monotonic clock, and frozen clocks for tests.
#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

// Atomic because a test may move the clock under a running worker thread.
static _Atomic bool frozen;
static _Atomic uint64_t frozen_mono_us, frozen_wall_us;

static uint64_t read_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t); // cannot fail for these ids
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t clock_mono_us(void)
{
    if (atomic_load_explicit(&frozen, memory_order_relaxed))
        return atomic_load(&frozen_mono_us);
    return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_wall_us(void)
{
    if (atomic_load_explicit(&frozen, memory_order_relaxed))
        return atomic_load(&frozen_wall_us);
    return read_us(CLOCK_REALTIME);
}

void clock_freeze(uint64_t mono_us, uint64_t wall_us)
{
    atomic_store(&frozen_mono_us, mono_us);
    atomic_store(&frozen_wall_us, wall_us);
    atomic_store(&frozen, true);
}

void clock_advance_us(uint64_t us)
{
    atomic_fetch_add(&frozen_mono_us, us);
    atomic_fetch_add(&frozen_wall_us, us);
}

void clock_release(void) { atomic_store(&frozen, false); }
