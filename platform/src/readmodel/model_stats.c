// model_stats.c: statistics of read models.
#include "readmodel/model_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

// Tenant and model are adjacent, so that they form one key.
enum { KEY_LEN = offsetof(struct model_stat, model) + sizeof(enum model) };

struct model_stat *model_stats_get(struct model_stats *f, span tenant, enum model model)
{
    struct model_stat key = {.model = model}, *found;

    if (tenant.len >= sizeof(key.tenant))
        tenant.len = sizeof(key.tenant) - 1;
    memcpy(key.tenant, tenant.ptr, tenant.len);
    HASH_FIND(hh, f->each, key.tenant, KEY_LEN, found);
    if (found)
        return found;
    found = mem_new(struct model_stat);
    memcpy(found->tenant, key.tenant, sizeof(key.tenant));
    found->model = model;
    found->refresh_ms = found->rows = -1;
    HASH_ADD_KEYPTR(hh, f->each, found->tenant, KEY_LEN, found);
    return found;
}

void model_stats_deinit(struct model_stats *f)
{
    struct model_stat *each, *next;

    HASH_ITER (hh, f->each, each, next) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        HASH_DEL(f->each, each);
        free(each);
    }
}
