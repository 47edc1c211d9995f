// figures.c: see figures.h.
#include "readmodel/figures.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

// Tenant and model lie next to each other, so that they are one key.
enum { KEY_LEN = offsetof(struct figure, model) + sizeof(enum model) };

struct figure *figures_of(struct figures *f, span tenant, enum model model)
{
    struct figure key = {.model = model}, *found;

    if (tenant.len >= sizeof(key.tenant))
        tenant.len = sizeof(key.tenant) - 1;
    memcpy(key.tenant, tenant.ptr, tenant.len);
    HASH_FIND(hh, f->each, key.tenant, KEY_LEN, found);
    if (found)
        return found;
    found = mem_new(struct figure);
    memcpy(found->tenant, key.tenant, sizeof(key.tenant));
    found->model = model;
    found->refresh_ms = found->rows = -1;
    HASH_ADD_KEYPTR(hh, f->each, found->tenant, KEY_LEN, found);
    return found;
}

void figures_deinit(struct figures *f)
{
    struct figure *each, *next;

    HASH_ITER (hh, f->each, each, next) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        HASH_DEL(f->each, each);
        free(each);
    }
}
