// mem.h: allocation.
//
// An allocation of a small control structure aborts the process on failure, because no caller
// could handle it sensibly (ADR 6). Sizes that a client chooses (bodies, replies) go through
// mem_try_*; their failure is answered with 503.
#ifndef QUEEN_BASE_MEM_H
#define QUEEN_BASE_MEM_H

#include <stddef.h>

#include "base/attrs.h"

// Zeroed; never NULL; given (free with free()).
#define mem_new(type)          ((type *)mem_zalloc(1, sizeof(type)))
#define mem_new_array(type, n) ((type *)mem_zalloc((n), sizeof(type)))

void *mem_zalloc(size_t n, size_t size);
void *mem_realloc(void *old, size_t size);              // never NULL for size > 0
char *mem_strndup(const char *text, size_t len);        // NUL-terminated copy
MUST_USE void *mem_try_realloc(void *old, size_t size); // NULL: old is unchanged

#endif
