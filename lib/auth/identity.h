// identity.h: GET /api/v1/identity: who sent the request, and what it may do.
#ifndef QUEEN_AUTH_IDENTITY_H
#define QUEEN_AUTH_IDENTITY_H

#include "http/req.h"
#include "http/route.h"

// Answers with subject, role or rules, and the operations of `routes` that the sender may use
// for at least one queue or tenant. A page hides what is not among them; the guard decides.
void identity_reply(struct http_req *req, const struct http_route *const *routes);

#endif
