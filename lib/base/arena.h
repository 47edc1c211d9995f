// arena.h: memory that is freed all at once.
//
// A request has one arena; everything its handler allocates lives until the answer has been
// written. Objects are zeroed. Under ASan every object is an allocation of its own, so that
// ASan detects an overrun.
//
//     struct arena a;
//     arena_init(&a);            // allocates nothing yet
//     struct x *x = arena_new(&a, struct x);
//     arena_deinit(&a);          // frees all
#ifndef QUEEN_BASE_ARENA_H
#define QUEEN_BASE_ARENA_H

#include <stddef.h>

#include "base/span.h"

struct arena_block;
struct arena {
    struct arena_block *head; // newest block
    char *pos, *end;          // free bytes of head
    size_t used, max;         // bytes of all blocks, and their limit; 0: no limit
    int rc;                   // QE_TOO_LARGE once max was exceeded, QE_NO_MEMORY: see below
};

void arena_init(struct arena *a);
void arena_deinit(struct arena *a); // leaves a as if just initialised

// Zeroed, aligned for any type; aborts on OOM. The first block is 512 bytes, later ones double
// up to 64 KB; larger objects get a block of their own.
void *arena_alloc(struct arena *a, size_t size);
#define arena_new(a, type)          ((type *)arena_alloc((a), sizeof(type)))
#define arena_new_array(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (n)))

// For sizes that a client chooses: returns NULL or SPAN_NONE and sets rc if max would be
// exceeded or memory is exhausted. The functions above never fail, but they set rc to
// QE_TOO_LARGE once they have exceeded max.
void *arena_try_alloc(struct arena *a, size_t size);
span arena_try_copy(struct arena *a, span s);

span arena_copy(struct arena *a, span s);        // copied
const char *arena_cstr(struct arena *a, span s); // copied, NUL-terminated

#endif
