// guard.h: stands before the handlers of one loop: token -> may it?, and who is it.
//
// A token that was good is remembered, so that the next request costs a look into a table; a
// request that must wait for keys waits here and nothing else does.
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
// Those who wait are answered 503; guard_check() must not be called after this.  Frees g when
// its handles are closed.
void guard_close(struct guard *g);

#endif
