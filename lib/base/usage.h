// usage.h: processor time and memory of this process, from the kernel.
#ifndef QUEEN_BASE_USAGE_H
#define QUEEN_BASE_USAGE_H

#include <stdint.h>

struct usage {
    uint64_t user_us, system_us;            // processor time
    uint64_t resident_bytes, virtual_bytes; // 0: not available from /proc
};
struct usage usage_read(void);

#endif
