// GET /health, /live, /ready: is this server of any use?
//
//      /live    the process answers; a supervisor restarts it when this fails
//      /ready   send it work: database there, schema in place, not stopping
//      /health  the same in the shape that clients and people read
#include "api/api_int.h"
#include "json/write.h"

static void health_handle(struct http_req *req);
static void live_handle(struct http_req *req);
static void ready_handle(struct http_req *req);

// Names and peers, which a protected server does not show to strangers.
static void put_details(const struct api *api, struct buf *out)
{
    buf_put_lit(out, ",\"server\":");
    js_put_text(out, api->shared->server);
    buf_printf(out, ",\"worker_id\":%u,\"version\":", api->index);
    js_put_text(out, api->shared->version);
    buf_put_lit(out, ",\"shared_state\":");
    if (api->shared->peers)
        shared_state_put(api->shared, out);
    else
        buf_put_lit(out, "{\"enabled\":false}");
    buf_printf(out, ",\"queen\":{\"worker_id\":%u,\"status\":\"%s\"}", api->index,
               atomic_load(&api->shared->stopping) ? "stopping" : "active");
}

static void health_handle(struct http_req *req)
{
    const struct api *api = http_req_app(req);
    bool ready = atomic_load(&api->shared->ready);
    bool up = house_is_up(api->shared->house); // a request may have its home at any of them
    bool healthy = ready && up;
    struct buf out = {0};

    buf_printf(&out, "{\"status\":\"%s\",\"database\":\"%s\"",
               healthy ? "healthy" : "unhealthy", up ? "connected" : "disconnected");
    if (!healthy) {
        buf_put_lit(&out, ",\"reason\":");
        js_put_text(&out, api_reason(api));
    }
    if (api->shared->show_details)
        put_details(api, &out);
    if (api->shared->exposed) {
        buf_put_lit(&out, ",\"warnings\":[");
        js_put_text(&out, SPAN(HTTP_SITE_EXPOSED));
        buf_putc(&out, ']');
    }
    buf_putc(&out, '}');
    http_reply_json(req, healthy ? 200 : 503, &out);
}

static void live_handle(struct http_req *req)
{
    http_reply_json_span(req, 200, SPAN("{\"status\":\"live\"}"));
}

static void ready_handle(struct http_req *req)
{
    const struct api *api = http_req_app(req);
    bool ready = atomic_load(&api->shared->ready);
    struct buf out = {0};

    if (atomic_load(&api->shared->stopping)) {
        http_reply_json_span(req, 503, SPAN("{\"status\":\"stopping\"}"));
    } else if (ready && house_is_up(api->shared->house)) {
        http_reply_json_span(req, 200, SPAN("{\"status\":\"ready\"}"));
    } else {
        buf_printf(&out, "{\"status\":\"%s\",\"reason\":",
                   ready ? "database unreachable" : "starting");
        js_put_text(&out, api_reason(api));
        buf_putc(&out, '}');
        http_reply_json(req, 503, &out);
    }
}

const struct http_route api_health = {
    .verb = HTTP_GET,
    .path = "/health",
    .op = "health",
    .handle = health_handle,
    .unknown = UNKNOWN_IGNORED,
};
const struct http_route api_live = {
    .verb = HTTP_GET,
    .path = "/live",
    .op = "live",
    .handle = live_handle,
    .unknown = UNKNOWN_IGNORED,
};
const struct http_route api_ready = {
    .verb = HTTP_GET,
    .path = "/ready",
    .op = "ready",
    .handle = ready_handle,
    .unknown = UNKNOWN_IGNORED,
};
