// push.c: sends messages in one request and decodes their results.
#include "push.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec.h"
#include "fail.h"

struct owned_results {
    struct queen_push_results pub;
    struct arena arena;
};

static void client_push_encode(const struct queen_message *messages, size_t n, struct buf *body,
                               struct queen_request *req, struct queen_error *err)
{
    *err = (struct queen_error){0};
    buf_put_lit(body, "{\"items\":[");
    for (size_t i = 0; i < n && err->code == 0; i++) {
        if (i > 0)
            buf_putc(body, ',');
        put_message(body, &messages[i], i, err);
    }
    buf_put_lit(body, "]}");
    if (err->code == 0 && body->failed)
        fail_set(err, QUEEN_E_MEMORY, "no memory for the request");
    *req = (struct queen_request){
        .method = "POST", .path = "/api/v1/push", .body = body->ptr, .body_len = body->len};
}

static enum queen_push_status status_of(span raw)
{
    if (span_eq(raw, SPAN("\"queued\"")))
        return QUEEN_QUEUED;
    if (span_eq(raw, SPAN("\"duplicate\"")))
        return QUEEN_DUPLICATE;
    if (span_eq(raw, SPAN("\"scheduled\"")))
        return QUEEN_SCHEDULED;
    return span_eq(raw, SPAN("\"buffered\"")) ? QUEEN_BUFFERED : QUEEN_FAILED;
}

static void read_result(struct js *j, struct arena *a, struct queen_push_result *r)
{
    span key;

    r->status = QUEEN_FAILED;
    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span raw = js_skip(j);
        if (j->rc != 0)
            return;
        if (span_eq(key, SPAN("status")))
            r->status = status_of(raw);
        else if (span_eq(key, SPAN("transactionId")) || span_eq(key, SPAN("transaction_id")))
            r->transaction_id = take_text(raw, a);
        else if (span_eq(key, SPAN("message_id")))
            r->message_id = take_text(raw, a);
        else if (span_eq(key, SPAN("partition_id")))
            r->partition_id = take_text(raw, a);
        else if (span_eq(key, SPAN("error")))
            r->error = take_text(raw, a);
        else if (span_eq(key, SPAN("scheduledAt")))
            r->scheduled_at = take_text(raw, a);
    }
}

struct queen_push_results *push_decode(struct queen_response *response, size_t n,
                                       struct queen_error *err)
{
    struct owned_results *o = mem_new(struct owned_results);
    struct js j = js_read((span){response->body, response->body_len});
    struct queen_push_result *items;
    size_t i = 0;

    arena_init(&o->arena);
    items = arena_new_array(&o->arena, struct queen_push_result, n);
    js_enter_array(&j);
    while (js_next_item(&j)) {
        if (i < n)
            read_result(&j, &o->arena, &items[i++]);
        else
            js_fail(&j, QUEEN_E_PROTOCOL, "more results than messages");
    }
    if (j.rc == 0 && i < n)
        js_fail(&j, QUEEN_E_PROTOCOL, "fewer results than messages");
    o->pub = (struct queen_push_results){n, items};
    queen_response_free(response);
    if (check_json(&j, "a push", err) == 0)
        return &o->pub;
    queen_push_results_free(&o->pub);
    return NULL;
}

void queen_push_results_free(struct queen_push_results *r)
{
    struct owned_results *o = container_of(r, struct owned_results, pub);

    if (!r)
        return;
    arena_deinit(&o->arena);
    free(o);
}

struct queen_push_results *queen_push(struct queen_client *c,
                                      const struct queen_message *messages, size_t n,
                                      struct queen_error *err)
{
    struct queen_request req;
    struct queen_error mine;
    struct buf body = {0};

    err = err ? err : &mine;
    client_push_encode(messages, n, &body, &req, err);
    struct queen_response *r = ask(c, &req, &body, err);
    return r ? push_decode(r, n, err) : NULL;
}

struct push_call {
    queen_push_cb done;
    void *ctx;
    size_t n;
};

static void on_client_pushed(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct push_call *p = ctx;
    struct queen_push_results *results = NULL;
    struct queen_error mine = *err;

    if (r && mine.code == 0)
        results = push_decode(r, p->n, &mine);
    else
        queen_response_free(r);
    p->done(results, &mine, p->ctx);
    free(p);
}

void queen_push_start(struct queen_client *c, const struct queen_message *messages, size_t n,
                      queen_push_cb done, void *ctx)
{
    struct push_call *p = mem_new(struct push_call);
    struct queen_request req;
    struct queen_error err;
    struct buf body = {0};

    *p = (struct push_call){done, ctx, n};
    client_push_encode(messages, n, &body, &req, &err);
    submit(c, &req, &body, &err, on_client_pushed, p);
}
