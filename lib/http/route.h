// route.h: finds the endpoint for a method and path.
//
// The file of an endpoint ends with its descriptor. Patterns consist of literal segments and
// parameters: "/api/v1/pop/queue/:queue/partition/:partition". The raw path is matched segment
// by segment, case-sensitive. A literal segment wins over a parameter; a trailing slash makes
// a different path. Parameters are percent-decoded after matching, so that %2F does not split
// a segment.
#ifndef QUEEN_HTTP_ROUTE_H
#define QUEEN_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/known.h"
#include "base/span.h"

struct http_req;

// HTTP_OTHER: a method that no route has (TRACE, ...); handlers never see it.
enum http_verb {
    HTTP_GET,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_HEAD,
    HTTP_PATCH,
    HTTP_OTHER,
};
enum { HTTP_MAX_PARAMS = 4 };

// Required access, from weakest to strongest (enforced by http_server_conf.guard).
enum http_access { ACCESS_PUBLIC, ACCESS_READ_ONLY, ACCESS_READ_WRITE, ACCESS_ADMIN };

// Query parameters, and members of the body, that the route does not know (base/known.h).
enum http_unknown {
    UNKNOWN_REFUSED, // our own endpoints: 400, also for a parameter that is given twice
    UNKNOWN_IGNORED, // the public contract: ignored, unless the name is near a known one
    // Whatever deletes, cancels or moves things: 400, also for a parameter without a value,
    // because a filter that is not applied selects too much.
    UNKNOWN_OR_EMPTY_REFUSED,
};

// Permissions that a sender with rules (lib/auth/rules.h) needs besides the operations `need`:
// for which queue. A route that declares nothing is for administrators.
enum http_target {
    TARGET_ADMIN,
    TARGET_FREE,      // nothing
    TARGET_ALL,       // for all queues
    TARGET_PATH,      // for :queue of the path, and :group or the parameter consumerGroup
    TARGET_QUERY,     // for the parameter queue; without it for all queues
    TARGET_LIST,      // likewise, but without it the answer has only what the sender may see
    TARGET_PARTITION, // for the queue of :partitionId; the handler checks it
    TARGET_TENANT,    // for :tenant of the path
    TARGET_BODY,      // one of `need` for some queue; the handler checks what the body names
};

struct http_route {
    enum http_verb verb;
    const char *path;
    enum http_access access;
    enum http_target target;
    unsigned need;  // bits of enum access_op; a sender with rules needs all of them
    bool detail;    // public, but with a guard only if its settings list the path
    const char *op; // name in metrics: "push", "pop", ...; static, unique to this route
    void (*handle)(struct http_req *req);
    const char *const *query; // names of the query parameters, ends with NULL; NULL: none
    enum http_unknown unknown;
    // Changes something, but is no administrative action: only denials are audited. A route
    // that declares nothing is audited if its verb is not GET.
    bool unaudited;
};

static inline bool http_route_is_audited(const struct http_route *route)
{
    return route->verb != HTTP_GET && !route->unaudited;
}

static inline enum known_rule http_route_rule(const struct http_route *route)
{
    return route->unknown == UNKNOWN_IGNORED ? KNOWN_OR_FAR : KNOWN_ONLY;
}

struct http_routes; // compiled table; read-only after http_routes_new, shared by all workers

// table: NULL-terminated list of descriptors, borrowed for ever.
struct http_routes *http_routes_new(const struct http_route *const *table);
void http_routes_free(struct http_routes *r); // r may be NULL
size_t http_routes_count(const struct http_routes *r);

// Finds the endpoint; GET routes also serve HEAD. params gets the raw (undecoded) spans of
// path. NULL: no such path (*other_verb false), or the path exists for another verb (true).
const struct http_route *http_routes_find(const struct http_routes *r, enum http_verb verb,
                                          span path, span params[HTTP_MAX_PARAMS],
                                          bool *other_verb);
// The verbs of the path as bits 1 << verb; 0: no such path.
unsigned http_routes_verbs(const struct http_routes *r, span path);
// Index of the route in the table, for per-route metrics.
size_t http_route_index(const struct http_routes *r, const struct http_route *route);

#endif
