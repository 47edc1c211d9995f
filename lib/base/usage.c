// usage.c: processor time and memory of the process.
#include "base/usage.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t micros(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void read_memory(struct usage *u)
{
    unsigned long virtual_pages, resident_pages;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f)
        return;
    if (fscanf(f, "%lu %lu", &virtual_pages, &resident_pages) == 2) {
        u->virtual_bytes = virtual_pages * page;
        u->resident_bytes = resident_pages * page;
    }
    fclose(f);
}

struct usage usage_read(void)
{
    struct usage u = {0};
    struct rusage used;

    if (getrusage(RUSAGE_SELF, &used) == 0) {
        u.user_us = micros(used.ru_utime);
        u.system_us = micros(used.ru_stime);
    }
    read_memory(&u);
    return u;
}
