// reply.c: builds answers: heads from prebuilt pieces, bodies by reference.
#include "http/req.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "http/gzip.h"
#include "http/http_int.h"
#include "net/addresses.h"
#include "json/write.h"

#define JSON         "Content-Type: application/json\r\n"
#define CORS_METHODS "GET, POST, PUT, DELETE, OPTIONS"
#define CORS_HEADERS "Content-Type, Authorization"
#define CORS_ANY                                         \
    "Access-Control-Allow-Origin: *\r\n"                 \
    "Access-Control-Allow-Methods: " CORS_METHODS "\r\n" \
    "Access-Control-Allow-Headers: " CORS_HEADERS "\r\n"

static void http_reply_finish(struct http_req *req, int status);

static span status_line(int status)
{
    switch (status) {
#define LINE(code, text) \
    case code:           \
        return SPAN("HTTP/1.1 " #code " " text "\r\n");
        LINE(200, "OK")
        LINE(201, "Created")
        LINE(202, "Accepted")
        LINE(204, "No Content")
        LINE(304, "Not Modified")
        LINE(400, "Bad Request")
        LINE(401, "Unauthorized")
        LINE(403, "Forbidden")
        LINE(404, "Not Found")
        LINE(405, "Method Not Allowed")
        LINE(406, "Not Acceptable")
        LINE(408, "Request Timeout")
        LINE(409, "Conflict")
        LINE(413, "Content Too Large")
        LINE(414, "URI Too Long")
        LINE(415, "Unsupported Media Type")
        LINE(422, "Unprocessable Content")
        LINE(429, "Too Many Requests")
        LINE(431, "Request Header Fields Too Large")
        LINE(500, "Internal Server Error")
        LINE(501, "Not Implemented")
        LINE(502, "Bad Gateway")
        LINE(503, "Service Unavailable")
        LINE(504, "Gateway Timeout")
        LINE(505, "HTTP Version Not Supported")
#undef LINE
    default:
        return SPAN_NONE;
    }
}

static char *http_reply_put(char *out, span s)
{
    if (s.len > 0)
        memcpy(out, s.ptr, s.len);
    return out + s.len;
}

static char *put_number(char *out, size_t v)
{
    char digits[20];
    unsigned n = 0;

    do
        digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    while (n > 0)
        *out++ = digits[--n];
    return out;
}

size_t http_reply_head(struct http_req *req, bool close, char *out)
{
    const struct http_server *s = req->server;
    span line = status_line(req->status);
    char *at = out;

    if (line.len > 0)
        at = http_reply_put(at, line);
    else
        at += snprintf(at, 64, "HTTP/1.1 %03d Status\r\n", req->status);
    if (req->is_json)
        at = http_reply_put(at, SPAN(JSON));
    if (s->conf.site.any_origin)
        at = http_reply_put(at, SPAN(CORS_ANY));
    at = http_reply_put(at, (span){s->date, s->date_len});
    if (req->status != 204 && req->status != 304) {
        at = http_reply_put(at, SPAN("Content-Length: "));
        at = put_number(at, http_answer_body(req).len);
        at = http_reply_put(at, SPAN("\r\n"));
    }
    if (close)
        at = http_reply_put(at, SPAN("Connection: close\r\n"));
    else if (req->msg.http10)
        at = http_reply_put(at, SPAN("Connection: keep-alive\r\n"));
    at = http_reply_put(at, buf_span(&req->extra));
    at = http_reply_put(at, SPAN("\r\n"));
    return (size_t)(at - out);
}

void http_reply_json(struct http_req *req, int status, struct buf *body)
{
    if (body->failed) { // never send half a document
        buf_free(body);
        http_reply_err(req, QE_NO_MEMORY);
        return;
    }
    assert(req->state == REQ_PENDING);
    req->answer = *body;
    *body = (struct buf){.max = body->max};
    req->is_json = req->packable = true;
    http_reply_finish(req, status);
}

void http_reply_json_span(struct http_req *req, int status, span body)
{
    struct buf copy = {0};

    buf_put(&copy, body);
    http_reply_json(req, status, &copy);
}

void http_reply_json_constant(struct http_req *req, int status, span body)
{
    assert(req->state == REQ_PENDING);
    req->constant = body;
    req->is_json = req->packable = true;
    http_reply_finish(req, status);
}

// Text is worth compressing; pictures and fonts are compressed already.
static bool is_text(span type)
{
    static const char *const parts[] = {"text/", "json", "javascript", "xml"};

    for (unsigned i = 0; i < countof(parts); i++)
        if (memmem(type.ptr, type.len, parts[i], strlen(parts[i])))
            return true;
    return false;
}

void http_reply_text(struct http_req *req, int status, span content_type, struct buf *body)
{
    if (body->failed) {
        buf_free(body);
        http_reply_err(req, QE_NO_MEMORY);
        return;
    }
    assert(req->state == REQ_PENDING);
    http_reply_header(req, SPAN("Content-Type"), content_type);
    req->packable = is_text(content_type);
    req->answer = *body;
    *body = (struct buf){.max = body->max};
    http_reply_finish(req, status);
}

void http_reply_constant(struct http_req *req, int status, span content_type, span body,
                         span packed)
{
    assert(req->state == REQ_PENDING);
    http_reply_header(req, SPAN("Content-Type"), content_type);
    http_reply_header(req, SPAN("Vary"), SPAN("Accept-Encoding"));
    if (gzip_is_wanted(http_req_header(req, SPAN("accept-encoding")))) {
        http_reply_header(req, SPAN("Content-Encoding"), SPAN("gzip"));
        body = packed;
    }
    req->constant = body;
    http_reply_finish(req, status);
}

void http_reply_empty(struct http_req *req, int status)
{
    assert(req->state == REQ_PENDING);
    http_reply_finish(req, status);
}

void http_reply_err(struct http_req *req, int code)
{
    http_reply_status(req, err_http_status(code), err_text(code));
}

void http_reply_fault(struct http_req *req, const struct fault *f)
{
    http_reply_status(req, err_http_status(f->code), f->text[0] ? f->text : err_text(f->code));
}

void http_reply_errf(struct http_req *req, int code, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    str_clean_utf8(text, sizeof text, span_of(text)); // it may have been cut
    http_reply_status(req, err_http_status(code), text);
}

void http_reply_retry_after(struct http_req *req, unsigned seconds)
{
    req->retry_after_s = seconds;
}

void http_reply_status(struct http_req *req, int status, const char *text)
{
    struct buf body = {0};

    if (status == 429 || status == 503) {
        char wait[16];
        int n =
            snprintf(wait, sizeof wait, "%u", req->retry_after_s > 0 ? req->retry_after_s : 1);
        http_reply_header(req, SPAN("Retry-After"), (span){wait, (size_t)n});
    }
    buf_put_lit(&body, "{\"error\":");
    js_put_text(&body, span_of(text));
    buf_putc(&body, '}');
    if (body.failed) // not even room for these few bytes
        buf_free(&body);
    http_reply_json(req, status, &body);
}

static bool refuse_foreign(struct http_req *req)
{
    http_reply_status(
        req, 403,
        "requests from web pages of other origins are refused; list the origin in "
        "QUEEN_CORS_ORIGINS");
    return true;
}

bool http_reply_foreign(struct http_req *req)
{
    const struct http_site *site = &req->server->conf.site;
    span host = http_msg_host(&req->msg);

    if (site->checked && !http_site_takes_host(site, host)) {
        http_reply_status(req, 403,
                          "the Host header does not name this server; list the name in "
                          "QUEEN_ALLOWED_HOSTS");
        return true;
    }
    if (site->any_origin || !(req->msg.rare & (RARE_ORIGIN | RARE_FETCH_SITE)))
        return false;
    // A link of another site may open the dashboard, and an image may be of a public route.
    if (!(req->msg.rare & RARE_ORIGIN))
        return site->checked && req->route && req->route->access != ACCESS_PUBLIC &&
               http_req_is_foreign(req) && refuse_foreign(req);
    span origin = http_req_header(req, SPAN("origin"));
    if (http_site_takes_origin(site, origin, host)) {
        http_reply_header(req, SPAN("Access-Control-Allow-Origin"), origin);
        http_reply_header(req, SPAN("Access-Control-Allow-Methods"), SPAN(CORS_METHODS));
        http_reply_header(req, SPAN("Access-Control-Allow-Headers"), SPAN(CORS_HEADERS));
        http_reply_header(req, SPAN("Vary"), SPAN("Origin"));
        return false;
    }
    if (!site->checked) // the browser itself keeps the answer from the page
        return false;
    return refuse_foreign(req);
}

void http_reply_preflight(struct http_req *req)
{
    http_reply_header(req, SPAN("Access-Control-Max-Age"), SPAN("86400"));
    http_reply_empty(req, 204);
}

void http_reply_allow(struct http_req *req, unsigned verbs)
{
    static const char *const names[] = {"GET",     "POST", "PUT",  "DELETE",
                                        "OPTIONS", "HEAD", "PATCH"};
    struct buf list = {0};

    verbs |= 1U << HTTP_OPTIONS;
    for (unsigned v = 0; v < countof(names); v++) {
        if (!(verbs & 1U << v))
            continue;
        if (list.len > 0)
            buf_put_lit(&list, ", ");
        buf_put(&list, span_of(names[v]));
    }
    http_reply_header(req, SPAN("Allow"), buf_span(&list));
    buf_free(&list);
    http_reply_err(req, QE_METHOD);
}

static void put_clean(struct buf *out, span text)
{
    for (size_t i = 0; i < text.len; i++)
        buf_putc(out,
                 (unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 127 ? ' ' : text.ptr[i]);
}

void http_reply_header(struct http_req *req, span name, span value)
{
    assert(req->state == REQ_PENDING);
    size_t len = req->extra.len;

    req->extra.max = HTTP_EXTRA_BYTES;
    put_clean(&req->extra, name);
    buf_put_lit(&req->extra, ": ");
    put_clean(&req->extra, value);
    buf_put_lit(&req->extra, "\r\n");
    if (req->extra.failed) { // add the whole line or nothing
        log_error("http.header_too_large", "name=" SPAN_FMT " error=\"too large\"",
                  SPAN_ARG(name));
        req->extra.len = len;
        req->extra.failed = false;
    }
}

// Sent only with failures and to clients that sent an id: every header costs time on a busy
// server.
static void put_trail(struct http_req *req, int status)
{
    if (status >= 400 || req->msg.rare & RARE_REQUEST_ID)
        http_reply_header(req, SPAN("X-Request-Id"), http_req_id(req));
    if (!(req->msg.rare & RARE_REQUEST_ID) && req->db_us == 0)
        return;
    char text[96];
    double total_ms = (double)(clock_mono_us() - req->started_us) / 1000;
    int n = snprintf(text, sizeof text, "total;dur=%.3f", total_ms);
    if (req->db_us > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, ", db;dur=%.3f",
                      (double)req->db_us / 1000);
    http_reply_header(req, SPAN("Server-Timing"), (span){text, (size_t)n});
}

// At most one line per second and worker. A readiness probe answered with "not ready" is not a
// failure.
static void log_failure(struct http_req *req, int status)
{
    struct http_server *s = req->server;
    uint64_t now_s = clock_mono_us() / 1000000;
    span id = http_req_id(req);

    if (req->route && req->route->access == ACCESS_PUBLIC)
        return;
    if (now_s == s->failed_s) {
        s->n_failed++;
        return;
    }
    log_warn("http.request_failed",
             "status=%d path=\"" SPAN_FMT "\" request=\"" SPAN_FMT "\" unlogged=%u", status,
             SPAN_ARG(req->path), SPAN_ARG(id), s->n_failed);
    s->failed_s = now_s;
    s->n_failed = 0;
}

// Every answer goes through here. The request lives at least until the end of the turn.
static void http_reply_finish(struct http_req *req, int status)
{
    const struct http_server *s = req->server;

    assert(req->state == REQ_PENDING);
    if (status == 401 && req->conn)
        addresses_note_failure(s->conf.addresses, req->conn->address,
                               clock_mono_us() / 1000000);
    req->gone = NULL;
    if (req->conn) {
        if (status >= 400 || req->msg.rare & RARE_REQUEST_ID || req->db_us > 0)
            put_trail(req, status);
        if (status >= 500)
            log_failure(req, status);
        if (req->msg.rare & RARE_ACCEPT_ENCODING && s->conf.gzip_min_bytes > 0 &&
            http_answer_body(req).len >= s->conf.gzip_min_bytes && req->packable &&
            status != 204 && status != 304 && http_coding_pack(req, status))
            return;
    }
    http_reply_settle(req, status);
}

void http_reply_settle(struct http_req *req, int status)
{
    struct http_server *s = req->server;
    struct http_conn *c = req->conn;

    req->state = REQ_ANSWERED;
    req->status = status;
    if (req->identity && req->identity->spent)
        req->identity->spent(req->identity, req->msg.body.len + http_answer_body(req).len);
    if (s->conf.audit &&
        (status == 401 || status == 403 || (req->handled && http_route_is_audited(req->route))))
        s->conf.audit(s->conf.audit_ctx, req, status);
    if (req->trace) {
        s->conf.traced(s->conf.app, req, status);
        req->trace = NULL;
    }
    s->n_pending--;
    if (status == 204 || status == 304) {
        buf_free(&req->answer);
        req->constant = SPAN_NONE;
    }
    if (!c) {
        if (!req->late)
            http_server_discard(s, req);
        return;
    }
    if (s->conf.observe)
        s->conf.observe(s->conf.app, req->route, status, clock_mono_us() - req->started_us);
    c->out_bytes += http_answer_body(req).len;
    if (req == STAILQ_FIRST(&c->queue))
        http_conn_touch(c);
    else
        http_conn_settle(c, false);
}
