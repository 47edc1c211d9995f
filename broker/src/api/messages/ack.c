// POST /api/v1/ack and /api/v1/ack/batch: report the results of delivered messages.
//
// Both answer with an array, one result per entry in request order.  A rejected entry is not an
// error of the request.
#include "api/api_int.h"
#include "api/permission.h"
#include "api/tracing.h"
#include "auth/rules.h"
#include "base/str.h"

// In the request's arena.
struct ack {
    struct http_req *req;
    struct ack_op op;
    unsigned cap;
    span *statuses; // as sent, beside op.entries
    unsigned statuses_cap;
};

static void ack_one(struct http_req *req);
static void ack_many(struct http_req *req);
static int read_batch(struct ack *a, struct body *b);
static void read_entries(struct ack *a, struct body *b);
static void ack_start(struct ack *a);
static void ack_permitted(void *ctx, span queue);
static void on_api_acked(struct ack_op *op, int status);
static void ack_put_result(struct buf *out, struct ack *a, unsigned i);

static struct ack *ack_new(struct http_req *req)
{
    struct ack *a = arena_new(http_req_arena(req), struct ack);
    a->req = req;
    return a;
}

// Room for one more entry and its status.
static bool grow_entries(struct ack *a, struct body *b, size_t guess)
{
    unsigned n = a->op.n_entries;

    a->op.entries = body_grow(b, a->op.entries, n, &a->cap, sizeof *a->op.entries, guess);
    if (a->op.entries)
        a->statuses =
            body_grow(b, a->statuses, n, &a->statuses_cap, sizeof *a->statuses, guess);
    return a->op.entries && a->statuses;
}

static void ack_one(struct http_req *req)
{
    struct ack *a = ack_new(req);
    struct body b = body_open(req, "entry");
    span raw[ACK_FIELDS];

    if (grow_entries(a, &b, 1)) {
        body_read_fields(&b, body_ack_names, ACK_FIELDS, raw);
        body_take_ack(&b, raw, &a->op.entries[0], &a->statuses[0], &a->op.group);
    }
    a->op.n_entries = 1;
    if (body_finish(&b) != 0)
        http_reply_fault(req, &b.fault);
    else
        ack_start(a);
}

static void ack_many(struct http_req *req)
{
    struct ack *a = ack_new(req);
    struct body b = body_open(req, "entry");

    if (read_batch(a, &b) != 0)
        http_reply_fault(req, &b.fault);
    else if (a->op.n_entries == 0)
        http_reply_json_span(req, 200, SPAN("[]"));
    else
        ack_start(a);
}

static int read_batch(struct ack *a, struct body *b)
{
    static const char *const names[] = {"acknowledgments", "consumerGroup", NULL};
    static const struct known_names known = {.texts = names};
    bool has_entries = false;
    span key;

    body_enter_object(b);
    while (js_next_key(&b->j, &key)) {
        if (js_key_is(key, SPAN("acknowledgments"))) {
            a->op.n_entries = 0; // the last of two equal keys wins
            has_entries = js_peek(&b->j) == JS_ARRAY;
            if (has_entries)
                read_entries(a, b);
            else
                js_skip(&b->j);
        } else if (js_key_is(key, SPAN("consumerGroup"))) {
            a->op.group = body_text_or_none(b, js_skip(&b->j));
            if (!api_is_name(a->op.group))
                body_bad(b, "consumerGroup is longer than %d characters", API_NAME_CHARS);
        } else {
            body_check_member(b, key, &known);
            js_skip(&b->j);
        }
    }
    int rc = body_finish(b);
    if (rc == 0 && !has_entries)
        rc = fault_set(&b->fault, QE_BAD_REQUEST, "acknowledgments must be an array");
    return rc;
}

static void read_entries(struct ack *a, struct body *b)
{
    const char *from = b->j.pos;
    span raw[ACK_FIELDS], own_group;

    js_enter_array(&b->j);
    while (js_next_item(&b->j)) {
        unsigned n = a->op.n_entries;
        size_t used = (size_t)(b->j.pos - from), left = (size_t)(b->j.end - b->j.pos);
        if (!grow_entries(a, b, n > 0 && used / n > 0 ? n + 1 + left / (used / n) : 0))
            return;
        b->at = n;
        body_read_fields(b, body_ack_names, ACK_FIELDS, raw);
        body_take_ack(b, raw, &a->op.entries[n], &a->statuses[n], &own_group);
        a->op.n_entries++;
    }
    if (b->j.rc == 0)
        b->at = -1;
}

static void ack_start(struct ack *a)
{
    if (!a->op.group.ptr)
        a->op.group = API_QUEUE_MODE;
    tracing_note(a->req, SPAN_NONE, SPAN_NONE, a->op.group, a->op.n_entries);
    a->op.arena = http_req_arena(a->req);
    a->op.done = on_api_acked;
    permission_check_partitions(a->req, MAY_POP,
                                &(struct permission_ids){.first = a->op.entries[0].partition_id,
                                                         .stride = sizeof a->op.entries[0],
                                                         .n = a->op.n_entries,
                                                         .group = a->op.group},
                                ack_permitted, a);
}

static void ack_permitted(void *ctx, span queue)
{
    struct ack *a = ctx;
    struct api *api = http_req_app(a->req);

    (void)queue;
    broker_ack(api->broker, &a->op);
}

static void on_api_acked(struct ack_op *op, int status)
{
    struct ack *a = container_of(op, struct ack, op);
    struct buf out = {0};

    api_note_db(a->req, &op->op);
    if (status != 0) {
        api_reply_failed(a->req, status, &op->op.why);
        return;
    }
    buf_reserve(&out, 2 + (size_t)op->n_entries * 280);
    buf_putc(&out, '[');
    for (unsigned i = 0; i < op->n_entries; i++) {
        if (i > 0)
            buf_putc(&out, ',');
        ack_put_result(&out, a, i);
    }
    buf_putc(&out, ']');
    http_reply_json(a->req, 200, &out);
}

static void put_name_member(struct buf *out, struct ack *a, span name)
{
    if (!name.ptr) {
        buf_put_lit(out, "null");
        return;
    }
    buf_putc(out, '"');
    buf_put(out, api_json_text(http_req_arena(a->req), name, SPAN_NONE));
    buf_putc(out, '"');
}

static void ack_put_error(struct buf *out, struct ack *a, unsigned i)
{
    struct arena *arena = http_req_arena(a->req);

    switch (a->op.entries[i].why) {
    case ACK_OK:
        buf_put_lit(out, ",\"success\":true,\"error\":null");
        break;
    case ACK_NOT_FOUND:
        buf_put_lit(out, ",\"success\":false,\"error\":\"Message not found\"");
        break;
    case ACK_BAD_LEASE:
        buf_put_lit(out, ",\"success\":false,\"error\":\"Invalid or expired lease\"");
        break;
    case ACK_BAD_STATUS:
        buf_put_lit(out, ",\"success\":false,\"error\":\"Unknown status '");
        buf_put(out, api_json_text(arena, a->statuses[i], http_req_body(a->req)));
        buf_put_lit(out, "'\"");
        break;
    case ACK_WAITING:
        buf_put_lit(out, ",\"success\":false,\"error\":\"Message is waiting for its retry\"");
        break;
    case ACK_NOT_DELIVERED:
        buf_put_lit(out, ",\"success\":false,\"error\":\"Message is not delivered\"");
        break;
    case ACK_NOT_WORK:
        buf_put_lit(out, ",\"success\":false,\"error\":\"retryAfter needs ordering "
                         "\\\"none\\\" or settlement \\\"message\\\"\"");
        break;
    case ACK_SETTLED:
        buf_put_lit(out, ",\"success\":false,\"error\":\"Message is settled already\"");
        break;
    }
}

// The next attempt is scheduled: when, and which one it will be.
static void put_retry(struct buf *out, const struct ack_entry *e)
{
    char at[STR_TS_US];

    str_format_ts_us(e->retry_us, at);
    buf_put_lit(out, ",\"nextAttempt\":");
    buf_put_i64(out, e->attempt + 1);
    buf_put_lit(out, ",\"nextAttemptAt\":\"");
    buf_put(out, (span){at, sizeof at});
    buf_putc(out, '"');
}

static void ack_put_result(struct buf *out, struct ack *a, unsigned i)
{
    const struct ack_entry *e = &a->op.entries[i];

    buf_put_lit(out, "{\"index\":");
    buf_put_u64(out, i);
    buf_put_lit(out, ",\"transactionId\":\"");
    buf_put(out, api_json_text(http_req_arena(a->req), e->txid, http_req_body(a->req)));
    buf_putc(out, '"');
    ack_put_error(out, a, i);
    buf_put_lit(out, ",\"queueName\":");
    put_name_member(out, a, e->queue);
    buf_put_lit(out, ",\"partitionName\":");
    put_name_member(out, a, e->partition);
    if (e->released < 0)
        buf_put_lit(out, ",\"leaseReleased\":null");
    else if (e->released > 0)
        buf_put_lit(out, ",\"leaseReleased\":true");
    else
        buf_put_lit(out, ",\"leaseReleased\":false");
    buf_put(out, e->dead ? SPAN(",\"dlq\":true") : SPAN(",\"dlq\":false"));
    if (e->retry_us != 0)
        put_retry(out, e);
    buf_putc(out, '}');
}

const struct http_route api_ack = {
    .verb = HTTP_POST,
    .path = "/api/v1/ack",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_BODY,
    .need = MAY_POP,
    .op = "ack",
    .handle = ack_one,
    .unknown = UNKNOWN_IGNORED,
};

const struct http_route api_ack_batch = {
    .verb = HTTP_POST,
    .path = "/api/v1/ack/batch",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_BODY,
    .need = MAY_POP,
    .op = "ack_batch",
    .handle = ack_many,
    .unknown = UNKNOWN_IGNORED,
};
