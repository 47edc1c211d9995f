// tenant_db.h: the connections to one tenant's database, PostgreSQL or MySQL.
//
//       tenant_db_open ──► opened ──► use, tenant_db_check ──► checked ... ──► tenant_db_close
//       ──► closed
//
// Each callback runs once, later, never from inside the function that was called.  opened and
// checked do not run after tenant_db_close().  tenant_db_close() may be called at any time
// after opened.
#ifndef QUEEN_TENANT_TENANT_DB_H
#define QUEEN_TENANT_TENANT_DB_H

#include <uv.h>

#include "base/err.h"
#include "tenant/row.h"

struct tenant_db;

struct tenant_db_conf {
    const struct database *home; // server of tenants without a URL
    struct tenant_auth auth;
    unsigned max_conns;
    unsigned connect_timeout_ms, conn_idle_ms, statement_timeout_ms;
};

typedef void (*tenant_db_cb)(struct tenant_db *l, int status);

// row is borrowed for the call.
struct tenant_db *tenant_db_open(uv_loop_t *loop, const struct tenant_db_conf *conf,
                                 const struct tenant_row *row, tenant_db_cb opened,
                                 void *owner);
void tenant_db_check(struct tenant_db *l, tenant_db_cb checked); // one at a time
void tenant_db_close(struct tenant_db *l, void (*closed)(void *ctx), void *ctx); // frees it

void *tenant_db_owner(const struct tenant_db *l);
enum tenant_kind tenant_db_kind(const struct tenant_db *l);
struct pg_pool *tenant_db_pg(const struct tenant_db *l);
struct my_pool *tenant_db_my(const struct tenant_db *l);
const struct fault *tenant_db_fault(const struct tenant_db *l); // why opened or checked failed
const char *
tenant_db_error(const struct tenant_db *l); // of the last failed connection attempt; ""
uint64_t
tenant_db_last_reply_us(const struct tenant_db *l);  // time of the last reply of the database
bool tenant_db_is_up(const struct tenant_db *l);     // as of the last connection attempt
unsigned tenant_db_conns(const struct tenant_db *l); // open connections

#endif
