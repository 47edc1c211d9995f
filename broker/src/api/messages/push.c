// POST /api/v1/push: {"items": [{"queue": ..., "payload": ...}, ...]}
//
// One pass over the body.  Payloads and names stay where they are: the spans that the scanner
// found are the spans that the broker packs.  Nothing is stored unless every item is good.
#include "api/api_int.h"
#include "api/messages/push_int.h"
#include "api/partition_key.h"
#include "api/permission.h"
#include "api/trace_context.h"
#include "api/tracing.h"
#include "base/str.h"
#include "json/write.h"

static void push_handle(struct http_req *req);
static int read_push_body(struct push *p, struct body *b);
static void api_push_start(void *ctx);
static void read_items(struct push *p, struct body *b);
static void on_api_pushed(struct push_op *op, int status);
static void put_buffered(struct buf *out, const struct push_item *item, span queue, span txid);
static void write_failed(struct push *p, const struct fault *why, struct buf *out);
static char *push_put_result(char *at, const struct push_item *item, unsigned i, span queue,
                             span txid);

struct push *push_new(struct http_req *req)
{
    struct push *p = arena_new(http_req_arena(req), struct push);

    p->req = req;
    p->op.done = on_api_pushed;
    return p;
}

static void push_handle(struct http_req *req)
{
    if (http_req_has(req, RARE_EVENT_IN)) {
        events_push(req, SPAN_NONE, SPAN_NONE);
        return;
    }
    struct push *p = push_new(req);
    struct body b = body_open(req, "item");
    b.meta = trace_context_of(req);
    if (read_push_body(p, &b) != 0)
        http_reply_fault(req, &b.fault);
    else if (p->op.n_items == 0)
        http_reply_json_span(req, 201, SPAN("[]"));
    else if (b.has_keys)
        partition_keys_resolve(req, p->op.items, p->op.n_items, api_push_start, p);
    else
        push_start(p);
}

static void api_push_start(void *ctx) { push_start(ctx); }

void push_start(struct push *p)
{
    struct api *api = http_req_app(p->req);

    tracing_note_items(p->req, p->op.items, p->op.n_items);
    if (permission_check_items(p->req, p->op.items, p->op.n_items))
        broker_push(api->broker, &p->op);
}

static int read_push_body(struct push *p, struct body *b)
{
    static const char *const names[] = {"items", NULL};
    static const struct known_names known = {.texts = names};
    bool has_items = false;
    span key;

    body_enter_object(b);
    while (js_next_key(&b->j, &key)) {
        if (!js_key_is(key, SPAN("items"))) {
            body_check_member(b, key, &known);
            js_skip(&b->j);
            continue;
        }
        p->op.n_items = 0; // the last of two equal keys wins
        has_items = js_peek(&b->j) == JS_ARRAY;
        if (has_items)
            read_items(p, b);
        else
            js_skip(&b->j);
    }
    int rc = body_finish(b);
    if (rc == 0 && !has_items)
        rc = fault_set(&b->fault, QE_BAD_REQUEST, "items must be an array");
    return rc;
}

static void read_items(struct push *p, struct body *b)
{
    const char *from = b->j.pos;
    span raw[ITEM_FIELDS];
    unsigned n = 0;

    js_enter_array(&b->j);
    while (js_next_item(&b->j)) {
        size_t used = (size_t)(b->j.pos - from), left = (size_t)(b->j.end - b->j.pos);
        size_t guess = n > 0 && used / n > 0 ? n + 1 + left / (used / n) : 0;
        p->op.items = body_grow(b, p->op.items, n, &p->cap, sizeof *p->op.items, guess);
        if (!p->op.items)
            return;

        b->at = n;
        body_read_fields(b, body_item_names, ITEM_FIELDS, raw);
        body_take_item(b, raw, SPAN("null"), &p->op.items[n]);
        n++;
    }
    if (b->j.rc == 0)
        b->at = -1;
    p->op.n_items = n;
}

// If the client has hung up meanwhile, http_reply_*() only frees the request.
static void on_api_pushed(struct push_op *op, int status)
{
    struct push *p = container_of(op, struct push, op);
    struct buf out = {0};

    api_note_db(p->req, &op->op);
    if (status == QE_BUFFER_FAILED) { // the contract wants it item by item
        write_failed(p, &op->op.why, &out);
        http_reply_json(p->req, 500, &out);
        return;
    }
    if (status != 0) {
        api_reply_failed(p->req, status, &op->op.why);
        return;
    }
    push_put_results(&out, http_req_arena(p->req), http_req_body(p->req), op->items,
                     op->n_items);
    http_reply_json(p->req, 201, &out);
}

enum { RESULT_BYTES = 600 }; // of a result without its two texts, with room to spare

void push_put_results(struct buf *out, struct arena *arena, span body,
                      const struct push_item *items, unsigned n)
{
    if (n == 0) {
        buf_put_lit(out, "[]");
        return;
    }
    // Results have similar lengths: estimate the room for all of them from the first.
    size_t each = RESULT_BYTES + 2 * (items[0].txid.len + 8) + items[0].queue.len;
    if (!buf_reserve(out, 2 + each * n))
        return;
    buf_putc(out, '[');
    for (unsigned i = 0; i < n; i++) {
        const struct push_item *item = &items[i];
        span queue = api_json_text(arena, item->queue, body);
        span txid = item->txid.ptr ? api_json_text(arena, item->txid, body) : SPAN_NONE;
        if (item->status == PUSH_BUFFERED) {
            put_buffered(out, item, queue, txid);
            continue;
        }
        if (!buf_reserve(out, RESULT_BYTES + 2 * txid.len + queue.len))
            return;
        char *at = push_put_result(out->ptr + out->len, item, i, queue, txid);
        out->len = (size_t)(at - out->ptr);
    }
    out->ptr[out->len - 1] = ']'; // over the last comma
}

// It has no ids yet.
static void put_buffered(struct buf *out, const struct push_item *item, span queue, span txid)
{
    buf_put_lit(out, "{\"status\":\"buffered\",\"queue\":\"");
    buf_put(out, queue);
    buf_put_lit(out, "\",\"partition\":");
    js_put_text(out, item->partition);
    if (txid.ptr) {
        buf_put_lit(out, ",\"transactionId\":\"");
        buf_put(out, txid);
        buf_putc(out, '"');
    }
    buf_put_lit(out, "},");
}

static void write_failed(struct push *p, const struct fault *why, struct buf *out)
{
    for (unsigned i = 0; i < p->op.n_items; i++) {
        buf_put(out, i == 0 ? SPAN("[{") : SPAN("{"));
        buf_put_lit(out, "\"status\":\"failed\",\"error\":");
        js_put_text(out, span_of(why->text));
        buf_put_lit(out, ",\"queue\":");
        js_put_text(out, p->op.items[i].queue);
        buf_put_lit(out, ",\"partition\":");
        js_put_text(out, p->op.items[i].partition);
        buf_put_lit(out, "},");
    }
    if (out->len > 0) // the last comma
        out->ptr[out->len - 1] = ']';
}

static char *push_put_time(char *at, int64_t due_us, span id)
{
    char text[STR_TS_MS];

    str_format_ts_ms(due_us, text);
    at = put_lit(at, "\",\"scheduleId\":\"");
    at = put_span(at, id);
    at = put_lit(at, "\",\"scheduledAt\":\"");
    return put_span(at, (span){text, sizeof text});
}

// queue and txid come escaped; txid SPAN_NONE: the key is the id.
static char *push_put_result(char *at, const struct push_item *item, unsigned i, span queue,
                             span txid)
{
    char key[36], id[36], lane[36];
    bool scheduled = item->status == PUSH_SCHEDULED;
    bool queued = item->status == PUSH_QUEUED || scheduled;

    if (!txid.ptr) {
        put_uuid(key, item->key);
        txid = (span){key, sizeof key};
    }
    put_uuid(id, item->message_id);

    at = put_lit(at, "{\"index\":");
    at = put_u64(at, i);
    if (scheduled)
        at = put_lit(at, ",\"status\":\"scheduled\",\"transaction_id\":\"");
    else if (queued)
        at = put_lit(at, ",\"status\":\"queued\",\"transaction_id\":\"");
    else
        at = put_lit(at, ",\"status\":\"duplicate\",\"transaction_id\":\"");
    at = put_span(at, txid);
    at = put_lit(at, "\",\"message_id\":\"");
    at = put_span(at, (span){id, sizeof id});
    if (queued) {
        put_uuid(lane, item->partition_id);
        at = put_lit(at, "\",\"partition_id\":\"");
        at = put_span(at, (span){lane, sizeof lane});
        if (item->has_trace) {
            at = put_lit(at, "\",\"trace_id\":\"");
            at = put_uuid(at, item->trace);
            at = put_lit(at, "\",\"partitionId\":\"");
        } else {
            at = put_lit(at, "\",\"trace_id\":null,\"partitionId\":\"");
        }
        at = put_span(at, (span){lane, sizeof lane});
    }
    at = put_lit(at, "\",\"transactionId\":\"");
    at = put_span(at, txid);
    at = put_lit(at, "\",\"messageId\":\"");
    at = put_span(at, (span){id, sizeof id});
    if (scheduled)
        at = push_put_time(at, item->due_us, (span){id, sizeof id});
    at = put_lit(at, "\",\"queueName\":\"");
    at = put_span(at, queue);
    return put_lit(at, "\"},");
}

const struct http_route api_push = {
    .verb = HTTP_POST,
    .path = "/api/v1/push",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_BODY,
    .need = MAY_PUSH,
    .op = "push",
    .handle = push_handle,
    .unknown = UNKNOWN_IGNORED,
};
