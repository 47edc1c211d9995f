// changed_tenants.h: the tenants with changes that are not yet in the control database.
#ifndef QUEEN_READMODEL_CHANGED_TENANTS_H
#define QUEEN_READMODEL_CHANGED_TENANTS_H

#include "base/span.h"
#include "pg/params.h"

struct note;
struct changed_tenants { // {0} is empty
    struct note *each;
    unsigned n;
};

void changed_tenants_add(struct changed_tenants *n, span tenant); // copied
// The parameter of note_changes.
void changed_tenants_put(const struct changed_tenants *n, struct pg_params *p);
void changed_tenants_move(struct changed_tenants *into,
                          struct changed_tenants *from); // from is empty afterwards
void changed_tenants_deinit(struct changed_tenants *n);

#endif
