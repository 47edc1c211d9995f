// transaction.c: collects operations and commits them in one request.
#include <stdlib.h>

#include "base/mem.h"
#include "codec.h"
#include "fail.h"
#include "json/write.h"

struct queen_transaction {
    struct buf operations; // JSON objects separated by commas
    struct buf leases;     // JSON strings separated by commas
    size_t n;
    struct queen_error err; // the first error
};

struct queen_transaction *queen_transaction_new(void)
{
    return mem_new(struct queen_transaction);
}

void queen_transaction_free(struct queen_transaction *t)
{
    if (!t)
        return;
    buf_free(&t->operations);
    buf_free(&t->leases);
    free(t);
}

static void next_operation(struct queen_transaction *t)
{
    if (t->n++ > 0)
        buf_putc(&t->operations, ',');
}

void queen_transaction_push(struct queen_transaction *t, const struct queen_message *m)
{
    struct queen_error err;

    next_operation(t);
    buf_put_lit(&t->operations, "{\"type\":\"push\",\"items\":[");
    if (put_message(&t->operations, m, t->n - 1, &err) != 0 && t->err.code == 0)
        t->err = err;
    buf_put_lit(&t->operations, "]}");
}

// Names each lease once, however many of its messages are acknowledged; they usually come in a
// row.
static void need_lease(struct queen_transaction *t, const char *lease_id)
{
    struct buf quoted = {0};
    span leases = buf_span(&t->leases);

    js_put_text(&quoted, span_of(lease_id));
    if (leases.len == 0 || !memmem(leases.ptr, leases.len, quoted.ptr, quoted.len)) {
        if (leases.len > 0)
            buf_putc(&t->leases, ',');
        buf_put(&t->leases, buf_span(&quoted));
    }
    buf_free(&quoted);
}

void queen_transaction_ack(struct queen_transaction *t, const struct queen_delivery *d,
                           const char *group, enum queen_ack_status status, const char *error)
{
    struct queen_ack ack = queen_ack_of(d, status);

    ack.error = error;
    queen_transaction_settle(t, group, &ack);
}

void queen_transaction_settle(struct queen_transaction *t, const char *group,
                              const struct queen_ack *ack)
{
    if ((!ack->transaction_id || !ack->partition_id) && t->err.code == 0)
        fail_set(&t->err, QUEEN_E_ARGUMENT,
                 "operation %zu: transaction_id and partition_id must be given", t->n);
    next_operation(t);
    buf_put_lit(&t->operations, "{\"type\":\"ack\",");
    put_field(&t->operations, "transactionId", ack->transaction_id);
    put_field(&t->operations, "partitionId", ack->partition_id);
    put_field(&t->operations, "consumerGroup", group);
    put_free_text(&t->operations, "error", ack->error);
    put_free_text(&t->operations, "errorCode", ack->error_code);
    put_free_text(&t->operations, "worker", ack->worker);
    buf_put_lit(&t->operations, "\"status\":\"");
    buf_put(&t->operations, span_of(ack_status_name(ack->status)));
    buf_put_lit(&t->operations, "\"}");
    if (ack->lease_id && ack->lease_id[0] != '\0')
        need_lease(t, ack->lease_id);
}

static void client_tx_encode(struct queen_transaction *t, struct buf *body,
                             struct queen_request *req, struct queen_error *err)
{
    *err = t->err;
    if (err->code == 0 && t->n == 0)
        fail_set(err, QUEEN_E_ARGUMENT, "the transaction is empty");
    buf_put_lit(body, "{\"operations\":[");
    buf_put(body, buf_span(&t->operations));
    buf_put_lit(body, "],\"requiredLeases\":[");
    buf_put(body, buf_span(&t->leases));
    buf_put_lit(body, "]}");
    if (err->code == 0 && (body->failed || t->operations.failed || t->leases.failed))
        fail_set(err, QUEEN_E_MEMORY, "no memory for the request");
    *req = (struct queen_request){.method = "POST",
                                  .path = "/api/v1/transaction",
                                  .body = body->ptr,
                                  .body_len = body->len,
                                  .once = true};
    queen_transaction_free(t);
}

// The status is 200 whether it was committed or not.
static void client_tx_decode(const struct queen_response *r, struct queen_error *err)
{
    struct js j = js_read((span){r->body, r->body_len});
    struct arena a;
    const char *why = NULL;
    bool success = false;
    span key;

    arena_init(&a);
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        if (j.rc == 0 && span_eq(key, SPAN("success")))
            (void)js_bool(raw, &success);
        else if (j.rc == 0 && span_eq(key, SPAN("error")))
            why = take_text(raw, &a);
    }
    if (check_json(&j, "a transaction", err) == 0 && !success) {
        fail_set(err, QUEEN_E_CONFLICT, "%s", why ? why : "the transaction was rolled back");
        err->http_status = r->status;
    }
    arena_deinit(&a);
}

int queen_transaction_commit(struct queen_client *c, struct queen_transaction *t,
                             struct queen_error *err)
{
    struct queen_request req;
    struct queen_error mine;
    struct buf body = {0};

    err = err ? err : &mine;
    client_tx_encode(t, &body, &req, err);
    struct queen_response *r = ask(c, &req, &body, err);
    if (r)
        client_tx_decode(r, err);
    queen_response_free(r);
    return err->code;
}

struct commit_call {
    queen_done_cb done;
    void *ctx;
};

static void on_committed(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct commit_call *p = ctx;
    struct queen_error mine = *err;

    if (r && mine.code == 0)
        client_tx_decode(r, &mine);
    queen_response_free(r);
    p->done(&mine, p->ctx);
    free(p);
}

void queen_transaction_commit_start(struct queen_client *c, struct queen_transaction *t,
                                    queen_done_cb done, void *ctx)
{
    struct commit_call *p = mem_new(struct commit_call);
    struct queen_request req;
    struct queen_error err;
    struct buf body = {0};

    *p = (struct commit_call){done, ctx};
    client_tx_encode(t, &body, &req, &err);
    submit(c, &req, &body, &err, on_committed, p);
}
