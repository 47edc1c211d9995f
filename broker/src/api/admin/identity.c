// GET /api/v1/identity: who the sender is and what it may do.
#include "auth/identity.h"
#include "api/api_int.h"

static void identity_get(struct http_req *req) { identity_reply(req, api_routes); }

const struct http_route api_identity = {
    .verb = HTTP_GET,
    .path = "/api/v1/identity",
    .access = ACCESS_READ_ONLY,
    .target = TARGET_FREE,
    .op = "identity",
    .handle = identity_get,
};
