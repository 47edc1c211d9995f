// clock.h: time, settable in tests.
//
// Decisions about leases and delivery must not use these clocks: they use PostgreSQL's time.
// These clocks serve timers, metrics, logs and generated ids.
#ifndef QUEEN_BASE_CLOCK_H
#define QUEEN_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_mono_us(void); // monotonic
uint64_t clock_wall_us(void); // since 1970, UTC

// Tests: freeze both clocks at these values (process-wide); clock_release() undoes it.
void clock_freeze(uint64_t mono_us, uint64_t wall_us);
void clock_advance_us(uint64_t us); // moves frozen clocks
void clock_release(void);

#endif
