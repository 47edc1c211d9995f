// row.h: one row of the tenant directory.
#ifndef QUEEN_TENANT_ROW_H
#define QUEEN_TENANT_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"
#include "pg/conninfo.h"
#include "pg/database.h"
#include "tenant/my_pool.h"
#include "tenant/pools.h"

enum { TENANT_NAME_MAX = 48 };

struct tenant_row {
    char name[TENANT_NAME_MAX + 1];
    enum tenant_kind kind;
    char *url;        // NULL: on the platform's own server
    char *database;   // name of the database on that server
    char *credential; // text:PASSWORD, env:NAME, file:/path; NULL: none
    bool made;
    int64_t revision;
    int64_t added_us; // when it was added; another tenant of the same name was added later
};
void tenant_row_copy(struct tenant_row *to, const struct tenant_row *from); // to must be empty
void tenant_row_deinit(struct tenant_row *r);
bool tenant_row_eq(const struct tenant_row *a, const struct tenant_row *b);

// Lower-case letters, digits, - and _; at most TENANT_NAME_MAX; starts with a letter or digit.
bool tenant_is_name(span name);

// Returns the password of a credential.  Given: free(); NULL if there is none.  Reads a small
// file or the environment; QE_CONF if that fails.
MUST_USE int credential_read(const struct tenant_auth *auth, const char *credential,
                             char **password, struct fault *f);
// Whether a credential may be used at all: QE_BAD_PARAM if not.
MUST_USE int credential_check(const struct tenant_auth *auth, const char *credential,
                              struct fault *f);

// The connection string of a PostgreSQL tenant.  Limits (timeouts, names) are copied from
// `like`. Given: free().  home is the platform's own server.
MUST_USE int tenant_conninfo(const struct tenant_row *r, const struct database *home,
                             const struct tenant_auth *auth, const struct pg_conninfo *like,
                             char **conninfo, struct fault *f);
// The same for MySQL.  Given: my_place_deinit().
MUST_USE int tenant_place(const struct tenant_row *r, const struct tenant_auth *auth,
                          struct my_place *place, struct fault *f);

#endif
