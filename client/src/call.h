// call.h: a request until it is answered: which server, how often, how long.
//
//      call_new ──► call_begin ──► attempt ──► attempt ... ──► done
//      any thread   loop's thread
//
// Attempts: with one server, conf.attempts with pauses that double; with several, each server
// once without pause.  Tried again is what failed on the way or with 5xx.
#ifndef QUEEN_CLIENT_CALL_H
#define QUEEN_CLIENT_CALL_H

#include "queen/client.h"

struct call;

// Copies req.
struct call *call_new(struct queen_client *c, const struct queen_request *req,
                      queen_response_cb done, void *ctx);

// One that fails with err as soon as it begins: for requests that could not be made.
struct call *call_new_failed(struct queen_client *c, const struct queen_error *err,
                             queen_response_cb done, void *ctx);

// Before it begins: a long poll, which leaves some connections to other requests (pool.h).  Its
// timeout begins when it has a connection.
void call_may_park(struct call *call);
// On the loop's thread.  done is called later, once; the call is gone then.
void call_begin(struct call *call);
// Before done: ends it with QUEEN_E_CLOSED, which done is told later.
void call_cancel(struct call *call);
// The same, but an answer that the server has sent already is not lost: done gets it.
void call_hang_up(struct call *call);
// Begins it on the loop's thread, wherever the caller is.
void call_submit(struct call *call);
struct call *call_next(struct call *call); // of the client's list, or NULL

#endif
