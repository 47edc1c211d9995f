// tenant_body.h: reads the body of a request that adds or changes a tenant.
#ifndef QUEEN_PLATFORM_TENANT_BODY_H
#define QUEEN_PLATFORM_TENANT_BODY_H

#include "base/arena.h"
#include "tenant/row.h"

struct tenant_body {
    span name;
    enum tenant_kind kind;
    const char *url;        // without password; NULL: none given
    const char *database;   // database name in the URL
    const char *credential; // as the directory stores it; NULL: none
    bool has_credential;    // the member was present, possibly null
};

// {"name", "kind", "url", "password" or "credential"}; everything is allocated in the arena.  f
// names the invalid member.
MUST_USE int tenant_body_read(span body, struct arena *a, struct tenant_body *out,
                              struct fault *f);

#endif
