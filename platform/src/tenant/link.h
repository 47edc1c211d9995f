// link.h: the connections to one tenant's database, PostgreSQL or MySQL.
//
//       link_open ──► opened ──► use, link_check ──► checked ... ──► link_close ──► closed
//
// Each callback runs once, later, never from inside the function that was called.  opened and
// checked do not run after link_close().  link_close() may be called at any time after opened.
#ifndef QUEEN_TENANT_LINK_H
#define QUEEN_TENANT_LINK_H

#include <uv.h>

#include "base/err.h"
#include "tenant/row.h"

struct link;

struct link_conf {
    const struct database *home; // server of tenants without a URL
    struct tenant_auth auth;
    unsigned max_conns;
    unsigned connect_timeout_ms, conn_idle_ms, statement_timeout_ms;
};

typedef void (*link_cb)(struct link *l, int status);

// row is borrowed for the call.
struct link *link_open(uv_loop_t *loop, const struct link_conf *conf,
                       const struct tenant_row *row, link_cb opened, void *owner);
void link_check(struct link *l, link_cb checked);                      // one at a time
void link_close(struct link *l, void (*closed)(void *ctx), void *ctx); // frees it

void *link_owner(const struct link *l);
enum tenant_kind link_kind(const struct link *l);
struct pg_pool *link_pg(const struct link *l);
struct my_pool *link_my(const struct link *l);
const struct fault *link_fault(const struct link *l); // why opened or checked failed
const char *link_error(const struct link *l);      // of the last failed connection attempt; ""
uint64_t link_last_reply_us(const struct link *l); // time of the last reply of the database
bool link_is_up(const struct link *l);             // as of the last connection attempt
unsigned link_conns(const struct link *l);         // open connections

#endif
