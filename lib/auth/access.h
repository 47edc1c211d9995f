// access.h: an authenticated sender and its permissions, as the guard attaches it to requests.
#ifndef QUEEN_AUTH_ACCESS_H
#define QUEEN_AUTH_ACCESS_H

#include "auth/identity_limits.h"
#include "auth/rules.h"
#include "base/attrs.h"
#include "http/req.h"

struct access {
    struct http_identity identity;
    enum http_access level;
    struct access_rules *rules; // NULL: the level decides
    struct limits limits;
    struct limit_state *limit; // NULL: there are no limits
};

// NULL: the server is not protected, or the path is public.
static inline const struct access *access_of(const struct http_req *req)
{
    struct http_identity *id = http_req_identity(req);

    return id ? container_of(id, struct access, identity) : NULL;
}

// The rules of the sender; NULL: it has none, so its level has decided already.
static inline struct access_rules *access_rules_of(const struct http_req *req)
{
    const struct access *a = access_of(req);

    return a && !(a->rules && access_rules_permit_all(a->rules, MAY_ADMIN)) ? a->rules : NULL;
}

// The parameter of the path called name; false: there is none, or it is malformed.
bool access_path_param(struct http_req *req, span name, span *value);

// Whether rules permit the request, as far as its head tells: see enum http_target.
bool access_permits_head(const struct access_rules *rules, struct http_req *req);

#endif
