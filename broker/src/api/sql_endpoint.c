// sql_endpoint.c: a request as one JSON object into SQL, rows out as the answer.
#include "api/sql_endpoint.h"

#include "api/api_int.h"
#include "api/json_rows.h"
#include "api/permission.h"
#include "auth/access.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "pg/params.h"
#include "pg/reply.h"
#include "json/write.h"

// In the request's arena.
struct report_call {
    struct http_req *req;
    const struct sql_endpoint *report;
    struct custom_op op;
    span queue; // parameter "queue"; SPAN_NONE: it has none
    span body;  // the object; SPAN_NONE: none
    span args;
    bool sees_encrypted;
};

static int put_query(struct report_call *c, struct buf *out);
static int put_path(struct report_call *c, struct buf *out);
static int put_body(struct report_call *c, struct body *b, struct buf *out);
static void put_allowed(struct report_call *c, struct buf *out);
static void check_target(struct report_call *c);
static void report_start(void *ctx, span queue);
static void on_reported(struct custom_op *op, int status, const struct pg_reply *reply);
static int put_answer(struct report_call *c, const struct pg_reply *reply, struct buf *out);

void sql_endpoint_handle(struct http_req *req)
{
    struct report_call *c = arena_new(http_req_arena(req), struct report_call);
    struct body b = body_open(req, "");
    struct buf args = {0};

    c->req = req;
    c->report = container_of_const(http_req_route(req), struct sql_endpoint, route);
    c->op.statement = c->report->statement;
    c->op.done = on_reported;

    buf_putc(&args, '{');
    if (put_query(c, &args) == 0 && put_path(c, &args) == 0) {
        if (put_body(c, &b, &args) == 0) {
            put_allowed(c, &args);
            buf_put_lit(&args, "\"\":\"\"}"); // takes the last comma; it is never read
            c->args = arena_copy(http_req_arena(req), buf_span(&args));
            check_target(c);
        } else {
            http_reply_fault(req, &b.fault);
        }
    }
    buf_free(&args);
}

// Lists show only queues that the sender may read. No parameter of a request has this name.
static void put_allowed(struct report_call *c, struct buf *out)
{
    const struct access_rules *rules = access_rules_of(c->req);

    if (!rules || c->report->route.target != TARGET_LIST)
        return;
    buf_put_lit(out, "\"allowed\":");
    access_rules_put_patterns(rules, MAY_READ, out);
    buf_putc(out, ',');
}

// The id in the path or body, for TARGET_PARTITION. One that is no UUID is unknown.
static bool find_partition(struct report_call *c, uint8_t id[16])
{
    struct arena *arena = http_req_arena(c->req);
    span text = SPAN_NONE, key;

    if (str_starts(span_of(c->report->route.path), SPAN("/api/v1/messages/:partitionId")) ||
        str_starts(span_of(c->report->route.path), SPAN("/api/v1/traces/:partitionId"))) {
        if (!http_req_param(c->req, 0, &text))
            text = SPAN_NONE;
    } else if (c->body.ptr) {
        struct js j = js_read(c->body);
        js_enter_object(&j);
        while (js_next_key(&j, &key)) {
            span raw = js_skip(&j);
            if (js_key_is(key, SPAN("partitionId")))
                text = js_type_of(raw) == JS_STRING ? js_text(raw, arena) : SPAN_NONE;
        }
    }
    return id_parse_uuid(text, id);
}

// A member that is not a string is refused by SQL; until then it may mean any group.
static span group_of(const struct report_call *c)
{
    enum sql_endpoint_group kind = c->report->group;
    span raw = SPAN_NONE, key;

    if (kind == ENDPOINT_NO_GROUP)
        return SPAN_NONE;
    if (kind == ENDPOINT_ALL_GROUPS || !c->body.ptr)
        return kind == ENDPOINT_GROUP_OR_QUEUE_MODE ? API_QUEUE_MODE : ACCESS_ALL_GROUPS;
    struct js j = js_read(c->body);
    js_enter_object(&j);
    while (js_next_key(&j, &key)) { // the last member of a name counts, as in PostgreSQL
        span value = js_skip(&j);
        if (js_key_is(key, SPAN("consumerGroup")))
            raw = value;
    }
    span group =
        js_type_of(raw) == JS_STRING ? js_text(raw, http_req_arena(c->req)) : SPAN_NONE;
    if (group.len > 0)
        return group;
    bool is_none = group.ptr || js_type_of(raw) == JS_NONE || js_type_of(raw) == JS_NULL;
    return kind == ENDPOINT_GROUP_OR_QUEUE_MODE && is_none ? API_QUEUE_MODE : ACCESS_ALL_GROUPS;
}

// Checks that need the body of the request. Ends in report_start(), or in an answer.
static void check_target(struct report_call *c)
{
    uint8_t *id = arena_alloc(http_req_arena(c->req), 16);
    enum http_target target = c->report->route.target;

    if (target == TARGET_BODY && !permission_check_body(c->req, c->body, group_of(c)))
        return;
    if (target == TARGET_PARTITION && access_rules_of(c->req)) {
        if (!find_partition(c, id))
            memset(id, 0, 16); // no partition has it: the answer is that of an unknown one
        permission_check_partitions(
            c->req, c->report->route.need,
            &(struct permission_ids){.first = id, .stride = 16, .n = 1, .group = group_of(c)},
            report_start, c);
    } else {
        report_start(c, c->queue.ptr ? c->queue : http_req_query(c->req, SPAN("queue")));
    }
}

static void report_start(void *ctx, span queue)
{
    struct report_call *c = ctx;
    struct api *api = http_req_app(c->req);

    c->sees_encrypted = permission_sees_encrypted(c->req, queue);
    pg_param_text(&c->op.params, c->args);
    broker_custom(api->broker, &c->op);
}

static int put_field(struct report_call *c, struct buf *out, span name, span value)
{
    if (memchr(value.ptr, '\0', value.len) || !str_is_utf8(value)) {
        http_reply_errf(c->req, QE_BAD_PARAM, "%.*s must be UTF-8 text without NUL",
                        (int)name.len, name.ptr);
        return QE_BAD_PARAM;
    }
    js_put_text(out, name);
    buf_putc(out, ':');
    js_put_text(out, value);
    buf_putc(out, ',');
    return 0;
}

static int put_query(struct report_call *c, struct buf *out)
{
    for (const char *const *name = c->report->route.query; name && *name; name++) {
        span value = http_req_query(c->req, span_of(*name));
        if (value.len > 0 && put_field(c, out, span_of(*name), value) != 0)
            return QE_BAD_PARAM;
    }
    return 0;
}

// Behind the query: in an object the last one of a name counts.
static int put_path(struct report_call *c, struct buf *out)
{
    span rest = span_of(c->report->route.path), segment;

    for (unsigned i = 0; str_split(&rest, '/', &segment);) {
        if (segment.len == 0 || segment.ptr[0] != ':')
            continue;
        span name = {segment.ptr + 1, segment.len - 1}, value;
        if (!http_req_param(c->req, i++, &value)) {
            http_reply_errf(c->req, QE_BAD_PARAM, "%.*s in the path is malformed",
                            (int)name.len, name.ptr);
            return QE_BAD_PARAM;
        }
        if (span_eq(name, SPAN("queue")))
            c->queue = value;
        if (put_field(c, out, name, value) != 0)
            return QE_BAD_PARAM;
    }
    return 0;
}

// Where a body may be missing, clients send nothing, {}, [] or null.
static bool is_no_body(enum js_type type, span raw)
{
    return type == JS_NONE || type == JS_NULL ||
           (type == JS_ARRAY && str_trim((span){raw.ptr + 1, raw.len - 2}).len == 0);
}

static void check_members(struct report_call *c, struct body *b, span object)
{
    const struct known_names known = {.texts = c->report->members};
    struct js j = js_read(object);
    span key;

    js_enter_object(&j);
    while (b->j.rc == 0 && js_next_key(&j, &key)) {
        body_check_member(b, key, &known);
        js_skip(&j);
    }
}

static int put_body(struct report_call *c, struct body *b, struct buf *out)
{
    enum sql_endpoint_body kind = c->report->body;

    bool ignores =
        c->report->route.unknown == UNKNOWN_IGNORED || c->report->route.verb == HTTP_GET;
    if (kind == ENDPOINT_NO_BODY && ignores)
        return 0;

    enum js_type type = js_peek(&b->j);
    bool empty = type == JS_NONE && b->j.pos == b->j.end;
    bool may = kind != ENDPOINT_BODY;
    span raw = empty && may ? SPAN("{}") : js_skip(&b->j);
    if (b->j.rc == 0 && may && is_no_body(type, raw))
        raw = SPAN("{}");
    else if (type != JS_OBJECT)
        body_bad(b, "the body must be a JSON object");
    else if (b->j.rc == 0)
        check_members(c, b, raw);
    if (kind != ENDPOINT_NO_BODY) {
        c->body = raw;
        buf_put_lit(out, "\"body\":");
        buf_put(out, raw);
        buf_putc(out, ',');
    }
    return empty && b->j.rc == 0 ? 0 : body_finish(b);
}

bool sql_endpoint_next_step(struct broker *b, const struct pg_reply *reply,
                            struct pg_params *params)
{
    struct buf args = {0};

    if (pg_reply_rows(reply) == 0 || pg_reply_i32(reply, 0, ANSWER_COL_STATUS) != 0)
        return false;
    buf_put(&args, pg_reply_bytes(reply, 0, ANSWER_COL_PIECE));
    if (!pg_reply_is_null(reply, 0, ANSWER_COL_PAYLOAD) && args.len > 0) {
        args.len--; // its brace
        buf_put_lit(&args, ",\"sealed\":");
        if (!broker_seal(b, &args, pg_reply_bytes(reply, 0, ANSWER_COL_PAYLOAD)))
            buf_put(&args, broker_must_seal(b) ? SPAN("false") : SPAN("null"));
        buf_putc(&args, '}');
    }
    pg_params_reset(params);
    pg_param_text(params, buf_span(&args));
    buf_free(&args);
    return true;
}

static void on_reported(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct report_call *c = container_of(op, struct report_call, op);
    struct api *api = http_req_app(c->req);
    struct buf out = {0};

    if (status == 0 && sql_endpoint_next_step(api->broker, reply, &op->params)) {
        broker_custom(api->broker, op);
        return;
    }
    pg_params_free(&op->params);
    http_req_note_db(c->req, clock_mono_us() - op->op.since_us);
    if (status == 0)
        status = put_answer(c, reply, &out);
    int http_status = status == 0 ? pg_reply_i32(reply, 0, ANSWER_COL_STATUS) : 0;
    if (status == 0 && (http_status < 200 || http_status > 599))
        status = QE_PG_SHAPE;
    if (status != 0) {
        buf_free(&out);
        api_reply_failed(c->req, status, &op->op.why);
        return;
    }
    if (c->report->changes_queue && http_status < 300)
        broker_queue_changed(api->broker, c->queue);
    if (c->report->changes_times && http_status < 300)
        broker_times_changed(api->broker);
    if (http_status == 429)
        http_reply_header(c->req, SPAN("Retry-After"), SPAN("1"));
    http_reply_json(c->req, http_status, &out);
}

static void put_piece(struct report_call *c, const struct pg_reply *reply, unsigned row,
                      struct buf *out)
{
    buf_put(out, pg_reply_bytes(reply, row, ANSWER_COL_PIECE));
    if (pg_reply_is_null(reply, row, ANSWER_COL_PAYLOAD))
        return;
    span payload = pg_reply_bytes(reply, row, ANSWER_COL_PAYLOAD);
    struct api *api = http_req_app(c->req);
    if (pg_reply_bool(reply, row, ANSWER_COL_SEALED) && c->sees_encrypted)
        broker_unseal(api->broker, out, payload, NULL);
    else
        buf_put(out, payload);
}

static int put_answer(struct report_call *c, const struct pg_reply *reply, struct buf *out)
{
    unsigned cols = pg_reply_cols(reply);
    struct json_rows shape = {0};
    bool listing = false; // the row before was put by the shape

    if (pg_reply_rows(reply) == 0 || (cols != ANSWER_COL_SEALED + 1 && cols <= ROWS_COL_REST))
        return QE_PG_SHAPE;
    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        put_piece(c, reply, row, out);
        if (cols <= ROWS_COL_REST)
            continue;
        if (!pg_reply_is_null(reply, row, ROWS_COL_SHAPE) &&
            json_rows_read(&shape, pg_reply_bytes(reply, row, ROWS_COL_SHAPE), reply,
                           ROWS_COL_REST) != 0)
            return QE_PG_SHAPE;
        bool is_value = !pg_reply_is_null(reply, row, ROWS_COL_REST);
        if (is_value) {
            if (listing && pg_reply_is_null(reply, row, ANSWER_COL_PIECE))
                buf_putc(out, ',');
            json_rows_put(&shape, reply, row, out);
        }
        listing = is_value;
    }
    return 0;
}
