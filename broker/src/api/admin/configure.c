// POST /api/v1/configure: {"queue": ..., "namespace": ..., "task": ..., "options": {...}}
//
// Replaces the whole configuration.  The options are judged by
// broker/sql/admin/configure_queue.sql, which names the one it refuses.  Before the answer, all
// partitions get the options, in steps, and recurring messages of a queue that wants encryption
// are sealed: from then on nothing for it is in clear.
#include "api/api_int.h"
#include "api/permission.h"
#include "api/sql_endpoint.h"
#include "auth/rules.h"
#include "db/sql.gen.h"
#include "pg/params.h"
#include "pg/reply.h"
#include "json/write.h"

// In the request's arena.
struct configure {
    struct http_req *req;
    struct custom_op op;
    span queue, namespace_, task, options;
    struct buf answer;
    bool sealed;
};

// The options that broker/sql/admin/configure_queue.sql reads.
static const char *const option_names[] = {"leaseTime",
                                           "retryLimit",
                                           "retryDelay",
                                           "maxSize",
                                           "ttl",
                                           "deadLetterQueue",
                                           "dlqAfterMaxRetries",
                                           "priority",
                                           "delayedProcessing",
                                           "windowBuffer",
                                           "retentionSeconds",
                                           "completedRetentionSeconds",
                                           "retentionEnabled",
                                           "encryptionEnabled",
                                           "allowUnencrypted",
                                           "maxWaitTimeSeconds",
                                           "retryPolicy",
                                           "partitions",
                                           "maxDeliveries",
                                           "ordering",
                                           "settlement",
                                           "maxInFlight",
                                           "rateLimit",
                                           "rateBurst",
                                           "keyMaxInFlight",
                                           "keyRateLimit",
                                           "keyRateBurst",
                                           NULL};

static void configure_handle(struct http_req *req);
static int read_configure_body(struct configure *c, struct body *b);
static bool is_option(span key);
static void check_options(struct body *b, span raw);
static void on_configured(struct custom_op *op, int status, const struct pg_reply *reply);
static void write_answer(const struct configure *c, const struct pg_reply *reply,
                         struct buf *out);
static void spread(struct configure *c, const uint8_t queue_id[16]);
static void on_spread(struct custom_op *op, int status, const struct pg_reply *reply);
static void on_in_effect(struct configure *c);
static void seal_schedules(struct configure *c);
static void on_sealed(struct custom_op *op, int status, const struct pg_reply *reply);

static void configure_handle(struct http_req *req)
{
    struct api *api = http_req_app(req);
    struct configure *c = arena_new(http_req_arena(req), struct configure);
    c->req = req;

    struct body b = body_open(req, "");
    if (read_configure_body(c, &b) != 0) {
        http_reply_fault(req, &b.fault);
        return;
    }
    if (!permission_check(req, MAY_CONFIGURE, c->queue, ACCESS_ALL_GROUPS))
        return;
    c->op.statement = &pg_stmt_configure;
    c->op.done = on_configured;
    pg_param_text(&c->op.params, c->queue);
    pg_param_text(&c->op.params, c->namespace_);
    pg_param_text(&c->op.params, c->task);
    pg_param_text(&c->op.params, c->options);
    pg_param_bool(&c->op.params, permission_has(req, MAY_CONFIGURE_STORAGE, c->queue));
    broker_custom(api->broker, &c->op);
}

// The public contract: a label that is not a string counts as absent.
static span label(struct body *b, span raw, const char *name)
{
    span text = body_text_or_none(b, raw);

    if (!api_is_name(text))
        body_bad(b, "%s is longer than %d characters", name, API_NAME_CHARS);
    return text.ptr ? text : SPAN("");
}

static int read_configure_body(struct configure *c, struct body *b)
{
    enum { QUEUE, NAMESPACE, TASK, OPTIONS, FIELDS };
    static const span names[FIELDS] = {
        {"queue", 5}, {"namespace", 9}, {"task", 4}, {"options", 7}};
    static const struct known_names known = {.spans = names, .n_spans = FIELDS};
    span raw[FIELDS] = {SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE}, key;

    body_enter_object(b);
    while (js_next_key(&b->j, &key)) {
        unsigned i = body_field_of(key, names, FIELDS);
        if (i == FIELDS && is_option(key))
            body_bad(b, "member \"%.*s\" belongs inside \"options\"", (int)key.len, key.ptr);
        body_check_member(b, key, &known);
        span value = js_skip(&b->j);
        if (i < FIELDS)
            raw[i] = value;
    }
    if (js_type_of(raw[QUEUE]) != JS_STRING)
        body_bad(b, "queue must be a string");
    c->queue = js_text(raw[QUEUE], b->arena); // "" too: a test of the public clients sends it
    if (!api_is_name(c->queue))
        body_bad(b, "queue is longer than %d characters", API_NAME_CHARS);
    c->namespace_ = label(b, raw[NAMESPACE], "namespace");
    c->task = label(b, raw[TASK], "task");
    c->options = raw[OPTIONS];
    if (c->options.len == 0 || js_type_of(c->options) == JS_NULL)
        c->options = SPAN("{}");
    else if (js_type_of(c->options) != JS_OBJECT)
        body_bad(b, "options must be an object");
    else
        check_options(b, c->options);
    return body_finish(b);
}

static bool is_option(span key)
{
    for (const char *const *name = option_names; *name; name++)
        if (span_eq(key, span_of(*name)))
            return true;
    return false;
}

static void check_options(struct body *b, span raw)
{
    static const struct known_names known = {.texts = option_names};
    struct js j = js_read(raw);
    span key;

    js_enter_object(&j);
    while (b->j.rc == 0 && js_next_key(&j, &key)) {
        body_check_member(b, key, &known);
        js_skip(&j);
    }
}

static void on_configured(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct configure *c = container_of(op, struct configure, op);

    pg_params_reset(&op->params);
    api_note_db(c->req, &op->op);
    if (status == 0 && pg_reply_rows(reply) != 1)
        status = QE_PG_SHAPE;
    if (status != 0)
        pg_params_free(&op->params);
    if (status == QE_PG_DATA && reply && pg_reply_message(reply)[0] != '\0') {
        bool forbidden = strcmp(pg_reply_sqlstate(reply), "QN403") == 0;
        http_reply_errf(c->req, forbidden ? QE_FORBIDDEN : status, "%s",
                        pg_reply_message(reply));
        return;
    }
    if (status != 0) {
        api_reply_failed(c->req, status, &op->op.why);
        return;
    }
    write_answer(c, reply, &c->answer);
    c->sealed = pg_reply_bool(reply, 0, CONFIGURE_COL_SEALED);
    if (pg_reply_bool(reply, 0, CONFIGURE_COL_UNFINISHED))
        spread(c, pg_reply_uuid(reply, 0, CONFIGURE_COL_QUEUE_ID));
    else
        on_in_effect(c);
}

// Some partitions still have the old options.
static void spread(struct configure *c, const uint8_t queue_id[16])
{
    struct api *api = http_req_app(c->req);
    struct buf args = {0};

    buf_put_lit(&args, "{\"queueId\":\"");
    buf_put_uuid(&args, queue_id);
    buf_put_lit(&args, "\"}");
    pg_param_text(&c->op.params, buf_span(&args));
    buf_free(&args);
    c->op.statement = &pg_stmt_spread_queue;
    c->op.done = on_spread;
    broker_custom(api->broker, &c->op);
}

static void on_spread(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct configure *c = container_of(op, struct configure, op);
    struct api *api = http_req_app(c->req);

    if (status == 0 && sql_endpoint_next_step(api->broker, reply, &op->params)) {
        broker_custom(api->broker, op);
        return;
    }
    pg_params_reset(&op->params);
    if (status == 0) {
        on_in_effect(c);
        return;
    }
    // The queue is configured.  The chores of the brokers finish the partitions.
    pg_params_free(&op->params);
    buf_free(&c->answer);
    broker_queue_changed(api->broker, c->queue);
    api_reply_failed(c->req, status, &op->op.why);
}

static void on_in_effect(struct configure *c)
{
    struct api *api = http_req_app(c->req);

    broker_queue_changed(api->broker, c->queue);
    if (c->sealed) {
        seal_schedules(c);
    } else {
        pg_params_free(&c->op.params);
        http_reply_json(c->req, 200, &c->answer);
    }
}

static void seal_schedules(struct configure *c)
{
    struct api *api = http_req_app(c->req);
    struct buf args = {0};

    buf_put_lit(&args, "{\"queue\":");
    js_put_text(&args, c->queue);
    buf_putc(&args, '}');
    pg_param_text(&c->op.params, buf_span(&args));
    buf_free(&args);
    c->op.statement = &pg_stmt_seal_schedules;
    c->op.done = on_sealed;
    broker_custom(api->broker, &c->op);
}

static void on_sealed(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct configure *c = container_of(op, struct configure, op);
    struct api *api = http_req_app(c->req);

    if (status == 0 && sql_endpoint_next_step(api->broker, reply, &op->params)) {
        broker_custom(api->broker, op);
        return;
    }
    pg_params_free(&op->params);
    if (status == 0) {
        http_reply_json(c->req, 200, &c->answer);
    } else { // it is configured; a repeated request does the rest
        buf_free(&c->answer);
        api_reply_failed(c->req, status, &op->op.why);
    }
}

static void write_answer(const struct configure *c, const struct pg_reply *reply,
                         struct buf *out)
{
    buf_put_lit(out, "{\"configured\":true,\"queueId\":\"");
    buf_put_uuid(out, pg_reply_uuid(reply, 0, CONFIGURE_COL_QUEUE_ID));
    buf_put_lit(out, "\",\"partitionId\":\"");
    buf_put_uuid(out, pg_reply_uuid(reply, 0, CONFIGURE_COL_DEFAULT_LANE_ID));
    buf_put_lit(out, "\",\"queue\":");
    js_put_text(out, c->queue);
    buf_put_lit(out, ",\"namespace\":");
    js_put_text(out, c->namespace_);
    buf_put_lit(out, ",\"task\":");
    js_put_text(out, c->task);
    buf_put_lit(out, ",\"options\":");
    buf_put(out, pg_reply_bytes(reply, 0, CONFIGURE_COL_OPTIONS));
    buf_putc(out, '}');
}

const struct http_route api_configure = {
    .verb = HTTP_POST,
    .path = "/api/v1/configure",
    .access = ACCESS_READ_WRITE,
    .target = TARGET_BODY,
    .need = MAY_CONFIGURE,
    .op = "configure",
    .handle = configure_handle,
    .unknown = UNKNOWN_IGNORED,
};
