// provision.h: creates, migrates or drops a tenant's database.
//
//       provision_start ──► (a work thread: create, migrate or drop) ──► done
//
// Any number may be started; libuv's thread pool limits how many run at once.
#ifndef QUEEN_TENANT_PROVISION_H
#define QUEEN_TENANT_PROVISION_H

#include <uv.h>

#include "base/err.h"
#include "tenant/row.h"

enum provision_what {
    PROVISION_MIGRATE, // creates a missing database first if the platform manages it
    PROVISION_DROP,    // only databases that the platform has created
};

struct provision; // caller's memory until done
typedef void (*provision_cb)(struct provision *v);

struct provision {
    provision_cb done;
    void *owner;
    // The identity of the directory: the database becomes that of the tenant, unless another
    // tenant has it.  NULL: a tenant already.  Borrowed until done.
    const char *directory;
    const char *instead_of; // a tenant that does not exist any more; "": none

    // the result, for done
    int status;
    struct fault why; // does not name the tenant
    unsigned version; // schema version afterwards
    unsigned n_migrations, n_objects;
    char taken_by[TENANT_NAME_MAX +
                  1]; // the database is that of this tenant; status QE_CONFLICT
    // The database has subscriptions or recurring campaigns: it was a tenant's before.
    bool has_triggers;
    uint64_t us;

    // private
    enum provision_what what;
    struct tenant_row row;
    char *conninfo, *admin_info;
    struct my_place place; // of a MySQL tenant
    uv_work_t work;
};

// row is copied; home is the platform's own server.  done runs later, on the loop.
void provision_start(struct provision *v, uv_loop_t *loop, const struct database *home,
                     const struct tenant_auth *auth, const struct tenant_row *row,
                     enum provision_what what);

#endif
