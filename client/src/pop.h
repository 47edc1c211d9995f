// pop.h: a pop that can be cancelled, for consumers.
#ifndef QUEEN_CLIENT_POP_H
#define QUEEN_CLIENT_POP_H

#include "call.h"
#include "queen/message.h"

// On the loop's thread.  done is called once, later; until then call_cancel() ends it.
struct call *pop_begin(struct queen_client *c, const struct queen_pop *pop, queen_pop_cb done,
                       void *ctx);

#endif
