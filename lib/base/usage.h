// usage.h: what the kernel says about this process.
#ifndef QUEEN_BASE_USAGE_H
#define QUEEN_BASE_USAGE_H

#include <stdint.h>

struct usage {
    uint64_t user_us, system_us;            // processor time
    uint64_t resident_bytes, virtual_bytes; // 0: /proc did not say
};
struct usage usage_read(void);

#endif
