// pause.c: pauses that grow like the Fibonacci numbers.
#include "ingest/lanes.h"

unsigned lanes_pause_ms(unsigned attempt, unsigned base_ms, unsigned cap_ms)
{
    uint64_t a = 1, b = 1;

    for (unsigned i = 2; i < attempt && b * base_ms < cap_ms; i++) {
        uint64_t sum = a + b;
        a = b;
        b = sum;
    }
    return b * base_ms < cap_ms ? (unsigned)(b * base_ms) : cap_ms;
}
