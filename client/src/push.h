// push.h: decodes the response to a push, for callers that build the request themselves.
#ifndef QUEEN_CLIENT_PUSH_H
#define QUEEN_CLIENT_PUSH_H

#include "queen/message.h"

// Takes the response, which must be a success. Given, or NULL with QUEEN_E_PROTOCOL.
struct queen_push_results *push_decode(struct queen_response *response, size_t n,
                                       struct queen_error *err);

#endif
