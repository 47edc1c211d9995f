// mem.c: allocation that aborts on failure, and mem_try_realloc(), which does not.
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Called when memory is exhausted, so it must not allocate: no stdio.
static NORETURN void out_of_memory(void)
{
    static const char text[] = "level=critical event=memory.gone\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    abort();
}

void *mem_zalloc(size_t n, size_t size)
{
    void *p = calloc(n > 0 ? n : 1, size > 0 ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *mem_realloc(void *old, size_t size)
{
    void *p = realloc(old, size > 0 ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

char *mem_strndup(const char *text, size_t len)
{
    if (len == SIZE_MAX)
        out_of_memory();
    char *copy = mem_realloc(NULL, len + 1);
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void *mem_try_realloc(void *old, size_t size) { return realloc(old, size > 0 ? size : 1); }
