// GET /health, /live, /ready: the state of this process.
//
//       /live    the process replies; a supervisor restarts it when this fails
//       /ready   it can take work: control database reachable, schema migrated, not stopping
//       /health  the same, for people
#include "platform/platform_int.h"
#include "json/write.h"

static void health_health_handle(struct http_req *req)
{
    const struct platform *p = http_req_app(req);
    bool up = platform_is_up(p);
    struct buf out = {0};

    buf_printf(&out, "{\"status\":\"%s\",\"database\":\"%s\"", up ? "healthy" : "unhealthy",
               up ? "connected" : "disconnected");
    if (!auth_is_protected(p->auth) || p->conf->site.health_details) {
        buf_printf(&out, ",\"phase\":\"%s\",\"platform\":", platform_phase_name(p));
        js_put_text(&out, span_of(p->id));
        buf_put_lit(&out, ",\"version\":");
        js_put_text(&out, SPAN(QUEEN_VERSION));
    }
    if (p->exposed) {
        buf_put_lit(&out, ",\"warnings\":[");
        js_put_text(&out, SPAN(HTTP_SITE_EXPOSED));
        buf_putc(&out, ']');
    }
    buf_putc(&out, '}');
    http_reply_json(req, up ? 200 : 503, &out);
}

static void live_handle(struct http_req *req)
{
    http_reply_json_span(req, 200, SPAN("{\"status\":\"live\"}"));
}

static void ready_handle(struct http_req *req)
{
    const struct platform *p = http_req_app(req);

    if (p->phase > SERVING)
        http_reply_json_span(req, 503, SPAN("{\"status\":\"stopping\"}"));
    else if (p->phase == STARTING)
        http_reply_json_span(req, 503, SPAN("{\"status\":\"starting\"}"));
    else if (!platform_is_up(p))
        http_reply_json_span(req, 503, SPAN("{\"status\":\"database unreachable\"}"));
    else
        http_reply_json_span(req, 200, SPAN("{\"status\":\"ready\"}"));
}

const struct http_route platform_health = {
    .verb = HTTP_GET, .path = "/health", .op = "health", .handle = health_health_handle};
const struct http_route platform_live = {
    .verb = HTTP_GET, .path = "/live", .op = "live", .handle = live_handle};
const struct http_route platform_ready = {
    .verb = HTTP_GET, .path = "/ready", .op = "ready", .handle = ready_handle};
