// changed_tenants.c: a set of tenant names.
#include "readmodel/changed_tenants.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

struct note {
    UT_hash_handle hh;
    size_t len;
    char tenant[];
};

void changed_tenants_add(struct changed_tenants *n, span tenant)
{
    struct note *note;

    HASH_FIND(hh, n->each, tenant.ptr, tenant.len, note);
    if (note)
        return;
    note = mem_zalloc(1, sizeof(*note) + tenant.len);
    note->len = tenant.len;
    memcpy(note->tenant, tenant.ptr, tenant.len);
    HASH_ADD_KEYPTR(hh, n->each, note->tenant, note->len, note);
    n->n++;
}

void changed_tenants_put(const struct changed_tenants *n, struct pg_params *p)
{
    const struct note *note;

    pg_begin_array(p, PG_TEXT);
    for (note = n->each; note; note = note->hh.next)
        pg_put_text(p, (span){note->tenant, note->len});
    pg_end_array(p);
}

void changed_tenants_move(struct changed_tenants *into, struct changed_tenants *from)
{
    for (const struct note *note = from->each; note; note = note->hh.next)
        changed_tenants_add(into, (span){note->tenant, note->len});
    changed_tenants_deinit(from);
}

void changed_tenants_deinit(struct changed_tenants *n)
{
    struct note *note, *next;

    HASH_ITER (hh, n->each, note, next) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        HASH_DEL(n->each, note);
        free(note);
    }
    n->n = 0;
}
