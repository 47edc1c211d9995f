// POST /streams/v1/cycle: state changes, sink pushes and the source acknowledgement of a
// stream, all or nothing.
//
// A malformed request gets 400.  A well-formed one that cannot be done gets 200 with
// "success": false, because clients retry a 5xx: nothing of it has happened then.
#include "api/api_int.h"
#include "api/permission.h"
#include "api/trace_context.h"
#include "base/id.h"
#include "segment/keys.h"
#include "json/write.h"

enum { KEY_BYTES = 2048 }; // of a state key: what an index entry surely takes

enum { F_QUERY, F_PARTITION, F_GROUP, F_STATES, F_ITEMS, F_ACK, F_RELEASE, FIELDS };
static const span field_names[FIELDS] = {
    [F_QUERY] = {"query_id", 8},         [F_PARTITION] = {"partition_id", 12},
    [F_GROUP] = {"consumer_group", 14},  [F_STATES] = {"state_ops", 9},
    [F_ITEMS] = {"push_items", 10},      [F_ACK] = {"ack", 3},
    [F_RELEASE] = {"release_lease", 13},
};

enum { S_TYPE, S_KEY, S_VALUE, STATE_FIELDS };
static const span state_names[STATE_FIELDS] = {
    [S_TYPE] = {"type", 4},
    [S_KEY] = {"key", 3},
    [S_VALUE] = {"value", 5},
};

enum { A_TXID, A_LEASE, A_STATUS, A_COUNT, A_ERROR, ACK_NAMES };
static const span ack_names[ACK_NAMES] = {
    [A_TXID] = {"transactionId", 13}, [A_LEASE] = {"leaseId", 7}, [A_STATUS] = {"status", 6},
    [A_COUNT] = {"count", 5},         [A_ERROR] = {"error", 5},
};

// In the request's arena.
struct cycle {
    struct http_req *req;
    struct cycle_op op;
    struct cycle_ack ack;
    unsigned cap_states, cap_items;
    // Rejected before the call to the database: the reason, and the rejected value.
    const char *refused;
    span given;
    unsigned n_before; // state operations before the one at fault
};

static void cycle_handle(struct http_req *req);
static int read_cycle_body(struct cycle *c, struct body *b);
static void read_uuid(struct body *b, span raw, const char *name, uint8_t out[16]);
static void read_states(struct cycle *c, struct body *b, span raw);
static void take_state(struct cycle *c, struct body *b, const span *raw);
static void read_items(struct cycle *c, struct body *b, span raw);
static void read_ack(struct cycle *c, struct body *b, span raw, span release);
static void on_decided(struct cycle_op *op, int status);
static void api_cycle_reply(struct cycle *c);

static void cycle_handle(struct http_req *req)
{
    struct api *api = http_req_app(req);
    struct cycle *c = arena_new(http_req_arena(req), struct cycle);
    c->req = req;
    c->op.arena = http_req_arena(req);
    c->op.done = on_decided;
    (void)key_of_text(http_req_body(req), c->op.hash);

    struct body b = body_open(req, "");
    b.meta = trace_context_of(req);
    if (read_cycle_body(c, &b) != 0)
        http_reply_fault(req, &b.fault);
    else if (c->refused)
        api_cycle_reply(c);
    else if (c->op.n_items == 0 || permission_may_store(req))
        broker_cycle(api->broker, &c->op);
}

static int read_cycle_body(struct cycle *c, struct body *b)
{
    span raw[FIELDS];

    body_read_fields(b, field_names, FIELDS, raw);
    if (body_finish(b) != 0)
        return b->fault.code;
    // The grammar is valid; the rest checks the meaning of the values.
    read_uuid(b, raw[F_QUERY], "query_id", c->op.query);
    read_uuid(b, raw[F_PARTITION], "partition_id", c->op.partition);
    c->op.group = body_name(b, raw[F_GROUP], "consumer_group");
    if (!c->op.group.ptr)
        c->op.group = API_QUEUE_MODE;
    read_states(c, b, raw[F_STATES]);
    read_items(c, b, raw[F_ITEMS]);
    read_ack(c, b, raw[F_ACK], raw[F_RELEASE]);
    return b->j.rc == 0 ? 0 : b->fault.code;
}

static void read_uuid(struct body *b, span raw, const char *name, uint8_t out[16])
{
    if (js_type_of(raw) != JS_STRING || !id_parse_uuid(js_text(raw, b->arena), out))
        body_bad(b, "%s must be a UUID", name);
}

// A cursor over an array inside the body, whose mistakes name its elements; false: there is
// none.
static bool open_array(struct body *b, span raw, const char *name, const char *noun,
                       struct body *inner)
{
    enum js_type type = js_type_of(raw);

    if (b->j.rc != 0 || type == JS_NONE || type == JS_NULL)
        return false;
    if (type != JS_ARRAY) {
        body_bad(b, "%s must be an array", name);
        return false;
    }
    *inner = *b;
    inner->j = js_read(raw);
    inner->noun = noun;
    js_enter_array(&inner->j);
    return true;
}

static void close_array(struct body *b, const struct body *inner)
{
    if (inner->j.rc == 0)
        return;
    b->fault = inner->fault;
    js_fail(&b->j, inner->j.rc, inner->j.why);
}

static void api_cycle_refuse(struct cycle *c, const char *why, span given)
{
    if (c->refused)
        return;
    c->refused = why;
    c->given = given;
    c->n_before = c->op.n_states;
}

static void read_states(struct cycle *c, struct body *b, span raw)
{
    struct body inner;
    span fields[STATE_FIELDS];

    if (!open_array(b, raw, "state_ops", "state_ops", &inner))
        return;
    while (js_next_item(&inner.j)) {
        inner.at++;
        body_read_fields(&inner, state_names, STATE_FIELDS, fields);
        take_state(c, &inner, fields);
    }
    close_array(b, &inner);
}

static void take_state(struct cycle *c, struct body *b, const span *raw)
{
    struct cycle_op *op = &c->op;
    span type = body_text(b, raw[S_TYPE], "type"), key = body_text(b, raw[S_KEY], "key");

    if (b->j.rc != 0)
        return;
    bool upsert = span_eq(type, SPAN("upsert"));
    if (!upsert && !span_eq(type, SPAN("delete"))) {
        api_cycle_refuse(c, "Unknown state operation type", type);
        return;
    }
    if (!key.ptr) {
        api_cycle_refuse(c, "A state operation has no key", SPAN_NONE);
        return;
    }
    if (key.len > KEY_BYTES) {
        body_bad(b, "key is longer than %d bytes", KEY_BYTES);
        return;
    }
    op->states = body_grow(b, op->states, op->n_states, &c->cap_states, sizeof *op->states, 0);
    if (!op->states)
        return;
    op->states[op->n_states++] = (struct cycle_state){
        .key = key,
        .value = !upsert            ? SPAN_NONE
                 : raw[S_VALUE].ptr ? raw[S_VALUE]
                                    : SPAN("{}"),
    };
}

static void read_items(struct cycle *c, struct body *b, span raw)
{
    struct cycle_op *op = &c->op;
    struct body inner;
    span fields[ITEM_FIELDS];

    if (!open_array(b, raw, "push_items", "push_items", &inner))
        return;
    while (js_next_item(&inner.j)) {
        inner.at++;
        op->items =
            body_grow(&inner, op->items, op->n_items, &c->cap_items, sizeof *op->items, 0);
        if (!op->items)
            break;
        body_read_fields(&inner, body_item_names, ITEM_FIELDS, fields);
        body_take_item(&inner, fields, SPAN("{}"), &op->items[op->n_items]);
        if (op->items[op->n_items].when != PUSH_NOW)
            body_bad(&inner, "a stream cannot push for later");
        if (op->items[op->n_items].by_key)
            body_bad(&inner, "a stream pushes to partitions, not by partitionKey");
        op->n_items++;
    }
    close_array(b, &inner);
}

static void take_status(struct cycle *c, struct body *b, span raw)
{
    span status = body_text(b, raw, "ack.status");

    if (!status.ptr || span_eq(status, SPAN("completed")) || span_eq(status, SPAN("success")))
        c->ack.dead = false;
    else if (span_eq(status, SPAN("failed")) || span_eq(status, SPAN("dlq")))
        c->ack.dead = true;
    else
        api_cycle_refuse(c, "Status not allowed in a cycle", status);
}

static void read_ack(struct cycle *c, struct body *b, span raw, span release)
{
    span fields[ACK_NAMES];
    int64_t count = 1;

    c->ack.release = true;
    if (js_type_of(release) != JS_NONE && js_type_of(release) != JS_NULL &&
        !js_bool(release, &c->ack.release))
        body_bad(b, "release_lease must be true or false");
    if (b->j.rc != 0 || js_type_of(raw) == JS_NONE || js_type_of(raw) == JS_NULL)
        return;
    if (js_type_of(raw) != JS_OBJECT) {
        body_bad(b, "ack must be an object");
        return;
    }
    struct body inner = *b;
    inner.j = js_read(raw);
    body_read_fields(&inner, ack_names, ACK_NAMES, fields);

    span txid = body_text(b, fields[A_TXID], "ack.transactionId");
    span lease = body_text(b, fields[A_LEASE], "ack.leaseId");
    if (txid.len == 0)
        body_bad(b, "ack.transactionId must be a string that is not empty");
    if (js_type_of(fields[A_COUNT]) != JS_NONE && js_type_of(fields[A_COUNT]) != JS_NULL &&
        (!js_int(fields[A_COUNT], &count) || count < 0 || count > INT32_MAX))
        body_bad(b, "ack.count must be a whole number from 0 to 2147483647");
    take_status(c, b, fields[A_STATUS]);
    span error = body_text(b, fields[A_ERROR], "ack.error");
    if (b->j.rc != 0)
        return;
    (void)key_of_text(txid, c->ack.key);
    c->ack.has_lease = lease.len > 0;
    if (c->ack.has_lease)
        (void)key_of_text(lease, c->ack.lease);
    c->ack.count = (int32_t)count;
    c->ack.error = error;
    c->op.ack = &c->ack;
}

static void on_decided(struct cycle_op *op, int status)
{
    struct cycle *c = container_of(op, struct cycle, op);

    api_note_db(c->req, &op->op);
    if (status != 0)
        api_reply_failed(c->req, status, &op->op.why);
    else
        api_cycle_reply(c);
}

// ---- the answer ----

static void cycle_put_error(struct buf *out, const struct cycle *c)
{
    buf_put_lit(out, ",\"error\":\"");
    if (c->refused) {
        buf_put(out, span_of(c->refused));
        if (c->given.ptr) {
            buf_put_lit(out, ": ");
            js_put_escaped(out, c->given);
        }
    } else {
        js_put_escaped(out, c->op.error.len > 0 ? c->op.error : SPAN("Cycle failed"));
    }
    buf_putc(out, '"');
}

static void put_ack_result(struct buf *out, const struct cycle *c)
{
    if (!c->op.committed || !c->op.ack) {
        buf_put_lit(out, "null");
        return;
    }
    buf_put_lit(out, "{\"success\":true,\"count\":");
    buf_put_u64(out, (uint64_t)c->ack.count);
    buf_put_lit(out, ",\"lease_released\":");
    js_put_bool(out, c->op.released);
    buf_put_lit(out, ",\"dlq\":");
    js_put_bool(out, c->ack.dead);
    buf_putc(out, '}');
}

// After a rollback or without a try, report results only if all of them are known.
static bool has_results(const struct cycle *c)
{
    for (unsigned i = 0; i < c->op.n_items; i++)
        if (c->refused || c->op.items[i].status == PUSH_PENDING)
            return false;
    return true;
}

static void api_cycle_reply(struct cycle *c)
{
    struct cycle_op *op = &c->op;
    struct buf out = {0};

    buf_put_lit(&out, "{\"success\":");
    js_put_bool(&out, op->committed);
    buf_put_lit(&out, ",\"query_id\":\"");
    buf_put_uuid(&out, op->query);
    buf_put_lit(&out, "\",\"partition_id\":\"");
    buf_put_uuid(&out, op->partition);
    buf_put_lit(&out, "\",\"queueName\":");
    if (op->source.ptr)
        js_put_text(&out, op->source);
    else
        buf_put_lit(&out, "null");
    buf_put_lit(&out, ",\"state_ops_applied\":");
    buf_put_u64(&out, c->refused ? c->n_before : op->n_states);
    buf_put_lit(&out, ",\"push_results\":");
    if (has_results(c))
        push_put_results(&out, op->arena, http_req_body(c->req), op->items, op->n_items);
    else
        buf_put_lit(&out, "[]");
    buf_put_lit(&out, ",\"ack_result\":");
    put_ack_result(&out, c);
    if (!op->committed)
        cycle_put_error(&out, c);
    buf_putc(&out, '}');
    http_reply_json(c->req, 200, &out);
}

const struct http_route api_cycle = {
    .verb = HTTP_POST,
    .path = "/streams/v1/cycle",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_ALL,
    .need = MAY_PUSH | MAY_POP,
    .op = "stream_cycle",
    .handle = cycle_handle,
    .unknown = UNKNOWN_IGNORED,
};
