// body.c: JSON bodies into spans, and mistakes into sentences that name the place.
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/api_int.h"
#include "api/message_fields.h"
#include "api/trace_context.h"
#include "base/id.h"
#include "base/str.h"
#include "segment/keys.h"
#include "json/retry_policy.h"

const span body_item_names[ITEM_FIELDS] = {
    [ITEM_QUEUE] = {"queue", 5},
    [ITEM_PARTITION] = {"partition", 9},
    [ITEM_PAYLOAD] = {"payload", 7},
    [ITEM_TXID] = {"transactionId", 13},
    [ITEM_TRACE] = {"traceId", 7},
    [ITEM_TRACEPARENT] = {"traceparent", 11},
    [ITEM_TRACESTATE] = {"tracestate", 10},
    [ITEM_SCHEDULED_AT] = {"scheduledAt", 11},
    [ITEM_DELAY] = {"delaySeconds", 12},
    [ITEM_CORRELATION] = {"correlationId", 13},
    [ITEM_EVENT_TYPE] = {"eventType", 9},
    [ITEM_RETRY_POLICY] = {"retryPolicy", 11},
    [ITEM_PARTITION_KEY] = {"partitionKey", 12},
    [ITEM_CONCURRENCY_KEY] = {"concurrencyKey", 14},
    [ITEM_PRIORITY] = {"priority", 8},
};
enum { ACK_AFTER_MAX = 7 * 24 * 3600, ACK_TRIES_MAX = 20 };
const span body_ack_names[ACK_FIELDS] = {
    [ACK_TXID] = {"transactionId", 13},     [ACK_PARTITION] = {"partitionId", 11},
    [ACK_STATUS] = {"status", 6},           [ACK_LEASE] = {"leaseId", 7},
    [ACK_GROUP] = {"consumerGroup", 13},    [ACK_ERROR] = {"error", 5},
    [ACK_ERROR_CODE] = {"errorCode", 9},    [ACK_WORKER] = {"worker", 6},
    [ACK_RETRY_AFTER] = {"retryAfter", 10}, [ACK_TRIES] = {"earlierTries", 12},
};

struct body body_open(struct http_req *req, const char *noun)
{
    const struct api *api = http_req_app(req);
    struct body b = {.j = js_read(http_req_body(req)),
                     .arena = http_req_arena(req),
                     .noun = noun,
                     .producer = http_req_subject(req),
                     .max_items = api->max_items > 0 ? api->max_items : UINT_MAX,
                     .max_failures = api->max_failures,
                     .unknown = http_route_rule(http_req_route(req)),
                     .at = -1,
                     .item = -1};

    if (b.producer.len > UINT16_MAX) // it is stored with each message
        body_bad(&b, "the subject of the token is longer than %d bytes", UINT16_MAX);
    return b;
}

// "item 3", "operation 1, item 0" or ""; returns its length.
static size_t put_place(const struct body *b, char *out, size_t size)
{
    if (b->at < 0)
        return 0;
    int n = b->item < 0 ? snprintf(out, size, "%s %lld", b->noun, (long long)b->at)
                        : snprintf(out, size, "%s %lld, item %lld", b->noun, (long long)b->at,
                                   (long long)b->item);
    return n > 0 ? (size_t)n : 0;
}

void body_bad(struct body *b, const char *fmt, ...)
{
    if (b->j.rc != 0)
        return;

    char what[200], place[64] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    size_t n = put_place(b, place, sizeof place);
    fault_set(&b->fault, QE_BAD_REQUEST, "%s%s%s", place, n > 0 ? ": " : "", what);
    js_fail(&b->j, QE_BAD_REQUEST, NULL);
}

static void body_too_large(struct body *b)
{
    int rc = b->arena->rc;

    if (b->j.rc != 0)
        return;
    if (rc == QE_NO_MEMORY)
        fault_set(&b->fault, rc, "%s", err_text(rc));
    else if (rc == QE_TOO_LARGE)
        fault_set(&b->fault, rc,
                  "the request needs more than %zu bytes of memory (QUEEN_MAX_REQUEST_MEMORY): "
                  "send it in parts",
                  b->arena->max);
    else
        rc = fault_set(&b->fault, QE_TOO_LARGE,
                       "more than %u elements in one request (QUEEN_MAX_REQUEST_ITEMS): send "
                       "them in parts",
                       b->max_items);
    js_fail(&b->j, rc, NULL);
}

void *body_grow(struct body *b, void *items, unsigned n, unsigned *cap, size_t size,
                size_t guess)
{
    if (n < *cap && b->arena->rc == 0)
        return items;
    if (n >= b->max_items || b->arena->rc != 0) {
        body_too_large(b);
        return NULL;
    }
    // The guess comes from the sender's bytes: limit it per step.
    size_t wanted = n == 0 ? 1 : guess;
    if (wanted < 2 * (size_t)n)
        wanted = 2 * (size_t)n;
    if (wanted > 8 * (size_t)n + 8)
        wanted = 8 * (size_t)n + 8;
    if (wanted > b->max_items)
        wanted = b->max_items;
    *cap = (unsigned)(wanted > 0 ? wanted : 1);
    void *more = arena_try_alloc(b->arena, size * *cap);
    if (!more)
        body_too_large(b);
    else if (n > 0)
        memcpy(more, items, size * n);
    return more;
}

int body_finish(struct body *b)
{
    if (b->arena->rc != 0)
        body_too_large(b);
    int rc = js_finish(&b->j);
    if (rc != QE_BAD_JSON)
        return rc;

    char place[64] = "";
    size_t n = put_place(b, place, sizeof place);
    const char *why = b->j.start == b->j.end ? "the body is empty"
                      : b->j.why             ? b->j.why
                                             : "something follows the value";
    return fault_set(&b->fault, rc, "Invalid JSON at byte %zu%s%s: %s", js_offset(&b->j),
                     n > 0 ? ", " : "", place, why);
}

unsigned body_field_of(span key, const span *names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (key.len == names[i].len && memcmp(key.ptr, names[i].ptr, key.len) == 0)
            return i;
    if (key.len > 0 && memchr(key.ptr, '\\', key.len))
        for (unsigned i = 0; i < n; i++)
            if (js_key_is(key, names[i]))
                return i;
    return n;
}

void body_enter_object(struct body *b)
{
    enum js_type type = js_peek(&b->j);

    if (type != JS_OBJECT && type != JS_NONE)
        body_bad(b, b->at < 0 ? "the body must be an object" : "must be an object");
    js_enter_object(&b->j);
}

void body_check_member(struct body *b, span key, const struct known_names *known)
{
    struct fault why;

    if (b->j.rc == 0 && known_check(key, known, b->unknown, "member", &why) != 0)
        body_bad(b, "%s", why.text);
}

void body_read_fields(struct body *b, const span *names, unsigned n, span *raw)
{
    span key;

    for (unsigned i = 0; i < n; i++)
        raw[i] = SPAN_NONE;
    body_enter_object(b);
    while (js_next_key(&b->j, &key)) {
        unsigned i = body_field_of(key, names, n);
        span value = js_skip(&b->j);
        if (i < n)
            raw[i] = value;
        else
            body_check_member(b, key, &(struct known_names){.spans = names, .n_spans = n});
    }
}

static bool is_missing(span raw) { return raw.len == 0 || js_type_of(raw) == JS_NULL; }

span body_text(struct body *b, span raw, const char *name)
{
    if (is_missing(raw))
        return SPAN_NONE;
    if (js_type_of(raw) != JS_STRING) {
        body_bad(b, "%s must be a string", name);
        return SPAN_NONE;
    }
    return js_text(raw, b->arena);
}

static void check_length(struct body *b, span text, const char *name)
{
    if (text.len > API_NAME_CHARS && str_utf8_chars(text) > API_NAME_CHARS)
        body_bad(b, "%s is longer than %d characters", name, API_NAME_CHARS);
}

span body_name(struct body *b, span raw, const char *name)
{
    span text = body_text(b, raw, name);

    check_length(b, text, name);
    return text.len > 0 ? text : SPAN_NONE;
}

span body_text_or_none(struct body *b, span raw)
{
    span text = js_type_of(raw) == JS_STRING ? js_text(raw, b->arena) : SPAN_NONE;

    return text.len > 0 ? text : SPAN_NONE;
}

span body_option(struct body *b, span raw, const char *name)
{
    span text = body_text(b, raw, name);

    return text.len > 0 ? text : SPAN_NONE;
}

static void take_context(struct body *b, const span raw[ITEM_FIELDS], struct push_item *item)
{
    span parent = body_text(b, raw[ITEM_TRACEPARENT], "traceparent");
    span state = body_text(b, raw[ITEM_TRACESTATE], "tracestate");

    if (b->j.rc != 0 || parent.len == 0)
        return;
    if (!trace_parent_is_valid(parent))
        body_bad(b, "traceparent is not one of W3C Trace Context");
    else if (!trace_state_is_valid(state))
        body_bad(b, "tracestate must be at most %d printable characters", TRACE_STATE_CHARS);
    else
        item->meta = trace_context(b->arena, parent, state);
}

static void take_fields(struct body *b, const span raw[ITEM_FIELDS], struct push_item *item)
{
    struct message_fields f = {
        .correlation = body_name(b, raw[ITEM_CORRELATION], "correlationId"),
        .type = body_name(b, raw[ITEM_EVENT_TYPE], "eventType"),
    };

    if (!is_missing(raw[ITEM_RETRY_POLICY])) {
        struct fault why;
        f.policy = raw[ITEM_RETRY_POLICY];
        if (retry_policy_check(f.policy, &why) != 0)
            body_bad(b, "%s", why.text);
    }
    if (b->j.rc != 0)
        return;
    item->correlation = f.correlation;
    item->meta = message_fields_add(b->arena, item->meta, &f);
}

static void take_partition_key(struct body *b, span raw, struct push_item *item)
{
    span key = body_name(b, raw, "partitionKey");

    if (key.ptr && item->partition.ptr)
        body_bad(b, "partition and partitionKey are both given");
    if (!key.ptr)
        return;
    item->partition = key;
    item->by_key = b->has_keys = true;
}

// Messages with a priority have a partition of their own: docs/internals/adr/0090.
static void add_priority(struct body *b, int64_t priority, struct push_item *item)
{
    struct buf name = {.cap = item->partition.len + 3};
    name.ptr = arena_alloc(b->arena, name.cap);
    buf_put(&name, item->partition);
    buf_put_lit(&name, "~p");
    buf_put_u64(&name, (uint64_t)priority);
    item->partition = buf_span(&name);
    check_length(b, item->partition, "partition or concurrencyKey, with its priority,");
}

static int64_t read_priority(struct body *b, span raw, const struct push_item *item)
{
    int64_t priority;

    if (!raw.ptr || is_missing(raw))
        return 0;
    if (js_type_of(raw) != JS_NUMBER || !js_int(raw, &priority) || priority < 0 ||
        priority >= LANE_PRIORITIES) {
        body_bad(b, "priority must be a whole number from 0 to %d", LANE_PRIORITIES - 1);
        return 0;
    }
    if (item->by_key)
        body_bad(b, "priority and partitionKey are both given");
    return priority;
}

// The key takes the place of the partition: messages with the same key share one.  A key that
// ends like a priority has none: tenants choose their keys, and not how urgent they are.
static void take_key_and_priority(struct body *b, span raw_key, span raw_priority,
                                  struct push_item *item)
{
    span key = raw_key.ptr ? body_name(b, raw_key, "concurrencyKey") : SPAN_NONE;

    if (key.ptr && item->partition.ptr)
        body_bad(b, "concurrencyKey is given together with partition or partitionKey");
    else if (key.ptr)
        item->partition = key;
    if (!item->partition.ptr)
        item->partition = SPAN("Default");
    int64_t priority = read_priority(b, raw_priority, item);
    if (priority > 0 || (key.ptr && lane_names_priority(key)))
        add_priority(b, priority, item);
}

void body_take_item(struct body *b, const span raw[ITEM_FIELDS], span no_payload,
                    struct push_item *item)
{
    if (b->j.rc != 0)
        return;
    if (js_type_of(raw[ITEM_QUEUE]) != JS_STRING) {
        body_bad(b, "queue must be a string");
        return;
    }
    item->queue = js_text(raw[ITEM_QUEUE], b->arena);
    if (item->queue.len == 0)
        body_bad(b, "queue must not be empty");
    check_length(b, item->queue, "queue");
    item->partition = body_name(b, raw[ITEM_PARTITION], "partition");
    item->by_key = false;
    if (raw[ITEM_PARTITION_KEY].ptr)
        take_partition_key(b, raw[ITEM_PARTITION_KEY], item);
    take_key_and_priority(b, raw[ITEM_CONCURRENCY_KEY], raw[ITEM_PRIORITY], item);
    item->payload = raw[ITEM_PAYLOAD].ptr ? raw[ITEM_PAYLOAD] : no_payload;
    item->producer = b->producer;
    item->meta = b->meta;
    if (raw[ITEM_TRACEPARENT].ptr)
        take_context(b, raw, item);
    item->correlation = SPAN_NONE;
    if (raw[ITEM_CORRELATION].ptr || raw[ITEM_EVENT_TYPE].ptr || raw[ITEM_RETRY_POLICY].ptr)
        take_fields(b, raw, item);

    body_take_time(b, raw[ITEM_SCHEDULED_AT], raw[ITEM_DELAY], item);

    span trace = body_name(b, raw[ITEM_TRACE], "traceId");
    item->has_trace = trace.ptr && id_parse_uuid(trace, item->trace);
    if (trace.ptr && !item->has_trace)
        body_bad(b, "traceId must be a UUID");

    item->txid = body_name(b, raw[ITEM_TXID], "transactionId");
    if (b->j.rc != 0)
        return;
    if (item->txid.ptr) {
        item->txid_is_key = key_of_text(item->txid, item->key);
    } else {
        id_uuid7(item->key);
        item->txid_is_key = true;
    }
}

static enum ack_status status_of(span text)
{
    static const struct {
        span text;
        enum ack_status status;
    } known[] = {
        {{"completed", 9}, ACK_COMPLETED}, {{"success", 7}, ACK_COMPLETED},
        {{"failed", 6}, ACK_FAILED},       {{"dlq", 3}, ACK_DLQ},
        {{"retry", 5}, ACK_RETRY},
    };

    for (unsigned i = 0; i < countof(known); i++)
        if (span_eq(text, known[i].text))
            return known[i].status;
    return ACK_UNKNOWN;
}

// One of earlierTries; an error text may be null or missing.
static bool is_try(struct js *j)
{
    bool has_age = false, ok = true;
    span key;

    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span value = js_skip(j);
        int64_t ms;
        if (j->rc != 0)
            return false;
        if (js_key_is(key, SPAN("agoMs")))
            ok = has_age = js_type_of(value) == JS_NUMBER && js_int(value, &ms) && ms >= 0 &&
                           ms <= ACK_AFTER_MAX * 1000LL;
        else if (js_key_is(key, SPAN("error")) || js_key_is(key, SPAN("errorCode")))
            ok = js_type_of(value) == JS_STRING || js_type_of(value) == JS_NULL;
        else
            ok = false;
        if (!ok)
            return false;
    }
    return has_age;
}

// The text itself goes to the database, which reads the same JSON as we do.
static span take_tries(struct body *b, span raw)
{
    struct js j = js_read(raw);
    unsigned n = 0;
    bool ok = true;

    if (raw.len == 0 || js_type_of(raw) == JS_NULL)
        return SPAN_NONE;
    js_enter_array(&j);
    while (ok && js_next_item(&j))
        ok = is_try(&j) && ++n <= ACK_TRIES_MAX;
    if (!ok || js_finish(&j) != 0)
        body_bad(
            b,
            "earlierTries must be an array of at most %d objects with agoMs (a whole number "
            "from 0 to %lld), error and errorCode",
            ACK_TRIES_MAX, ACK_AFTER_MAX * 1000LL);
    return n > 0 ? raw : SPAN_NONE;
}

// Each costs more than a completion: a retry or a dead letter, and a row of history.
static void count_failure(struct body *b)
{
    if (b->j.rc != 0 || b->max_failures == 0 || ++b->n_failures <= b->max_failures)
        return;
    fault_set(&b->fault, QE_TOO_LARGE,
              "more than %u acknowledgements other than completed in one request cannot be "
              "settled within DB_STATEMENT_TIMEOUT: send them in parts",
              b->max_failures);
    js_fail(&b->j, QE_TOO_LARGE, NULL);
}

void body_take_ack(struct body *b, const span raw[ACK_FIELDS], struct ack_entry *entry,
                   span *status, span *group)
{
    if (b->j.rc != 0)
        return;
    if (js_type_of(raw[ACK_TXID]) != JS_STRING) {
        body_bad(b, "transactionId must be a string");
        return;
    }
    if (js_type_of(raw[ACK_PARTITION]) != JS_STRING) {
        body_bad(b, "partitionId must be a string");
        return;
    }
    entry->txid = js_text(raw[ACK_TXID], b->arena);
    entry->bad_partition =
        !id_parse_uuid(js_text(raw[ACK_PARTITION], b->arena), entry->partition_id);
    // The public contract: another type than a string counts as absent.
    entry->lease = body_text_or_none(b, raw[ACK_LEASE]);
    entry->error = body_text_or_none(b, raw[ACK_ERROR]);
    entry->code = body_option(b, raw[ACK_ERROR_CODE], "errorCode");
    entry->worker = body_option(b, raw[ACK_WORKER], "worker");

    // An empty status is not a missing one: the client meant something by it.
    *status = body_text(b, raw[ACK_STATUS], "status");
    if (!status->ptr)
        *status = SPAN("completed");
    entry->status = status_of(*status);
    if (entry->status != ACK_COMPLETED)
        count_failure(b);
    entry->after_s = -1;
    if (raw[ACK_RETRY_AFTER].len > 0 && js_type_of(raw[ACK_RETRY_AFTER]) != JS_NULL) {
        int64_t after;
        if (!js_int(raw[ACK_RETRY_AFTER], &after) || after < 0 || after > ACK_AFTER_MAX ||
            entry->status != ACK_RETRY)
            body_bad(
                b,
                "retryAfter must be a whole number from 0 to %d (seconds), with the status "
                "retry",
                ACK_AFTER_MAX);
        else
            entry->after_s = (int32_t)after;
    }
    entry->tries = take_tries(b, raw[ACK_TRIES]);
    *group = body_text_or_none(b, raw[ACK_GROUP]);
    check_length(b, *group, "consumerGroup");
}
