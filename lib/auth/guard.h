// guard.h: checks the token of each request before its handler runs, for one loop.
//
// Valid tokens are cached, so that the next request with the same token costs one hash lookup.
// A request that needs keys not fetched yet waits here without blocking other requests.
#ifndef QUEEN_AUTH_GUARD_H
#define QUEEN_AUTH_GUARD_H

#include <stdbool.h>
#include <uv.h>

#include "auth/auth.h"
#include "http/req.h"

struct guard;

struct guard *guard_open(uv_loop_t *loop, struct auth *a); // a is borrowed
// For http_server_conf.guard; ctx is the guard.
bool guard_check(void *ctx, struct http_req *req);
// For http_server_conf.guard_refuses: true if guard_check() would refuse the request now.
// *admitted: guard_check() need not be called.
bool guard_refuses(void *ctx, struct http_req *req, bool *admitted);
// Waiting requests are answered with 503; guard_check() must not be called after this. Frees g
// when its handles are closed.
void guard_close(struct guard *g);

#endif
