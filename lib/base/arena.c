// arena.c: bump allocation in blocks; under ASan one block per object.
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_ALONE 1
#endif
#endif
#ifndef EACH_ALONE
#define EACH_ALONE 0
#endif

enum { FIRST_BLOCK = 512, LARGEST_BLOCK = 64 * 1024, ALONE_FROM = LARGEST_BLOCK / 4 };

struct arena_block {
    struct arena_block *older;
    size_t size; // for the doubling rule only; an object with its own block counts as
                 // FIRST_BLOCK / 2
    alignas(max_align_t) char bytes[];
};

static void *alloc_alone(struct arena *a, size_t size);
static void *chain(struct arena *a, struct arena_block *b, size_t size);
static void charge(struct arena *a, size_t size);
static void add_block(struct arena *a, size_t at_least);

void arena_init(struct arena *a) { *a = (struct arena){0}; }

void arena_deinit(struct arena *a)
{
    struct arena_block *b = a->head;
    while (b) {
        struct arena_block *older = b->older;
        free(b);
        b = older;
    }
    arena_init(a);
}

// Blocks are not zeroed as a whole: most of a request's last block is never used.
void *arena_alloc(struct arena *a, size_t size)
{
    if (size > PTRDIFF_MAX / 2)
        BUG("arena object of %zu bytes", size);
    if (EACH_ALONE)
        return alloc_alone(a, size);

    const size_t mask = alignof(max_align_t) - 1;
    size_t want = (size + mask) & ~mask;
    if ((size_t)(a->end - a->pos) < want) {
        if (want >= ALONE_FROM)
            return alloc_alone(a, want);
        add_block(a, want);
    }
    void *p = a->pos;
    a->pos += want;
    return memset(p, 0, want);
}

// The block goes behind the head, so that the free bytes of the head stay in use.
static void *alloc_alone(struct arena *a, size_t size)
{
    return chain(a, mem_zalloc(1, sizeof(struct arena_block) + size), size);
}

void *arena_try_alloc(struct arena *a, size_t size)
{
    struct arena_block *b = NULL;

    if (size < ALONE_FROM)
        return arena_alloc(a, size);
    if (size > PTRDIFF_MAX / 2 || (a->max > 0 && (a->used > a->max || size > a->max - a->used)))
        a->rc = QE_TOO_LARGE;
    else if (!(b = calloc(1, sizeof *b + size)))
        a->rc = QE_NO_MEMORY;
    return b ? chain(a, b, size) : NULL;
}

static void charge(struct arena *a, size_t size)
{
    a->used += size;
    if (a->max > 0 && a->used > a->max && a->rc == 0)
        a->rc = QE_TOO_LARGE;
}

static void *chain(struct arena *a, struct arena_block *b, size_t size)
{
    charge(a, size);
    b->size = FIRST_BLOCK / 2;
    if (a->head) {
        b->older = a->head->older;
        a->head->older = b;
    } else {
        a->head = b;
    }
    return b->bytes;
}

static void add_block(struct arena *a, size_t at_least)
{
    size_t size = a->head ? a->head->size * 2 : FIRST_BLOCK;
    while (size < at_least)
        size *= 2;
    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;

    struct arena_block *b = mem_realloc(NULL, sizeof *b + size);
    charge(a, size);
    b->older = a->head;
    b->size = size;
    a->head = b;
    a->pos = b->bytes;
    a->end = b->bytes + size;
}

span arena_try_copy(struct arena *a, span s)
{
    char *copy = arena_try_alloc(a, s.len + 1);
    if (!copy)
        return SPAN_NONE;
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    return (span){copy, s.len};
}

span arena_copy(struct arena *a, span s) { return (span){arena_cstr(a, s), s.len}; }

const char *arena_cstr(struct arena *a, span s)
{
    char *copy = arena_alloc(a, s.len + 1); // zeroed, so terminated
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    return copy;
}
