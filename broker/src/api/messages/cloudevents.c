// CloudEvents 1.0 into messages: structured, batched and binary mode.
//
//      POST /api/v1/push/queue/:queue                        partition: attribute partitionkey
//      POST /api/v1/push/queue/:queue/partition/:partition
//      POST /api/v1/push                                     queue: attribute queue
//
// The data becomes the payload as it was sent; the attributes are kept beside it (cloudEvent of
// the message, docs/internals/segment-format.md) and come back with every pop.  source and id
// together are the transaction id, so that an event that is sent twice is stored once.  The
// delivery time (scheduledat, delayseconds) is an instruction to the broker, not a part of the
// event.  It is not stored, because a consumer that forwards the event would delay it again.
#include "api/api_int.h"
#include "api/message_fields.h"
#include "api/messages/push_int.h"
#include "api/trace_context.h"
#include "base/id.h"
#include "base/str.h"
#include "segment/codec.h"
#include "segment/keys.h"
#include "json/write.h"

#define SINGLE SPAN("application/cloudevents+json")
#define BATCH  SPAN("application/cloudevents-batch+json")

// The attributes that mean something to us.
enum {
    A_SPEC,
    A_ID,
    A_SOURCE,
    A_TYPE,
    A_QUEUE,
    A_PARTITION,
    A_PARENT,
    A_STATE,
    A_CORRELATION,
    ATTRIBUTES
};
static const span names[ATTRIBUTES] = {
    [A_SPEC] = {"specversion", 11},
    [A_ID] = {"id", 2},
    [A_SOURCE] = {"source", 6},
    [A_TYPE] = {"type", 4},
    [A_QUEUE] = {"queue", 5},
    [A_PARTITION] = {"partitionkey", 12},
    [A_PARENT] = {"traceparent", 11},
    [A_STATE] = {"tracestate", 10},
    [A_CORRELATION] = {"correlationid", 13},
};

struct event {
    span text[ATTRIBUTES]; // SPAN_NONE: not there
    struct buf kept;       // {"specversion":"1.0",...: all attributes but the closing brace
    span data;             // JSON; SPAN_NONE: none
    bool is_base64;
    span at, delay; // as JSON; SPAN_NONE: not there
};

static void read_structured(struct push *p, struct body *b, span queue, span partition);
static void read_batch(struct push *p, struct body *b, span queue, span partition);
static void read_binary(struct push *p, struct body *b, span queue, span partition);
static void read_event(struct body *b, struct event *e);
static void cloudevents_keep(struct body *b, struct event *e, span name, span raw);
static void cloudevents_take(struct push *p, struct body *b, struct event *e, span queue,
                             span partition);

void events_push(struct http_req *req, span queue, span partition)
{
    span type = http_req_header(req, SPAN("content-type")), kind;
    struct push *p = push_new(req);
    struct body b = body_open(req, "event");

    b.meta = trace_context_of(req);
    str_split(&type, ';', &kind);
    kind = str_trim(kind);
    if (str_eq_nocase(kind, SINGLE)) {
        read_structured(p, &b, queue, partition);
    } else if (str_eq_nocase(kind, BATCH)) {
        read_batch(p, &b, queue, partition);
    } else if (http_req_header(req, SPAN("ce-specversion")).ptr) {
        read_binary(p, &b, queue, partition);
    } else {
        http_reply_errf(req, QE_UNSUPPORTED,
                        "no CloudEvent: neither Content-Type: application/cloudevents+json or "
                        "application/cloudevents-batch+json nor ce-specversion");
        return;
    }
    if (body_finish(&b) != 0)
        http_reply_fault(req, &b.fault);
    else if (p->op.n_items == 0)
        http_reply_json_span(req, 201, SPAN("[]"));
    else
        push_start(p);
}

static void read_structured(struct push *p, struct body *b, span queue, span partition)
{
    struct event e = {0};

    read_event(b, &e);
    cloudevents_take(p, b, &e, queue, partition);
}

static void read_batch(struct push *p, struct body *b, span queue, span partition)
{
    if (js_peek(&b->j) != JS_ARRAY && js_peek(&b->j) != JS_NONE)
        body_bad(b, "the body must be an array");
    js_enter_array(&b->j);
    while (js_next_item(&b->j)) {
        struct event e = {0};
        b->at = p->op.n_items;
        read_event(b, &e);
        cloudevents_take(p, b, &e, queue, partition);
    }
    if (b->j.rc == 0)
        b->at = -1;
}

static void read_event(struct body *b, struct event *e)
{
    span key;

    body_enter_object(b);
    while (js_next_key(&b->j, &key)) {
        span raw = js_skip(&b->j);
        if (js_key_is(key, SPAN("data"))) {
            e->data = raw;
        } else if (js_key_is(key, SPAN("data_base64"))) {
            if (js_type_of(raw) != JS_STRING && js_type_of(raw) != JS_NULL)
                body_bad(b, "data_base64 must be a string");
            e->is_base64 = js_type_of(raw) == JS_STRING;
            if (e->is_base64)
                e->data = raw;
        } else {
            cloudevents_keep(b, e, key, raw);
        }
    }
}

static bool is_attribute_name(span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!(name.ptr[i] >= 'a' && name.ptr[i] <= 'z') &&
            !(name.ptr[i] >= '0' && name.ptr[i] <= '9'))
            return false;
    return name.len > 0;
}

// In headers, and where fractions count, numbers are text.
static span cloudevents_number_of(struct body *b, span raw)
{
    return js_type_of(raw) == JS_STRING ? js_text(raw, b->arena) : raw;
}

static void cloudevents_keep(struct body *b, struct event *e, span name, span raw)
{
    enum js_type type = js_type_of(raw);

    if (b->j.rc != 0 || type == JS_NULL)
        return;
    if (!is_attribute_name(name)) {
        body_bad(b, "the name of an attribute must be of lower-case letters and digits");
        return;
    }
    if (type == JS_OBJECT || type == JS_ARRAY) {
        body_bad(b, "attribute %.*s must be a string, number or boolean",
                 (int)(name.len < 40 ? name.len : 40), name.ptr);
        return;
    }
    if (str_starts(name, SPAN("queen"))) // what a pop has added is no part of the event
        return;
    if (span_eq(name, SPAN("scheduledat"))) {
        e->at = raw;
        return;
    }
    if (span_eq(name, SPAN("delayseconds"))) {
        e->delay = cloudevents_number_of(b, raw);
        return;
    }
    unsigned i = body_field_of(name, names, ATTRIBUTES);
    if (i < ATTRIBUTES)
        e->text[i] = body_text(b, raw, names[i].ptr);
    buf_putc(&e->kept, e->kept.len > 0 ? ',' : '{');
    js_put_text(&e->kept, name);
    buf_putc(&e->kept, ':');
    buf_put(&e->kept, raw);
}

// ---- binary mode: attributes in headers, data in the body ----

static void put_base64(struct buf *out, span in)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < in.len; i += 3) {
        size_t n = in.len - i < 3 ? in.len - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)in.ptr[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_putc(out, k <= n ? digits[v >> (18 - 6 * k) & 63] : '=');
    }
}

static bool is_json_type(span type)
{
    span kind;

    str_split(&type, ';', &kind);
    kind = str_trim(kind);
    return kind.len == 0 || str_eq_nocase(kind, SPAN("application/json")) ||
           str_eq_nocase(kind, SPAN("text/json")) ||
           (kind.len > 5 && str_eq_nocase((span){kind.ptr + kind.len - 5, 5}, SPAN("+json")));
}

// JSON stays unchanged, text becomes a string, anything else base64.
static void take_data(struct push *p, struct body *b, struct event *e, span type)
{
    span body = http_req_body(p->req);

    if (body.len == 0) {
        b->j = js_read(SPAN("null"));
        js_skip(&b->j);
    } else if (is_json_type(type)) {
        e->data = js_skip(&b->j);
    } else {
        struct buf text = {0};
        e->is_base64 = !(str_starts(type, SPAN("text/")) && str_is_utf8(body) &&
                         !memchr(body.ptr, '\0', body.len));
        if (e->is_base64) {
            buf_putc(&text, '"');
            put_base64(&text, body);
            buf_putc(&text, '"');
        } else {
            js_put_text(&text, body);
        }
        e->data = text.failed ? SPAN_NONE : arena_try_copy(b->arena, buf_span(&text));
        if (text.failed)
            b->arena->rc = QE_NO_MEMORY;
        buf_free(&text);
        b->j = js_read(SPAN("null")); // the body is no JSON
        js_skip(&b->j);
    }
}

static void keep_header(struct body *b, struct event *e, span name, span value)
{
    char lower[64];
    struct buf text = {0}, json = {0};

    if (name.len > sizeof lower) {
        body_bad(b, "the name of an attribute is longer than %zu characters", sizeof lower);
        return;
    }
    for (size_t i = 0; i < name.len; i++)
        lower[i] =
            (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] | 0x20 : name.ptr[i]);
    if (!str_percent_decode(value, false, &text) || !str_is_utf8(buf_span(&text)) ||
        (text.len > 0 && memchr(text.ptr, '\0', text.len))) {
        body_bad(b, "attribute %.*s is not percent-encoded UTF-8", (int)name.len, lower);
    } else {
        js_put_text(&json, buf_span(&text));
        cloudevents_keep(b, e, arena_copy(b->arena, (span){lower, name.len}),
                         arena_copy(b->arena, buf_span(&json)));
    }
    buf_free(&text);
    buf_free(&json);
}

static void read_binary(struct push *p, struct body *b, span queue, span partition)
{
    span type = http_req_header(p->req, SPAN("content-type")), name, value;
    struct event e = {0};

    take_data(p, b, &e, type);
    for (size_t at = 0; http_req_next_header(p->req, &at, &name, &value);)
        if (name.len > 3 && str_eq_nocase((span){name.ptr, 3}, SPAN("ce-")))
            keep_header(b, &e, (span){name.ptr + 3, name.len - 3}, value);
    if (type.len > 0)
        keep_header(b, &e, SPAN("datacontenttype"), type);
    cloudevents_take(p, b, &e, queue, partition);
}

// ---- an event into an item ----

static bool has_space(span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] <= ' ')
            return true;
    return false;
}

static void check_cloudevent(struct body *b, const struct event *e)
{
    if (b->j.rc != 0)
        return;
    for (unsigned i = A_SPEC; i <= A_TYPE; i++)
        if (e->text[i].len == 0)
            body_bad(b, "attribute %s is missing", names[i].ptr);
    if (!span_eq(e->text[A_SPEC], SPAN("1.0")))
        body_bad(b, "specversion must be 1.0");
    if (has_space(e->text[A_SOURCE]))
        body_bad(b, "source must be a URI reference");
}

// A source contains no space, so different pairs (source, id) have different texts.
static span transaction_of(struct body *b, const struct event *e)
{
    struct buf text = {0};
    uint8_t key[16];

    buf_put(&text, e->text[A_SOURCE]);
    buf_putc(&text, ' ');
    buf_put(&text, e->text[A_ID]);
    if (text.len > API_NAME_CHARS && str_utf8_chars(buf_span(&text)) > API_NAME_CHARS) {
        (void)key_of_text(buf_span(&text), key);
        buf_reset(&text);
        buf_put_lit(&text, "cloudevent ");
        buf_put_uuid(&text, key);
    }
    span copy = arena_copy(b->arena, buf_span(&text));
    buf_free(&text);
    return copy;
}

// {"cloudEvent":{...},"dataEncoding":"base64","traceparent":"..."}
static span meta_of(struct body *b, struct event *e)
{
    span parent = e->text[A_PARENT], state = e->text[A_STATE], context = b->meta, meta;
    struct buf out = {0};

    if (trace_parent_is_valid(parent))
        context =
            trace_context(b->arena, parent, trace_state_is_valid(state) ? state : SPAN_NONE);
    buf_put_lit(&out, "{\"cloudEvent\":");
    buf_put(&out, buf_span(&e->kept));
    buf_putc(&out, '}');
    if (e->is_base64)
        buf_put_lit(&out, ",\"dataEncoding\":\"base64\"");
    if (context.len > 2) {
        buf_putc(&out, ',');
        buf_put(&out, (span){context.ptr + 1, context.len - 1});
    } else {
        buf_putc(&out, '}');
    }
    meta = out.failed ? SPAN_NONE : arena_copy(b->arena, buf_span(&out));
    buf_free(&out);
    if (meta.ptr)
        meta = message_fields_add(
            b->arena, meta, &(struct message_fields){.correlation = e->text[A_CORRELATION]});
    if (!meta.ptr || meta.len > SEGMENT_MAX_META)
        body_bad(b, "the attributes are longer than %d bytes", SEGMENT_MAX_META);
    return meta;
}

static span name_of(struct body *b, span path, span attribute, const char *what)
{
    span name = path.ptr ? path : attribute;

    if (!api_is_name(name))
        body_bad(b, "%s must be at most %d characters of UTF-8 without NUL", what,
                 API_NAME_CHARS);
    return name;
}

static void cloudevents_take(struct push *p, struct body *b, struct event *e, span queue,
                             span partition)
{
    check_cloudevent(b, e);
    queue = name_of(b, queue, e->text[A_QUEUE], "queue");
    partition = name_of(b, partition, e->text[A_PARTITION], "partition");
    e->text[A_CORRELATION] =
        name_of(b, SPAN_NONE, e->text[A_CORRELATION], names[A_CORRELATION].ptr);
    if (!queue.ptr)
        body_bad(b, "no queue: name it in the path, or in the attribute queue");
    if (b->j.rc == 0) {
        struct push_op *op = &p->op;
        op->items = body_grow(b, op->items, op->n_items, &p->cap, sizeof *op->items, 0);
        if (!op->items) {
            buf_free(&e->kept);
            return;
        }
        struct push_item *item = &op->items[op->n_items++];
        *item = (struct push_item){
            .queue = queue,
            .partition = partition.len > 0 ? partition : SPAN("Default"),
            .payload = e->data.ptr ? e->data : SPAN("null"),
            .txid = transaction_of(b, e),
            .meta = meta_of(b, e),
            .producer = b->producer,
            .correlation = e->text[A_CORRELATION],
        };
        body_take_time(b, e->at, e->delay, item);
        item->txid_is_key = key_of_text(item->txid, item->key);
    }
    buf_free(&e->kept);
}

// ---- the endpoints ----

static void push_queue(struct http_req *req)
{
    span queue;

    if (http_req_param(req, 0, &queue))
        events_push(req, queue, SPAN_NONE);
    else
        http_reply_errf(req, QE_BAD_PARAM, "the queue in the path is malformed");
}

static void push_partition(struct http_req *req)
{
    span queue, partition;

    if (http_req_param(req, 0, &queue) && http_req_param(req, 1, &partition))
        events_push(req, queue, partition);
    else
        http_reply_errf(req, QE_BAD_PARAM, "the queue or partition in the path is malformed");
}

const struct http_route api_push_queue = {
    .verb = HTTP_POST,
    .path = "/api/v1/push/queue/:queue",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_PATH,
    .need = MAY_PUSH,
    .op = "push_queue",
    .handle = push_queue,
};

const struct http_route api_push_partition = {
    .verb = HTTP_POST,
    .path = "/api/v1/push/queue/:queue/partition/:partition",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_PATH,
    .need = MAY_PUSH,
    .op = "push_partition",
    .handle = push_partition,
};
