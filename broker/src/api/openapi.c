// GET /openapi.json: this interface, described (docs/reference/openapi, merged when the program
// is built).
#include "api/api_int.h"
#include "api/openapi.gen.h"

static void openapi_handle(struct http_req *req)
{
    http_reply_header(req, SPAN("Cache-Control"), SPAN("public, max-age=3600"));
    http_reply_json_constant(req, 200, (span){openapi_json, openapi_json_len});
}

const struct http_route api_openapi = {
    .verb = HTTP_GET,
    .path = "/openapi.json",
    .access = ACCESS_READ_ONLY,
    .target = TARGET_FREE,
    .op = "openapi",
    .handle = openapi_handle,
    .unknown = UNKNOWN_IGNORED,
};
