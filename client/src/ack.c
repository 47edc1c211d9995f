// ack.c: sends acknowledgements in one request and decodes their results.
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec.h"
#include "fail.h"

struct owned_results {
    struct queen_ack_results pub;
    struct arena arena;
};

struct queen_ack queen_ack_of(const struct queen_delivery *d, enum queen_ack_status status)
{
    return (struct queen_ack){
        .transaction_id = d->transaction_id,
        .partition_id = d->partition_id,
        .lease_id = d->lease_id,
        .status = status,
    };
}

static void put_tries(struct buf *body, const struct queen_ack *a)
{
    buf_put_lit(body, "\"earlierTries\":[");
    for (size_t i = 0; i < a->n_tries; i++) {
        buf_put(body, i > 0 ? SPAN(",{") : SPAN("{"));
        put_free_text(body, "error", a->tries[i].error);
        put_free_text(body, "errorCode", a->tries[i].error_code);
        buf_put_lit(body, "\"agoMs\":");
        buf_put_u64(body, a->tries[i].ago_ms);
        buf_putc(body, '}');
    }
    buf_put_lit(body, "],");
}

static void put_ack(struct buf *body, const struct queen_ack *a)
{
    buf_putc(body, '{');
    put_field(body, "transactionId", a->transaction_id);
    put_field(body, "partitionId", a->partition_id);
    put_field(body, "leaseId", a->lease_id && a->lease_id[0] != '\0' ? a->lease_id : NULL);
    put_free_text(body, "error", a->error);
    put_free_text(body, "errorCode", a->error_code);
    put_free_text(body, "worker", a->worker);
    if (a->n_tries > 0)
        put_tries(body, a);
    if (a->retry_after_s > 0) {
        buf_put_lit(body, "\"retryAfter\":");
        buf_put_u64(body, a->retry_after_s);
        buf_putc(body, ',');
    }
    buf_put_lit(body, "\"status\":\"");
    buf_put(body, span_of(ack_status_name(a->status)));
    buf_put_lit(body, "\"}");
}

static void client_ack_encode(const char *group, const struct queen_ack *acks, size_t n,
                              struct buf *body, struct queen_request *req,
                              struct queen_error *err)
{
    *err = (struct queen_error){0};
    buf_putc(body, '{');
    put_field(body, "consumerGroup", group);
    buf_put_lit(body, "\"acknowledgments\":[");
    for (size_t i = 0; i < n; i++) {
        if (!acks[i].transaction_id || !acks[i].partition_id)
            fail_set(err, QUEEN_E_ARGUMENT,
                     "acknowledgement %zu: transaction_id and partition_id must be given", i);
        if (i > 0)
            buf_putc(body, ',');
        put_ack(body, &acks[i]);
    }
    buf_put_lit(body, "]}");
    if (body->failed)
        fail_set(err, QUEEN_E_MEMORY, "no memory for the request");
    *req = (struct queen_request){.method = "POST",
                                  .path = "/api/v1/ack/batch",
                                  .body = body->ptr,
                                  .body_len = body->len};
}

static void read_result(struct js *j, struct arena *a, struct queen_ack_result *r)
{
    int64_t number;
    span key;

    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span raw = js_skip(j);
        if (j->rc != 0)
            return;
        if (span_eq(key, SPAN("success")))
            (void)js_bool(raw, &r->success);
        else if (span_eq(key, SPAN("dlq")))
            (void)js_bool(raw, &r->dlq);
        else if (span_eq(key, SPAN("error")))
            r->error = take_text(raw, a);
        else if (span_eq(key, SPAN("nextAttempt")) && js_int(raw, &number) && number > 0 &&
                 number <= INT_MAX)
            r->next_attempt = (int)number;
        else if (span_eq(key, SPAN("nextAttemptAt")))
            r->next_attempt_at = take_text(raw, a);
    }
}

// Takes the response.
static struct queen_ack_results *client_ack_decode(struct queen_response *response, size_t n,
                                                   struct queen_error *err)
{
    struct owned_results *o = mem_new(struct owned_results);
    struct js j = js_read((span){response->body, response->body_len});
    struct queen_ack_result *items;
    size_t i = 0;

    arena_init(&o->arena);
    items = arena_new_array(&o->arena, struct queen_ack_result, n);
    js_enter_array(&j);
    while (js_next_item(&j)) {
        if (i < n) {
            read_result(&j, &o->arena, &items[i]);
            o->pub.n_refused += !items[i++].success;
        } else {
            js_fail(&j, QUEEN_E_PROTOCOL, "more results than acknowledgements");
        }
    }
    if (j.rc == 0 && i < n)
        js_fail(&j, QUEEN_E_PROTOCOL, "fewer results than acknowledgements");
    o->pub.n = n;
    o->pub.items = items;
    queen_response_free(response);
    if (check_json(&j, "an acknowledgement", err) == 0)
        return &o->pub;
    queen_ack_results_free(&o->pub);
    return NULL;
}

void queen_ack_results_free(struct queen_ack_results *r)
{
    struct owned_results *o = container_of(r, struct owned_results, pub);

    if (!r)
        return;
    arena_deinit(&o->arena);
    free(o);
}

struct queen_ack_results *queen_ack(struct queen_client *c, const char *group,
                                    const struct queen_ack *acks, size_t n,
                                    struct queen_error *err)
{
    struct queen_request req;
    struct queen_error mine;
    struct buf body = {0};

    err = err ? err : &mine;
    client_ack_encode(group, acks, n, &body, &req, err);
    struct queen_response *r = ask(c, &req, &body, err);
    return r ? client_ack_decode(r, n, err) : NULL;
}

struct ack_call {
    queen_ack_cb done;
    void *ctx;
    size_t n;
};

static void on_client_acked(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct ack_call *a = ctx;
    struct queen_ack_results *results = NULL;
    struct queen_error mine = *err;

    if (r && mine.code == 0)
        results = client_ack_decode(r, a->n, &mine);
    else
        queen_response_free(r);
    a->done(results, &mine, a->ctx);
    free(a);
}

void queen_ack_start(struct queen_client *c, const char *group, const struct queen_ack *acks,
                     size_t n, queen_ack_cb done, void *ctx)
{
    struct ack_call *a = mem_new(struct ack_call);
    struct queen_request req;
    struct queen_error err;
    struct buf body = {0};

    *a = (struct ack_call){done, ctx, n};
    client_ack_encode(group, acks, n, &body, &req, &err);
    submit(c, &req, &body, &err, on_client_acked, a);
}
