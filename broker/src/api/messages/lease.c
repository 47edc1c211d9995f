// POST /api/v1/lease/:leaseId/extend: {"seconds": 90, "transactionId": "..."}
//
// The body may be missing or empty in any of the ways that clients send it: nothing, {}, [],
// null.
#include "api/api_int.h"
#include "api/permission.h"
#include "base/id.h"
#include "base/str.h"
#include "segment/keys.h"

enum { DEFAULT_SECONDS = 60 };

// In the request's arena.
struct extend {
    struct http_req *req;
    struct renew_op op;
};

static void extend_handle(struct http_req *req);
static int read_extend(struct body *b, struct renew_op *op);
static void extend_permitted(void *ctx, span queue);
static void on_api_renewed(struct renew_op *op, int status);
static void api_lease_reply(struct extend *x);

static void extend_handle(struct http_req *req)
{
    struct extend *x = arena_new(http_req_arena(req), struct extend);
    x->req = req;
    x->op.done = on_api_renewed;

    struct body b = body_open(req, "");
    uint8_t id[16];
    if (!http_req_param(req, 0, &x->op.lease)) {
        http_reply_errf(req, QE_BAD_PARAM, "the lease id in the path is malformed");
    } else if (read_extend(&b, &x->op) != 0) {
        http_reply_fault(req, &b.fault);
    } else if (!id_parse_uuid(x->op.lease, id)) {
        x->op.why = 1; // all leases are UUIDs
        api_lease_reply(x);
    } else {
        (void)key_of_text(x->op.lease, id);
        permission_check_lease(req, id, extend_permitted, x);
    }
}

static void extend_permitted(void *ctx, span queue)
{
    struct extend *x = ctx;
    struct api *api = http_req_app(x->req);

    (void)queue;
    broker_renew(api->broker, &x->op);
}

static int read_extend(struct body *b, struct renew_op *op)
{
    static const span names[] = {{"seconds", 7}, {"transactionId", 13}};
    span raw[2] = {SPAN_NONE, SPAN_NONE};
    int64_t v = DEFAULT_SECONDS;

    op->seconds = DEFAULT_SECONDS;
    op->txid = SPAN_NONE;
    switch (js_peek(&b->j)) {
    case JS_NONE:
        if (b->j.pos == b->j.end)
            return 0; // no body, or only white space
        break;
    case JS_NULL:
        js_skip(&b->j);
        return body_finish(b);
    case JS_ARRAY:
        js_enter_array(&b->j);
        if (js_next_item(&b->j))
            body_bad(b, "the body must be an object");
        return body_finish(b);
    default:
        break;
    }
    body_read_fields(b, names, 2, raw);
    op->txid = body_text(b, raw[1], "transactionId");
    int rc = body_finish(b);
    if (rc != 0 || raw[0].len == 0 || js_type_of(raw[0]) == JS_NULL)
        return rc;
    if (!js_int(raw[0], &v) || v < 0)
        return fault_set(&b->fault, QE_BAD_REQUEST,
                         "seconds must be a whole number, 0 or more");
    op->seconds = (int32_t)(v > INT32_MAX ? INT32_MAX : v);
    return 0;
}

static void on_api_renewed(struct renew_op *op, int status)
{
    struct extend *x = container_of(op, struct extend, op);

    api_note_db(x->req, &op->op);
    if (status != 0)
        api_reply_failed(x->req, status, &op->op.why);
    else
        api_lease_reply(x);
}

// A failure is a 404: the status is all that clients look at.
static void api_lease_reply(struct extend *x)
{
    static const span names[] = {
        {"expiresAt", 9}, {"newExpiresAt", 12}, {"lease_expires_at", 16}};
    static const char *const errors[] = {[RENEW_NOT_FOUND] = "Lease not found",
                                         [RENEW_EXPIRED] = "Lease already expired",
                                         [RENEW_NOT_WORK] =
                                             "transactionId needs a lease of a work queue"};
    const struct renew_op *op = &x->op;
    int why = op->why >= 0 && op->why < (int)countof(errors) ? op->why : RENEW_NOT_FOUND;
    struct buf out = {0};
    char when[STR_TS_MS];

    buf_put_lit(&out, "{\"index\":0,\"leaseId\":\"");
    buf_put(&out, api_json_text(http_req_arena(x->req), op->lease, SPAN_NONE));
    if (why == RENEW_OK) {
        str_format_ts_ms(op->expires_us, when);
        buf_put_lit(&out, "\",\"success\":true,\"error\":null");
    } else {
        buf_printf(&out, "\",\"success\":false,\"error\":\"%s\"", errors[why]);
    }
    for (unsigned i = 0; i < countof(names); i++) {
        buf_printf(&out, ",\"" SPAN_FMT "\":", SPAN_ARG(names[i]));
        if (why == RENEW_OK)
            buf_printf(&out, "\"%.*s\"", (int)sizeof when, when);
        else
            buf_put_lit(&out, "null");
    }
    buf_putc(&out, '}');
    http_reply_json(x->req, why == RENEW_OK ? 200 : 404, &out);
}

const struct http_route api_extend = {
    .verb = HTTP_POST,
    .path = "/api/v1/lease/:leaseId/extend",
    .unaudited = true,
    .access = ACCESS_READ_WRITE,
    .target = TARGET_BODY,
    .need = MAY_POP,
    .op = "extend",
    .handle = extend_handle,
    .unknown = UNKNOWN_IGNORED,
};
