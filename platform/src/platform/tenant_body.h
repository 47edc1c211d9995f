// tenant_body.h: what a request says about a tenant.
#ifndef QUEEN_PLATFORM_TENANT_BODY_H
#define QUEEN_PLATFORM_TENANT_BODY_H

#include "base/arena.h"
#include "tenant/row.h"

struct tenant_body {
    span name;
    enum tenant_kind kind;
    const char *url;        // without password; NULL: none given
    const char *database;   // that the address names
    const char *credential; // as the directory keeps it; NULL: none
    bool has_credential;    // one was given, be it null
};

// {"name", "kind", "url", "password" or "credential"}; everything lives in the arena.  f says
// which member is wrong.
MUST_USE int tenant_body_read(span body, struct arena *a, struct tenant_body *out,
                              struct fault *f);

#endif
