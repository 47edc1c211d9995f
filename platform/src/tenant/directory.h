// directory.h: asking the control database who a tenant is.
#ifndef QUEEN_TENANT_DIRECTORY_H
#define QUEEN_TENANT_DIRECTORY_H

#include "pg/pool.h"
#include "tenant/row.h"

// found: status 0 and a row, or 0 and NULL (there is none), or a failure.  row is borrowed.
struct directory_find {
    void (*found)(struct directory_find *d, int status, const struct tenant_row *row);
    struct pg_call call; // private
    struct pg_params params;
};
void directory_find(struct pg_pool *control, struct directory_find *d, span name);

// Row i of a statement whose first columns are those of
// platform/sql/control/calls/tenant_find.sql. Given: tenant_row_deinit().
struct tenant_row directory_row(const struct pg_reply *reply, unsigned i);

// What has changed in the last seconds (0: everything there is), row by row; then done.  gone:
// the tenant was removed.
struct directory_changes {
    void (*changed)(struct directory_changes *d, const struct tenant_row *row, bool gone);
    void (*done)(struct directory_changes *d, int status);
    struct pg_call call; // private
    struct pg_params params;
};
void directory_changes(struct pg_pool *control, struct directory_changes *d, unsigned seconds);

#endif
