// POST /api/v1/transaction: pushes and acknowledgements, all or nothing.
//
// A malformed request gets 400.  A well-formed one that cannot be done gets 200 with
// "success": false, because clients retry a 5xx and take a 4xx for their own mistake: nothing
// of it has happened then.
#include "api/messages/transaction_int.h"

#include "api/partition_key.h"
#include "api/permission.h"
#include "api/trace_context.h"
#include "api/tracing.h"
#include "auth/rules.h"
#include "base/id.h"

static void tx_handle(struct http_req *req);
static int read_transaction_body(struct tx *t, struct body *b);
static void api_tx_start(void *ctx);
static void api_tx_permitted(void *ctx, span queue);
static void read_operations(struct tx *t, struct body *b);
static void read_operation(struct tx *t, struct body *b);
static void take_push(struct tx *t, struct body *b, const span *raw);
static void take_item(struct tx *t, struct body *b, const span *raw);
static void take_ack(struct tx *t, struct body *b, const span *raw);
static void read_required(struct tx *t, struct body *b);
static void on_decided(struct tx_op *op, int status);

// All fields that any kind of operation has; an operation is read before its kind is known.
// Those of an item come first and in the same order.
enum {
    F_QUEUE = ITEM_QUEUE,
    F_PARTITION = ITEM_PARTITION,
    F_PAYLOAD = ITEM_PAYLOAD,
    F_TXID = ITEM_TXID,
    F_TRACE = ITEM_TRACE,
    F_ITEMS = ITEM_FIELDS,
    F_DATA,
    F_TYPE,
    F_LANE_ID,
    F_STATUS,
    F_LEASE,
    F_GROUP,
    F_ERROR,
    F_ERROR_CODE,
    F_WORKER,
    FIELDS
};
static const span field_names[FIELDS] = {
    [F_QUEUE] = {"queue", 5},
    [F_PARTITION] = {"partition", 9},
    [F_PAYLOAD] = {"payload", 7},
    [F_TXID] = {"transactionId", 13},
    [F_TRACE] = {"traceId", 7},
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
    [F_ITEMS] = {"items", 5},
    [F_DATA] = {"data", 4},
    [F_TYPE] = {"type", 4},
    [F_LANE_ID] = {"partitionId", 11},
    [F_STATUS] = {"status", 6},
    [F_LEASE] = {"leaseId", 7},
    [F_GROUP] = {"consumerGroup", 13},
    [F_ERROR] = {"error", 5},
    [F_ERROR_CODE] = {"errorCode", 9},
    [F_WORKER] = {"worker", 6},
};

static void tx_handle(struct http_req *req)
{
    struct tx *t = arena_new(http_req_arena(req), struct tx);
    t->req = req;
    t->op.arena = http_req_arena(req);
    t->op.done = on_decided;
    t->op.failed_item = t->op.failed_entry = -1;
    id_uuid4(t->id);

    struct body b = body_open(req, "operation");
    b.meta = trace_context_of(req);
    if (read_transaction_body(t, &b) != 0)
        http_reply_fault(req, &b.fault);
    else if (t->refused || t->n_steps == 0)
        tx_reply(t, !t->refused); // nothing to send to the database
    else if (b.has_keys)
        partition_keys_resolve(req, t->op.items, t->op.n_items, api_tx_start, t);
    else
        api_tx_start(t);
}

static void api_tx_start(void *ctx)
{
    struct tx *t = ctx;

    if (!permission_check_items(t->req, t->op.items, t->op.n_items))
        return;
    if (t->op.n_entries == 0) {
        api_tx_permitted(t, SPAN_NONE);
        return;
    }
    permission_check_partitions(t->req, MAY_POP,
                                &(struct permission_ids){.first = t->op.entries[0].partition_id,
                                                         .stride = sizeof t->op.entries[0],
                                                         .n = t->op.n_entries,
                                                         .groups = t->op.entry_groups},
                                api_tx_permitted, t);
}

static void api_tx_permitted(void *ctx, span queue)
{
    struct tx *t = ctx;
    struct api *api = http_req_app(t->req);

    (void)queue;
    tracing_note_items(t->req, t->op.items, t->op.n_items);
    broker_transaction(api->broker, &t->op);
}

static int read_transaction_body(struct tx *t, struct body *b)
{
    static const char *const names[] = {"operations", "requiredLeases", NULL};
    static const struct known_names known = {.texts = names};
    span key;

    body_enter_object(b);
    while (js_next_key(&b->j, &key)) {
        if (js_key_is(key, SPAN("operations"))) {
            read_operations(t, b);
        } else if (js_key_is(key, SPAN("requiredLeases"))) {
            read_required(t, b);
        } else {
            body_check_member(b, key, &known);
            js_skip(&b->j);
        }
    }
    int rc = body_finish(b);
    if (rc == 0 && t->n_operations == 0)
        rc = fault_set(&b->fault, QE_BAD_REQUEST, "operations must be a non-empty array");
    return rc;
}

static void read_operations(struct tx *t, struct body *b)
{
    // The last of two equal keys wins.
    t->n_operations = t->n_steps = t->op.n_items = t->op.n_entries = 0;
    t->refused = false;
    if (js_peek(&b->j) != JS_ARRAY) {
        js_skip(&b->j);
        return;
    }
    js_enter_array(&b->j);
    while (js_next_item(&b->j)) {
        b->at = t->n_operations++;
        read_operation(t, b);
    }
    if (b->j.rc == 0)
        b->at = -1;
}

static void add_step(struct tx *t, struct body *b, uint8_t kind, unsigned index)
{
    t->steps = body_grow(b, t->steps, t->n_steps, &t->cap_steps, sizeof *t->steps, 0);
    if (t->steps)
        t->steps[t->n_steps++] = (struct tx_step){.kind = kind, .index = index};
}

static void read_operation(struct tx *t, struct body *b)
{
    span raw[FIELDS];

    body_read_fields(b, field_names, FIELDS, raw);
    span type = body_text(b, raw[F_TYPE], "type");
    if (b->j.rc != 0)
        return;
    if (!type.ptr) {
        body_bad(b, "type must be a string");
    } else if (span_eq(type, SPAN("push"))) {
        take_push(t, b, raw);
    } else if (span_eq(type, SPAN("ack"))) {
        take_ack(t, b, raw);
    } else if (!t->refused) {
        t->refused = true;
        t->unknown_type = type;
        t->why = SPAN("Unknown operation type");
        add_step(t, b, STEP_UNKNOWN, 0);
    }
}

static void take_push(struct tx *t, struct body *b, const span *raw)
{
    span fields[FIELDS];

    if (js_type_of(raw[F_ITEMS]) == JS_NONE || js_type_of(raw[F_ITEMS]) == JS_NULL) {
        memcpy(fields, raw, sizeof fields);
        if (!fields[F_PAYLOAD].ptr)
            fields[F_PAYLOAD] = raw[F_DATA];
        take_item(t, b, fields);
        return;
    }
    if (js_type_of(raw[F_ITEMS]) != JS_ARRAY) {
        body_bad(b, "items must be an array");
        return;
    }
    // Read once already, so only meaning can be wrong now.
    struct body items = *b;
    items.j = js_read(raw[F_ITEMS]);
    items.item = -1;
    js_enter_array(&items.j);
    while (js_next_item(&items.j)) {
        items.item++;
        body_read_fields(&items, body_item_names, ITEM_FIELDS, fields);
        take_item(t, &items, fields);
    }
    b->has_keys = items.has_keys;
    if (items.j.rc != 0) {
        b->fault = items.fault;
        js_fail(&b->j, items.j.rc, items.j.why);
    }
}

// raw starts with the fields of an item, in the order of body_item_names.
static void take_item(struct tx *t, struct body *b, const span *raw)
{
    struct tx_op *op = &t->op;

    op->items = body_grow(b, op->items, op->n_items, &t->cap_items, sizeof *op->items, 0);
    if (!op->items)
        return;
    body_take_item(b, raw, SPAN("{}"), &op->items[op->n_items]);
    op->n_items++;
    if (!t->refused)
        add_step(t, b, TX_PUSH, op->n_items - 1);
}

static void take_ack(struct tx *t, struct body *b, const span *raw)
{
    struct tx_op *op = &t->op;
    unsigned n = op->n_entries;
    const span fields[ACK_FIELDS] = {
        [ACK_TXID] = raw[F_TXID],
        [ACK_PARTITION] = raw[F_LANE_ID],
        [ACK_STATUS] = raw[F_STATUS],
        [ACK_LEASE] = raw[F_LEASE],
        [ACK_GROUP] = raw[F_GROUP],
        [ACK_ERROR] = raw[F_ERROR],
        [ACK_ERROR_CODE] = raw[F_ERROR_CODE],
        [ACK_WORKER] = raw[F_WORKER],
    };
    span status;

    op->entries = body_grow(b, op->entries, n, &t->cap_entries, sizeof *op->entries, 0);
    if (op->entries)
        op->entry_groups =
            body_grow(b, op->entry_groups, n, &t->cap_groups, sizeof *op->entry_groups, 0);
    if (!op->entries || !op->entry_groups)
        return;
    body_take_ack(b, fields, &op->entries[n], &status, &op->entry_groups[n]);
    if (b->j.rc != 0)
        return;
    if (!op->entry_groups[n].ptr)
        op->entry_groups[n] = API_QUEUE_MODE;
    op->n_entries++;
    if (t->refused)
        return;
    add_step(t, b, TX_ACK, n);
    if (op->entries[n].status == ACK_UNKNOWN || op->entries[n].status == ACK_RETRY) {
        t->refused = true;
        t->why = SPAN("Status not allowed in a transaction");
        t->bad_status = status;
    }
}

// They guard the acknowledgements, so none may be left out.  Clients send null and "" for
// messages without a lease.
static void read_required(struct tx *t, struct body *b)
{
    struct tx_op *op = &t->op;

    op->n_required = 0;
    if (js_peek(&b->j) != JS_ARRAY) {
        if (js_type_of(js_skip(&b->j)) != JS_NULL)
            body_bad(b, "requiredLeases must be an array");
        return;
    }
    js_enter_array(&b->j);
    while (js_next_item(&b->j)) {
        span lease = body_option(b, js_skip(&b->j), "an element of requiredLeases");
        if (!lease.ptr)
            continue;
        op->required = body_grow(b, op->required, op->n_required, &t->cap_required,
                                 sizeof *op->required, 0);
        if (!op->required)
            return;
        op->required[op->n_required++] = lease;
    }
}

static void on_decided(struct tx_op *op, int status)
{
    struct tx *t = container_of(op, struct tx, op);

    api_note_db(t->req, &op->op);
    if (status != 0)
        api_reply_failed(t->req, status, &op->op.why);
    else
        tx_reply(t, op->committed);
}

const struct http_route api_transaction = {
    .verb = HTTP_POST,
    .path = "/api/v1/transaction",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_BODY,
    .need = MAY_PUSH | MAY_POP,
    .op = "transaction",
    .handle = tx_handle,
    .unknown = UNKNOWN_IGNORED,
};
