// GET /openapi.json: the description of this interface (platform/docs/openapi, merged at build
// time).
#include "platform/openapi.gen.h"
#include "platform/platform_int.h"

static void openapi_handle(struct http_req *req)
{
    http_reply_header(req, SPAN("Cache-Control"), SPAN("public, max-age=3600"));
    http_reply_json_span(req, 200, (span){platform_openapi_json, platform_openapi_json_len});
}

const struct http_route platform_openapi = {
    .verb = HTTP_GET,
    .path = "/openapi.json",
    .access = ACCESS_READ_ONLY,
    .target = TARGET_FREE,
    .op = "openapi",
    .handle = openapi_handle,
};
