// provision.h: a tenant's database is made, brought up to date, or dropped.
//
//      provision_start ──► (a work thread: create, migrate or drop) ──► done
//
// Any number may run at once; how many do is limited by the threads of libuv's pool.
#ifndef QUEEN_TENANT_PROVISION_H
#define QUEEN_TENANT_PROVISION_H

#include <uv.h>

#include "base/err.h"
#include "tenant/row.h"

enum provision_what {
    PROVISION_MIGRATE, // a database that the platform makes is made first if it is missing
    PROVISION_DROP,    // only what the platform has made
};

struct provision; // caller's memory until done
typedef void (*provision_cb)(struct provision *v);

struct provision {
    provision_cb done;
    void *owner;

    // the answer, for done
    int status;
    struct fault why; // names no tenant
    unsigned version; // the schema's, afterwards
    unsigned n_migrations, n_objects;
    uint64_t us;

    // private
    enum provision_what what;
    struct tenant_row row;
    char *conninfo, *admin_info;
    struct my_place place; // of a MySQL tenant
    uv_work_t work;
};

// row is copied; home is the platform's own server.  done comes later, on the loop.
void provision_start(struct provision *v, uv_loop_t *loop, const struct database *home,
                     const struct tenant_row *row, enum provision_what what);

#endif
