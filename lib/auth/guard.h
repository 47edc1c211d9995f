// guard.h: checks the token of each request before its handler runs, for one loop.
//
// Valid tokens and keys are cached, so that the next request with the same one costs one hash
// lookup. A key that is revoked loses its cached entry, and its unanswered requests their
// connections, as soon as the table of keys changes.
// A request that needs keys not fetched yet waits here without blocking other requests.
#ifndef QUEEN_AUTH_GUARD_H
#define QUEEN_AUTH_GUARD_H

#include <stdbool.h>
#include <uv.h>

#include "auth/auth.h"
#include "base/metric.h"
#include "http/req.h"

struct guard;

struct guard_stats { // any thread may read it
    struct counter unauthenticated, forbidden;
    struct counter limited[LIMIT_KINDS];
};

// a and stats are borrowed.
struct guard *guard_open(uv_loop_t *loop, struct auth *a, struct guard_stats *stats);
// For http_server_conf.guard; ctx is the guard.
bool guard_check(void *ctx, struct http_req *req);
// For http_server_conf.guard_refuses: true if guard_check() would refuse the request now.
// *admitted: guard_check() need not be called.
bool guard_refuses(void *ctx, struct http_req *req, bool *admitted);
// Waiting requests are answered with 503; guard_check() must not be called after this. Frees g
// when its handles are closed.
void guard_close(struct guard *g);

#endif
