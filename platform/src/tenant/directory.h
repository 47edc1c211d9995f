// directory.h: reads the tenant directory in the control database.
#ifndef QUEEN_TENANT_DIRECTORY_H
#define QUEEN_TENANT_DIRECTORY_H

#include "pg/pool.h"
#include "tenant/row.h"

// found receives status 0 and a row, 0 and NULL for an unknown tenant, or an error.  row is
// borrowed.
struct directory_find {
    void (*found)(struct directory_find *d, int status, const struct tenant_row *row);
    struct pg_call call; // private
    struct pg_params params;
};
void directory_find(struct pg_pool *control, struct directory_find *d, span name);

// Row i of a statement whose first columns are those of tenant_find in
// platform/sql/control/tenants/statements.sql.  Given: tenant_row_deinit().
struct tenant_row directory_row(const struct pg_reply *reply, unsigned i);

// Reports the rows that changed in the last seconds (0: all rows), one by one, then calls done.
// gone: the tenant was removed.
struct directory_changes {
    void (*changed)(struct directory_changes *d, const struct tenant_row *row, bool gone);
    void (*done)(struct directory_changes *d, int status);
    struct pg_call call; // private
    struct pg_params params;
};
void directory_changes(struct pg_pool *control, struct directory_changes *d, unsigned seconds);

#endif
