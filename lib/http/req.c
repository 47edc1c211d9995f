// req.c: accessors of a request for its handler.
#include "http/req.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/id.h"
#include "base/str.h"
#include "http/http_int.h"
#include "net/tls_server.h"

enum { MAX_REQUEST_ID = 128 };

static int check_query(struct http_req *req, struct fault *f);

struct arena *http_req_arena(struct http_req *req) { return &req->arena; }
uv_loop_t *http_req_loop(struct http_req *req) { return req->server->loop; }
void *http_req_app(struct http_req *req) { return req->server->conf.app; }
enum http_verb http_req_verb(const struct http_req *req)
{
    return (enum http_verb)req->msg.verb;
}
const struct http_route *http_req_route(const struct http_req *req) { return req->route; }
span http_req_path(const struct http_req *req) { return req->path; }
span http_req_body(const struct http_req *req) { return buf_span(&req->msg.body); }
uint64_t http_req_started_us(const struct http_req *req) { return req->started_us; }
bool http_req_has(const struct http_req *req, enum http_rare header)
{
    return (req->msg.rare & header) != 0;
}
bool http_req_is_gone(const struct http_req *req) { return req->conn == NULL; }
struct trace_span *http_req_trace(const struct http_req *req) { return req->trace; }
void http_req_set_trace(struct http_req *req, struct trace_span *trace)
{
    assert(req->state == REQ_PENDING);
    req->trace = trace;
}

span http_req_query_text(const struct http_req *req) { return req->query; }
const uint8_t *http_req_ip(const struct http_req *req) { return req->ip; }

span http_req_subject(const struct http_req *req)
{
    return req->identity ? req->identity->subject : SPAN_NONE;
}

// Once per connection: a certificate does not change.
span http_req_client_names(struct http_req *req)
{
    struct http_conn *c = req->conn;
    struct buf names = {0};

    if (!c || !c->tls)
        return SPAN_NONE;
    if (!c->has_client_names) {
        tls_stream_client_names(c->tls, &names);
        c->client_names = names.ptr;
        c->n_client_names = (uint32_t)names.len;
        c->has_client_names = true;
    }
    return (span){c->client_names, c->n_client_names};
}

bool http_req_is_foreign(const struct http_req *req)
{
    if (http_req_has(req, RARE_ORIGIN))
        return !http_site_lists_origin(&req->server->conf.site,
                                       http_req_header(req, SPAN("origin")),
                                       http_msg_host(&req->msg));
    return http_req_has(req, RARE_FETCH_SITE) &&
           !http_site_is_own(http_req_header(req, SPAN("sec-fetch-site")));
}

struct http_identity *http_req_identity(const struct http_req *req) { return req->identity; }

void http_identity_unref(struct http_identity *id)
{
    assert(id->n_refs > 0);
    if (--id->n_refs == 0)
        id->unused(id);
}

void http_req_forget_identity(struct http_req *req)
{
    struct http_identity *id = req->identity;

    if (!id)
        return;
    if (!req->expelled)
        LIST_REMOVE(req, same_sender);
    req->identity = NULL;
    req->expelled = false;
    http_identity_unref(id);
}

void http_req_set_identity(struct http_req *req, struct http_identity *id)
{
    if (req->identity == id)
        return;
    http_req_forget_identity(req);
    req->identity = id;
    id->n_refs++;
    LIST_INSERT_HEAD(&id->requests, req, same_sender);
}

bool http_req_count_connection(struct http_req *req, _Atomic unsigned *counter, unsigned max)
{
    struct http_conn *c = req->conn;

    if (!c || c->counter == counter)
        return true;
    if (atomic_fetch_add(counter, 1) >= max) {
        atomic_fetch_sub(counter, 1);
        if (req->state == REQ_ARRIVING)
            req->msg.keep_alive = false; // its body is still read
        else
            req->close = c->deaf = true;
        return false;
    }
    http_conn_uncount(c);
    c->counter = counter;
    return true;
}

void http_identity_expel(struct http_identity *id)
{
    struct http_req *req;

    id->n_refs++; // closing may free the last request
    while ((req = LIST_FIRST(&id->requests))) {
        LIST_REMOVE(req, same_sender);
        req->expelled = true;
        req->admitted = false; // one that is arriving is checked again
        if (req->conn && req->state == REQ_PENDING && req->gone)
            http_conn_close(req->conn);
    }
    http_identity_unref(id);
}

void http_req_admit(struct http_req *req)
{
    struct fault f;

    assert(req->state == REQ_PENDING && req->route);
    req->handled = true;
    if (req->server->conf.begin)
        req->server->conf.begin(req->server->conf.app, req);
    if (req->msg.drop_body && req->route->verb != HTTP_GET)
        http_reply_err(req,
                       QE_BUSY); // refused at its head, accepted now: the keys have changed
    else if (req->query.len > 0 && check_query(req, &f) != 0)
        http_reply_fault(req, &f);
    else
        req->route->handle(req);
}

bool http_req_has_hung_up(const struct http_req *req)
{
    char next;

    if (!req->conn)
        return true;
    if (req->conn->tls) { // the bytes in the socket may be only a close alert
        struct pollfd p = {.fd = req->conn->fd, .events = POLLRDHUP};
        return poll(&p, 1, 0) > 0;
    }
    ssize_t n = recv(req->conn->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// "/path?query", or the absolute form that proxies send; "*" is kept.
void http_req_split_target(struct http_req *req)
{
    span target = http_msg_target(&req->msg);
    static const span schemes[] = {{"http://", 7}, {"https://", 8}};

    for (unsigned i = 0; i < countof(schemes); i++) {
        if (target.len > 0 && target.ptr[0] != '/' && str_starts(target, schemes[i])) {
            const char *host = target.ptr + schemes[i].len, *end = target.ptr + target.len;
            const char *slash = memchr(host, '/', (size_t)(end - host));
            target = slash ? (span){slash, (size_t)(end - slash)} : SPAN("/");
            break;
        }
    }
    const char *hash = target.len ? memchr(target.ptr, '#', target.len) : NULL;
    if (hash)
        target.len = (size_t)(hash - target.ptr);
    const char *mark = target.len ? memchr(target.ptr, '?', target.len) : NULL;
    req->path = target;
    req->query = SPAN_NONE;
    if (mark) {
        req->path.len = (size_t)(mark - target.ptr);
        req->query = (span){mark + 1, target.len - req->path.len - 1};
    }
}

span http_req_header(const struct http_req *req, span name)
{
    span key, value;

    for (size_t at = 0; http_msg_next_header(&req->msg, &at, &key, &value);)
        if (str_eq_nocase(key, name))
            return value;
    return SPAN_NONE;
}

bool http_req_next_header(const struct http_req *req, size_t *at, span *name, span *value)
{
    return http_msg_next_header(&req->msg, at, name, value);
}

static bool is_sane_id(span id)
{
    if (id.len == 0 || id.len > MAX_REQUEST_ID)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && !strchr("-_.:/+=@", c))
            return false;
    }
    return true;
}

span http_req_id(struct http_req *req)
{
    span sent = http_req_has(req, RARE_REQUEST_ID) ? http_req_header(req, SPAN("x-request-id"))
                                                   : SPAN_NONE;
    struct buf text = {0};
    uint8_t id[16];

    if (req->id.ptr || is_sane_id(sent)) {
        req->id = req->id.ptr ? req->id : sent;
        return req->id;
    }
    id_uuid7(id);
    buf_put_uuid(&text, id);
    req->id = arena_copy(&req->arena, buf_span(&text));
    buf_free(&text);
    return req->id;
}

void http_req_note_db(struct http_req *req, uint64_t us) { req->db_us = us; }

// Decodes into the arena; false and SPAN_NONE on a malformed escape.
static bool http_req_decode(struct http_req *req, span raw, bool plus_is_space, span *value)
{
    struct buf text = {0};

    *value = SPAN_NONE;
    if (raw.len == 0 ||
        (!memchr(raw.ptr, '%', raw.len) && !(plus_is_space && memchr(raw.ptr, '+', raw.len)))) {
        *value = raw;
        return true;
    }
    bool ok = str_percent_decode(raw, plus_is_space, &text) && !text.failed;
    if (ok)
        *value = arena_copy(&req->arena, buf_span(&text));
    buf_free(&text);
    return ok;
}

bool http_req_param(struct http_req *req, unsigned i, span *value)
{
    assert(i < HTTP_MAX_PARAMS);
    return http_req_decode(req, req->params[i], false, value) && str_is_utf8(*value);
}

// The next name=value of the query, the name decoded, the value raw; false: no more.
static bool next_parameter(struct http_req *req, span *rest, span *name, span *raw)
{
    span pair;

    if (!str_split(rest, '&', &pair))
        return false;
    const char *sign = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
    span key = {pair.ptr, sign ? (size_t)(sign - pair.ptr) : pair.len};
    *raw = sign ? (span){sign + 1, pair.len - key.len - 1} : SPAN_NONE;
    if (!http_req_decode(req, key, true, name))
        *name = key;
    return true;
}

// Only one of the two would be read.
static bool is_repeated(struct http_req *req, span rest, span name)
{
    span other, raw;

    while (next_parameter(req, &rest, &other, &raw))
        if (span_eq(other, name))
            return true;
    return false;
}

static int check_query(struct http_req *req, struct fault *f)
{
    const struct known_names known = {.texts = req->route->query};
    span rest = req->query, name, raw;

    while (next_parameter(req, &rest, &name, &raw)) {
        if (name.len == 0 && raw.len == 0)
            continue; // "?" or "&&"
        int rc = known_check(name, &known, http_route_rule(req->route), "query parameter", f);
        if (rc != 0)
            return rc;
        if (req->route->unknown != UNKNOWN_IGNORED && is_repeated(req, rest, name))
            return fault_set(f, QE_BAD_PARAM, "query parameter \"%.*s\" is given twice",
                             (int)(name.len < 80 ? name.len : 80), name.ptr);
        if (raw.len == 0 && req->route->unknown == UNKNOWN_OR_EMPTY_REFUSED)
            return fault_set(f, QE_BAD_PARAM, "query parameter \"%.*s\" is empty",
                             (int)(name.len < 80 ? name.len : 80), name.ptr);
    }
    return 0;
}

span http_req_query(struct http_req *req, span name)
{
    span rest = req->query, plain, raw;

    while (next_parameter(req, &rest, &plain, &raw)) {
        if (!span_eq(plain, name))
            continue;
        span value = raw;
        if (!http_req_decode(req, raw, true, &value))
            value = raw;
        return value.len > 0 ? value : SPAN_NONE;
    }
    return SPAN_NONE;
}

int64_t http_req_query_int(struct http_req *req, span name, int64_t fallback)
{
    int64_t v;

    return str_leading_i64(http_req_query(req, name), &v) ? v : fallback;
}

bool http_req_query_bool(struct http_req *req, span name, bool fallback)
{
    span text = http_req_query(req, name);

    if (text.len == 0)
        return fallback;
    return span_eq(text, SPAN("true")) || span_eq(text, SPAN("1"));
}

void http_req_on_gone(struct http_req *req, void (*gone)(struct http_req *req, void *ctx),
                      void *ctx)
{
    assert(req->state == REQ_PENDING);
    req->gone = gone;
    req->gone_ctx = ctx;
    if (!req->conn && !req->late) {
        req->late = true;
        STAILQ_INSERT_TAIL(&req->server->late, req, link);
        http_server_wake(req->server);
    } else if (req->conn && req->conn->eof) {
        req->conn->gone = true;
        http_conn_touch(req->conn);
    }
}
