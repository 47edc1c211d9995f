// push.h: the answer to a push, for those who make the request themselves.
#ifndef QUEEN_CLIENT_PUSH_H
#define QUEEN_CLIENT_PUSH_H

#include "queen/message.h"

// Takes the answer, which must be one of success.  Given, or NULL with QUEEN_E_PROTOCOL.
struct queen_push_results *push_decode(struct queen_response *response, size_t n,
                                       struct queen_error *err);

#endif
