// API keys.
//
//      POST /api/v1/keys          {"name", "role" or "allow", "limits", "expiresInSeconds"}:
//      creates one, shown once GET /api/v1/keys           all of them, without their secrets
//      DELETE /api/v1/keys/:key   revokes one, by id or name
#include "api/api_int.h"
#include "api/sql_endpoint.h"
#include "auth/api_key.h"
#include "base/log.h"
#include "base/str.h"
#include "db/sql.gen.h"
#include "http/prom_text.h"
#include "pg/params.h"
#include "pg/reply.h"
#include "json/write.h"

enum { MAX_SECONDS = 10 * 366 * 86400, MAX_NAME = 63 };

// In the request's arena.
struct key_call {
    struct http_req *req;
    struct custom_op op;
    char text[API_KEY_TEXT + 1]; // the new key
    unsigned epoch;
    int status;
    struct buf answer;
};

struct new_key {
    span name, role, rules, limits; // SPAN_NONE: not given
    int64_t seconds;                // 0: it never expires
};

// Steps of a creation, in order; a revocation has one.
static void key_create(struct http_req *req);
static int read_new_key(struct body *b, struct new_key *k);
static void on_created(struct custom_op *op, int status, const struct pg_reply *reply);
static void on_keys_read(struct custom_op *op, int status, const struct pg_reply *reply);
static void key_revoke(struct http_req *req);
static void on_revoked(struct custom_op *op, int status, const struct pg_reply *reply);

static bool is_key_name(span s)
{
    unsigned n_hex = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool digit = c >= '0' && c <= '9';
        if (!letter && !digit && (i == 0 || (c != '.' && c != '_' && c != '-')))
            return false;
        n_hex += digit || (c >= 'a' && c <= 'f');
    }
    // A name that looks like an id could be taken for one.
    return s.len > 0 && s.len <= MAX_NAME && !(s.len == API_KEY_ID && n_hex == s.len);
}

static void check_rules(struct body *b, span text)
{
    struct access_rules *rules;
    struct fault f;

    if (access_rules_parse(text, &rules, &f) != 0)
        body_bad(b, "allow: %s", f.text);
    else
        access_rules_unref(rules);
}

static void check_limits(struct body *b, span text)
{
    struct limits l;
    struct fault f;

    if (limits_parse(text, &l, &f) != 0)
        body_bad(b, "limits: %s", f.text);
}

static int read_new_key(struct body *b, struct new_key *k)
{
    enum { NAME, ROLE, ALLOW, EXPIRES, LIMITS, FIELDS };
    static const span names[FIELDS] = {
        {"name", 4}, {"role", 4}, {"allow", 5}, {"expiresInSeconds", 16}, {"limits", 6}};
    span raw[FIELDS];

    body_read_fields(b, names, FIELDS, raw);
    k->name = body_text(b, raw[NAME], "name");
    k->role = body_text(b, raw[ROLE], "role");
    k->limits = body_text(b, raw[LIMITS], "limits");
    k->seconds = 0;
    if (b->j.rc == 0 && !is_key_name(k->name))
        body_bad(b,
                 "name must have 1 to %d letters, digits, '.', '_' or '-', start with a "
                 "letter or digit, and not look like an id",
                 MAX_NAME);
    k->rules = body_text(b, raw[ALLOW], "allow");
    if (b->j.rc == 0 && !k->role.ptr == !k->rules.ptr)
        body_bad(b, "either role or allow must be given");
    if (b->j.rc == 0 && k->role.ptr && !span_eq(k->role, SPAN("read-only")) &&
        !span_eq(k->role, SPAN("read-write")) && !span_eq(k->role, SPAN("admin")))
        body_bad(b, "role must be read-only, read-write or admin");
    if (b->j.rc == 0 && k->rules.ptr)
        check_rules(b, k->rules);
    if (b->j.rc == 0 && k->limits.ptr)
        check_limits(b, k->limits);
    bool has_expiry = raw[EXPIRES].len > 0 && js_type_of(raw[EXPIRES]) != JS_NULL;
    if (b->j.rc == 0 && has_expiry &&
        (!js_int(raw[EXPIRES], &k->seconds) || k->seconds < 1 || k->seconds > MAX_SECONDS))
        body_bad(b, "expiresInSeconds must be a whole number from 1 to %d", MAX_SECONDS);
    return body_finish(b);
}

static void put_key_text_or_null(struct pg_params *params, span text)
{
    if (text.ptr)
        pg_param_text(params, text);
    else
        pg_param_null(params, PG_TEXT);
}

static void key_create(struct http_req *req)
{
    struct api *api = http_req_app(req);
    struct key_call *c = arena_new(http_req_arena(req), struct key_call);
    struct body b = body_open(req, "");
    uint8_t hash[API_KEY_HASH];
    span subject = http_req_subject(req);
    struct new_key k;

    if (read_new_key(&b, &k) != 0) {
        http_reply_fault(req, &b.fault);
        return;
    }
    if (!auth_is_protected(api->shared->auth)) {
        http_reply_errf(req, QE_CONFLICT,
                        "this server requires no keys: set QUEEN_ADMIN_KEY_FILE or "
                        "JWT_ENABLED before creating keys");
        return;
    }
    c->req = req;
    c->op.done = on_created;
    c->op.statement = &pg_stmt_create_key;
    api_key_make(c->text);
    api_key_hash(span_of(c->text), hash);
    pg_param_text(&c->op.params, api_key_id(span_of(c->text)));
    pg_param_text(&c->op.params, k.name);
    pg_param_bytea(&c->op.params, (span){(const char *)hash, sizeof hash});
    put_key_text_or_null(&c->op.params, k.role);
    put_key_text_or_null(&c->op.params, k.rules);
    if (k.seconds > 0)
        pg_param_i64(&c->op.params, k.seconds);
    else
        pg_param_null(&c->op.params, PG_INT8);
    put_key_text_or_null(&c->op.params, subject);
    put_key_text_or_null(&c->op.params, k.limits);
    broker_custom(api->broker, &c->op);
}

// Answers of both changes: status and JSON, which must be an object.
static int take_answer(struct key_call *c, int status, const struct pg_reply *reply)
{
    pg_params_free(&c->op.params);
    if (status != 0)
        return status;
    if (pg_reply_rows(reply) != 1)
        return QE_PG_SHAPE;
    c->status = pg_reply_i32(reply, 0, CREATE_KEY_COL_STATUS);
    span json = pg_reply_bytes(reply, 0, CREATE_KEY_COL_ANSWER);
    if (c->status < 200 || c->status > 499 || json.len < 2 || json.ptr[0] != '{')
        return QE_PG_SHAPE;
    if (c->status == 201) {
        buf_printf(&c->answer, "{\"key\":\"%s\",", c->text);
        buf_put(&c->answer, (span){json.ptr + 1, json.len - 1});
    } else {
        buf_put(&c->answer, json);
    }
    return 0;
}

// Reads the keys before the answer, so that the new one can be used at once here.
static void on_created(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct key_call *c = container_of(op, struct key_call, op);
    struct api *api = http_req_app(c->req);
    struct key_table *keys = auth_keys(api->shared->auth);

    status = take_answer(c, status, reply);
    if (status != 0) {
        buf_free(&c->answer);
        api_reply_failed(c->req, status, &op->op.why);
        return;
    }
    if (c->status != 201) {
        http_reply_json(c->req, c->status, &c->answer);
        return;
    }
    key_table_changed(keys);
    c->epoch = key_table_epoch(keys);
    c->op = (struct custom_op){.done = on_keys_read, .statement = &pg_stmt_read_keys};
    keys_put_version(keys, &c->op.params);
    broker_custom(api->broker, &c->op);
}

// If this fails the key is stored nevertheless, and this server reads it a little later.
static void on_keys_read(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct key_call *c = container_of(op, struct key_call, op);
    struct api *api = http_req_app(c->req);

    pg_params_free(&op->params);
    if (status == 0)
        status = keys_read(auth_keys(api->shared->auth), reply, c->epoch);
    if (status != 0)
        log_debug("keys.read_failed", "status=%s", err_name(status));
    broker_keys_changed(api->broker);
    http_reply_header(c->req, SPAN("Cache-Control"), SPAN("no-store"));
    http_reply_json(c->req, c->status, &c->answer);
}

// A body that was meant as a filter. Answers the request if there is one.
static bool has_no_members(struct http_req *req)
{
    struct body b = body_open(req, "");

    if (str_trim(http_req_body(req)).len == 0)
        return true;
    body_read_fields(&b, NULL, 0, NULL);
    if (body_finish(&b) == 0)
        return true;
    http_reply_fault(req, &b.fault);
    return false;
}

static void key_revoke(struct http_req *req)
{
    struct api *api = http_req_app(req);
    struct key_call *c = arena_new(http_req_arena(req), struct key_call);
    span key;

    if (!http_req_param(req, 0, &key) || !api_is_name(key)) {
        http_reply_errf(req, QE_BAD_PARAM, "key in the path is malformed");
        return;
    }
    if (!has_no_members(req))
        return;
    c->req = req;
    c->op.done = on_revoked;
    c->op.statement = &pg_stmt_revoke_key;
    pg_param_text(&c->op.params, key);
    broker_custom(api->broker, &c->op);
}

static void on_revoked(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct key_call *c = container_of(op, struct key_call, op);
    struct api *api = http_req_app(c->req);

    status = take_answer(c, status, reply);
    if (status != 0) {
        buf_free(&c->answer);
        api_reply_failed(c->req, status, &op->op.why);
        return;
    }
    if (!pg_reply_is_null(reply, 0, REVOKE_KEY_COL_ID)) {
        key_table_drop(auth_keys(api->shared->auth),
                       pg_reply_bytes(reply, 0, REVOKE_KEY_COL_ID));
        broker_keys_changed(api->broker);
    }
    http_reply_json(c->req, c->status, &c->answer);
}

const struct http_route api_create_key = {
    .verb = HTTP_POST,
    .path = "/api/v1/keys",
    .access = ACCESS_ADMIN,
    .op = "create_key",
    .handle = key_create,
};
const struct http_route api_revoke_key = {
    .verb = HTTP_DELETE,
    .path = "/api/v1/keys/:key",
    .access = ACCESS_ADMIN,
    .op = "revoke_key",
    .handle = key_revoke,
    .unknown = UNKNOWN_OR_EMPTY_REFUSED,
};
const struct sql_endpoint api_list_keys = {
    .route = {.verb = HTTP_GET,
              .path = "/api/v1/keys",
              .access = ACCESS_ADMIN,
              .op = "list_keys",
              .handle = sql_endpoint_handle},
    .statement = &pg_stmt_list_keys,
};

void auth_expose(const struct api_shared *s, struct buf *out)
{
    uint64_t unauthenticated = 0, forbidden = 0;
    struct key_list *l = key_table_current(auth_keys(s->auth));

    for (unsigned i = 0; i < s->n_workers; i++) {
        unauthenticated += counter_get(&s->workers[i]->guard_stats.unauthenticated);
        forbidden += counter_get(&s->workers[i]->guard_stats.forbidden);
    }
    prom_single(out, "queen_api_keys", "gauge", "API keys that this server knows",
                key_list_count(l));
    prom_family(
        out, "queen_requests_denied_total", "counter",
        "requests without valid token or key, and requests that theirs does not permit");
    prom_u64(out, "queen_requests_denied_total", "reason=\"unauthenticated\"", unauthenticated);
    prom_u64(out, "queen_requests_denied_total", "reason=\"forbidden\"", forbidden);
    key_list_unref(l);
    static const char *const kinds[LIMIT_KINDS] = {[LIMIT_REQUESTS] = "limit=\"requests\"",
                                                   [LIMIT_BYTES] = "limit=\"bytes\"",
                                                   [LIMIT_CONNECTIONS] =
                                                       "limit=\"connections\"",
                                                   [LIMIT_STORED] = "limit=\"stored\""};
    prom_family(out, "queen_requests_limited_total", "counter",
                "requests that exceeded a limit of their sender");
    for (unsigned kind = LIMIT_REQUESTS; kind < LIMIT_KINDS; kind++) {
        uint64_t n = 0;
        for (unsigned i = 0; i < s->n_workers; i++)
            n += counter_get(&s->workers[i]->guard_stats.limited[kind]);
        prom_u64(out, "queen_requests_limited_total", kinds[kind], n);
    }
}
