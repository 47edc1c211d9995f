// call.h: a request until it is answered: choice of the server, attempts, timeouts.
//
//     call_new ──► call_begin ──► attempt ──► attempt ... ──► done
//     any thread   loop's thread
//
// With one server there are conf.attempts attempts with pauses that double; with several, each
// server is tried once without pause. Connection failures and 5xx are retried.
#ifndef QUEEN_CLIENT_CALL_H
#define QUEEN_CLIENT_CALL_H

#include "queen/client.h"

struct call;

// Copies req.
struct call *call_new(struct queen_client *c, const struct queen_request *req,
                      queen_response_cb done, void *ctx);

// A call that fails with err as soon as it begins: for requests that could not be built.
struct call *call_new_failed(struct queen_client *c, const struct queen_error *err,
                             queen_response_cb done, void *ctx);

// Before it begins: a long poll, which leaves some connections to other requests (pool.h).  Its
// timeout begins when it has a connection.
void call_may_park(struct call *call);
// On the loop's thread. done is called once, later; the call is freed by then.
void call_begin(struct call *call);
// Before done: ends the call with QUEEN_E_CLOSED; done is called later.
void call_cancel(struct call *call);
// The same, but done gets a response that the server has already sent.
void call_hang_up(struct call *call);
// Begins the call on the loop's thread; may be called from any thread.
void call_submit(struct call *call);
struct call *call_next(struct call *call); // next in the client's list, or NULL

#endif
