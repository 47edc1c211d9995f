// fake.c: the HTTP and broker functions that the endpoints call.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "pg/reply.h"
#include "json/scan.h"

struct http_req {
    struct arena arena;
    span body, query, params[HTTP_MAX_PARAMS];
    const struct http_route *route;
    enum http_verb verb;
    bool gone, made;
    unsigned rare, n_headers;
    const char *headers[8][2];
    void (*on_gone)(struct http_req *req, void *ctx);
    void *on_gone_ctx;
};

struct fake_reply fake_reply;
struct fake_given fake_given;
span fake_subject;
struct api fake_api;
struct api_shared fake_shared;
struct broker_stats fake_stats;
struct pg_pool_stats fake_pg_stats;
bool fake_is_up = true, fake_trusts;

static struct http_req request;
static struct api *workers[] = {&fake_api};
static char *body_copy; // exactly as long as the body, so that ASan sees an overrun

static void drop_request(void)
{
    if (request.made)
        arena_deinit(&request.arena);
    free(body_copy);
    body_copy = NULL;
    request = (struct http_req){0};
    memset(&fake_reply, 0, sizeof fake_reply);
    memset(&fake_given, 0, sizeof fake_given);
}

struct http_req *fake_request_span(span body)
{
    drop_request();
    arena_init(&request.arena);
    request.made = true;
    request.verb = HTTP_POST;
    body_copy = malloc(body.len > 0 ? body.len : 1);
    if (body.len > 0)
        memcpy(body_copy, body.ptr, body.len);
    request.body = (span){body_copy, body.len};
    return &request;
}

struct http_req *fake_request(const char *body) { return fake_request_span(span_of(body)); }

struct http_req *fake_get(const char *query, const char *param0, const char *param1)
{
    fake_request_span(SPAN_NONE);
    request.verb = HTTP_GET;
    request.query = span_of(query);
    request.params[0] = span_of(param0);
    request.params[1] = span_of(param1);
    return &request;
}

struct http_req *fake_post(const char *param0, const char *body)
{
    fake_request(body);
    request.params[0] = span_of(param0);
    return &request;
}

void fake_set_verb(enum http_verb verb) { request.verb = verb; }
void fake_set_route(const struct http_route *route) { request.route = route; }

void fake_set_header(enum http_rare rare, const char *name, const char *value)
{
    assert_true(request.n_headers < countof(request.headers));
    request.rare |= rare;
    request.headers[request.n_headers][0] = name;
    request.headers[request.n_headers++][1] = value;
}

void fake_hang_up(void)
{
    request.gone = true;
    if (request.on_gone)
        request.on_gone(&request, request.on_gone_ctx);
}

int fake_setup(void **state)
{
    (void)state;
    memset(&fake_api, 0, sizeof fake_api);
    fake_shared.routes = http_routes_new(api_routes);
    struct fault f;
    if (auth_new(&fake_shared.auth, &(struct auth_conf){.admin_key_file = "", .rules_file = ""},
                 &f) != 0)
        return -1;
    fake_shared.workers = workers;
    fake_shared.n_workers = 1;
    fake_shared.ready = true;
    fake_shared.version = SPAN("1.2.3");
    fake_shared.server = SPAN("a \"name\"");
    fake_api.default_batch = 1;
    fake_api.default_timeout_ms = 30000;
    fake_api.default_subscription_mode = SPAN("all");
    api_init(&fake_api, &fake_shared);
    return 0;
}

int fake_teardown(void **state)
{
    (void)state;
    drop_request();
    api_deinit(&fake_api);
    struct http_routes *routes;
    memcpy(&routes, &fake_shared.routes, sizeof routes); // ours, const for everybody else
    http_routes_free(routes);
    auth_free(fake_shared.auth);
    return 0;
}

void fake_uuid(uint8_t id[16], uint8_t fill) { memset(id, fill, 16); }

// ---- http/req.h ----

struct arena *http_req_arena(struct http_req *req) { return &req->arena; }
uv_loop_t *http_req_loop(struct http_req *req) { return (void)req, uv_default_loop(); }
void *http_req_app(struct http_req *req) { return req ? &fake_api : NULL; }
enum http_verb http_req_verb(const struct http_req *req) { return req->verb; }
const struct http_route *http_req_route(const struct http_req *req)
{
    static const struct http_route any = {.unknown = UNKNOWN_IGNORED}; // most of ours are so

    return req->route ? req->route : &any;
}
span http_req_body(const struct http_req *req) { return req->body; }
span http_req_id(struct http_req *req) { return (void)req, SPAN("r-1"); }
span http_req_path(const struct http_req *req) { return (void)req, SPAN("/"); }
span http_req_query_text(const struct http_req *req) { return (void)req, SPAN_NONE; }
const uint8_t *http_req_ip(const struct http_req *req)
{
    static const uint8_t none[16];
    return (void)req, none;
}
bool http_req_has(const struct http_req *req, enum http_rare header)
{
    return (req->rare & header) != 0;
}
span http_req_header(const struct http_req *req, span name)
{
    for (unsigned i = 0; i < req->n_headers; i++)
        if (str_eq_nocase(span_of(req->headers[i][0]), name))
            return span_of(req->headers[i][1]);
    return SPAN_NONE;
}
bool http_req_next_header(const struct http_req *req, size_t *at, span *name, span *value)
{
    if (*at >= req->n_headers)
        return false;
    *name = span_of(req->headers[*at][0]);
    *value = span_of(req->headers[*at][1]);
    ++*at;
    return true;
}
void http_req_note_db(struct http_req *req, uint64_t us)
{
    (void)req;
    (void)us;
}
span http_req_subject(const struct http_req *req) { return (void)req, fake_subject; }
struct http_identity *http_req_identity(const struct http_req *req) { return (void)req, NULL; }
struct trace_span *http_req_trace(const struct http_req *req) { return (void)req, NULL; }
void http_req_set_trace(struct http_req *req, struct trace_span *trace)
{
    (void)req;
    (void)trace;
}
uint64_t http_req_started_us(const struct http_req *req) { return (void)req, 0; }
bool http_req_is_gone(const struct http_req *req) { return req->gone; }
bool http_req_has_hung_up(const struct http_req *req) { return http_req_is_gone(req); }

bool http_req_param(struct http_req *req, unsigned i, span *value)
{
    *value = req->params[i];
    return value->ptr != NULL && value->ptr[0] != '%'; // a malformed escape, for tests
}

span http_req_query(struct http_req *req, span name)
{
    span rest = req->query, pair;

    while (rest.ptr && str_split(&rest, '&', &pair)) {
        if (pair.len > name.len && str_starts(pair, name) && pair.ptr[name.len] == '=') {
            span v = {pair.ptr + name.len + 1, pair.len - name.len - 1};
            return v.len > 0 ? v : SPAN_NONE;
        }
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
    span v = http_req_query(req, name);
    return v.len == 0 ? fallback : span_eq(v, SPAN("true")) || span_eq(v, SPAN("1"));
}

void http_req_on_gone(struct http_req *req, void (*gone)(struct http_req *req, void *ctx),
                      void *ctx)
{
    req->on_gone = gone;
    req->on_gone_ctx = ctx;
}

static void answer(int status, span body)
{
    size_t n = body.len < sizeof fake_reply.text - 1 ? body.len : sizeof fake_reply.text - 1;

    fake_reply.times++;
    fake_reply.status = status;
    fake_reply.len = body.len;
    if (n > 0)
        memcpy(fake_reply.text, body.ptr, n);
    fake_reply.text[n] = '\0';
}

static void answer_json(int status, span body)
{
    struct js j = js_read(fake_trusts ? SPAN("0") : body);
    js_skip(&j);
    if (js_finish(&j) != 0)
        fail_msg("the answer is not JSON (%s at %zu): %.*s", j.why ? j.why : "", js_offset(&j),
                 (int)body.len, body.ptr);
    answer(status, body);
}

void http_reply_json(struct http_req *req, int status, struct buf *body)
{
    (void)req;
    assert_false(body->failed);
    answer_json(status, buf_span(body));
    buf_free(body);
}

void http_reply_json_span(struct http_req *req, int status, span body)
{
    (void)req;
    answer_json(status, body);
}

void http_reply_json_constant(struct http_req *req, int status, span body)
{
    http_reply_json_span(req, status, body);
}

void http_reply_text(struct http_req *req, int status, span content_type, struct buf *body)
{
    (void)req;
    snprintf(fake_reply.type, sizeof fake_reply.type, SPAN_FMT, SPAN_ARG(content_type));
    answer(status, buf_span(body));
    buf_free(body);
}

void http_reply_header(struct http_req *req, span name, span value)
{
    (void)req, (void)name, (void)value;
}

void http_reply_retry_after(struct http_req *req, unsigned seconds)
{
    (void)req, (void)seconds;
}

void http_reply_empty(struct http_req *req, int status)
{
    (void)req;
    answer(status, SPAN_NONE);
}

void http_reply_err(struct http_req *req, int code)
{
    (void)req;
    answer(err_http_status(code), span_of(err_text(code)));
}

void http_reply_fault(struct http_req *req, const struct fault *f)
{
    (void)req;
    answer(err_http_status(f->code), span_of(f->text));
}

void http_reply_errf(struct http_req *req, int code, const char *fmt, ...)
{
    char text[512];
    va_list args;

    (void)req;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    answer(err_http_status(code), span_of(text));
}

// ---- broker/broker.h ----

void broker_push(struct broker *b, struct push_op *op) { (void)b, fake_given.push = op; }
void broker_pop(struct broker *b, struct pop_op *op) { (void)b, fake_given.pop = op; }
void broker_pop_cancel(struct broker *b, struct pop_op *op)
{
    (void)b, fake_given.cancelled = op;
}
void broker_give_back(struct broker *b, const uint8_t lease[16])
{
    (void)b;
    fake_given.n_given_back++;
    memcpy(fake_given.given_back, lease, 16);
}
void broker_ack(struct broker *b, struct ack_op *op) { (void)b, fake_given.ack = op; }
void broker_transaction(struct broker *b, struct tx_op *op) { (void)b, fake_given.tx = op; }
void broker_cycle(struct broker *b, struct cycle_op *op) { (void)b, fake_given.cycle = op; }
void broker_renew(struct broker *b, struct renew_op *op) { (void)b, fake_given.renew = op; }
void broker_custom(struct broker *b, struct custom_op *op) { (void)b, fake_given.custom = op; }
void broker_times_changed(struct broker *b) { (void)b; }

void broker_queue_changed(struct broker *b, span queue) { (void)b, fake_given.changed = queue; }
void broker_keys_changed(struct broker *b) { (void)b; }
void keys_put_version(struct key_table *t, struct pg_params *params) { (void)t, (void)params; }
int keys_read(struct key_table *t, const struct pg_reply *reply, unsigned epoch)
{
    return (void)t, (void)reply, (void)epoch, 0;
}
const struct broker_stats *broker_stats(const struct broker *b) { return (void)b, &fake_stats; }
const struct pg_pool_stats *broker_pg_stats(const struct broker *b)
{
    return (void)b, &fake_pg_stats;
}
const uint8_t *broker_seal_key(span txid, const uint8_t *key, uint8_t room[16])
{
    (void)txid, (void)room;
    return key;
}

void broker_unseal(struct broker *b, struct buf *out, span sealed, const uint8_t *key)
{
    (void)key;
    (void)b;
    buf_put_lit(out, "[\"opened\",");
    buf_put(out, sealed);
    buf_putc(out, ']');
}
bool broker_must_seal(const struct broker *b)
{
    (void)b;
    return false;
}

bool broker_seal(struct broker *b, struct buf *out, span plain)
{
    (void)b;
    buf_put_lit(out, "[\"sealed\",");
    buf_put(out, plain);
    buf_putc(out, ']');
    return true;
}
bool broker_is_up(const struct broker *b) { return (void)b, fake_is_up; }
bool house_is_up(const struct house *h) { return (void)h, fake_is_up; }
const char *broker_pg_error(const struct broker *b) { return (void)b, ""; }

// ---- pg/reply.h ----

const char *pg_reply_sqlstate(const struct pg_reply *r) { return (void)r, ""; }
unsigned pg_reply_rows(const struct pg_reply *r) { return r->rows; }
const char *pg_reply_message(const struct pg_reply *r) { return r->message ? r->message : ""; }
const uint8_t *pg_reply_uuid(const struct pg_reply *r, unsigned row, unsigned col)
{
    (void)row;
    return r->uuid[col];
}
// Columns of a report: status, piece, payload, sealed, and of a list shape and values.
enum { FAKE_PIECE = 1, FAKE_SHAPE = 4 };
static const char *fake_cell(const struct pg_reply *r, unsigned row, unsigned col)
{
    return col < FAKE_SHAPE ? r->pieces[row][col - FAKE_PIECE]
                            : r->values[row][col - FAKE_SHAPE];
}
span pg_reply_bytes(const struct pg_reply *r, unsigned row, unsigned col)
{
    return span_of(r->pieces ? fake_cell(r, row, col) : r->options);
}
unsigned pg_reply_cols(const struct pg_reply *r)
{
    return r->values ? FAKE_SHAPE + FAKE_VALUES : r->pieces ? FAKE_SHAPE : 3;
}
bool pg_reply_is_null(const struct pg_reply *r, unsigned row, unsigned col)
{
    return r->pieces && !fake_cell(r, row, col);
}
bool pg_reply_has_json(const struct pg_reply *r, unsigned col)
{
    return (void)r, col > FAKE_SHAPE;
}
void pg_reply_put_json(const struct pg_reply *r, unsigned row, unsigned col, struct buf *out)
{
    const char *value = fake_cell(r, row, col);
    buf_put(out, value ? span_of(value) : SPAN("null"));
}
bool pg_reply_bool(const struct pg_reply *r, unsigned row, unsigned col)
{
    (void)row, (void)col;
    return r->sealed;
}
int32_t pg_reply_i32(const struct pg_reply *r, unsigned row, unsigned col)
{
    (void)row, (void)col;
    return r->status;
}

// system.c is linked, not tested here: tests/e2e/broker/test_maintenance.py does.
void broker_notify(struct broker *b, span queue) { (void)b, (void)queue; }
void broker_maintenance_changed(struct broker *b, unsigned flags) { (void)b, (void)flags; }
unsigned house_maintenance(const struct house *h) { return (void)h, 0; }
void house_buffer_stats(const struct house *h, struct buffer_stats *out)
{
    (void)h;
    *out = (struct buffer_stats){0};
}
