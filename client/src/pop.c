// pop.c: builds the path of a pop and decodes its messages.
#include "pop.h"

#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec.h"
#include "fail.h"

enum { DEFAULT_WAIT_MS = 30000, WAIT_MARGIN_MS = 5000 };

struct owned_batch {
    struct queen_batch pub;
    struct arena arena;
    struct queen_response *response; // its body holds the payloads
};

static void put_escaped(struct buf *out, const char *text)
{
    char *escaped = queen_escape(text);

    buf_put(out, span_of(escaped));
    free(escaped);
}

// The partition Default is not named in the path: the server finds it without a name.
static void put_path(struct buf *out, const struct queen_pop *pop)
{
    buf_put_lit(out, "/api/v1/pop");
    if (pop->queue) {
        buf_put_lit(out, "/queue/");
        put_escaped(out, pop->queue);
    }
    if (pop->queue && pop->partition && strcmp(pop->partition, "Default") != 0) {
        buf_put_lit(out, "/partition/");
        put_escaped(out, pop->partition);
    }
}

static void put_parameters(struct buf *out, const struct queen_pop *pop, unsigned wait_ms)
{
    put_query_u64(out, "batch", pop->batch > 0 ? pop->batch : 1);
    put_query(out, "wait", pop->wait ? "true" : "false");
    if (pop->wait)
        put_query_u64(out, "timeout", wait_ms);
    if (pop->partitions > 1)
        put_query_u64(out, "partitions", pop->partitions);
    put_query(out, "consumerGroup", pop->group);
    if (!pop->queue) {
        put_query(out, "namespace", pop->namespace_);
        put_query(out, "task", pop->task);
    }
    put_query(out, "autoAck", pop->auto_ack ? "true" : NULL);
    put_query(out, "subscriptionMode", pop->subscription_mode);
    put_query(out, "subscriptionFrom", pop->subscription_from);
    if (pop->owner) {
        put_query(out, "owner", pop->owner);
        put_query_u64(out, "epoch", (uint64_t)pop->epoch);
    }
}

// The affinity key that all clients use: queue:partition:group, or namespace:task:group.
static void put_key(struct buf *out, const struct queen_pop *pop)
{
    const char *first = pop->queue ? pop->queue : pop->namespace_;
    const char *second = pop->queue ? pop->partition : pop->task;

    buf_put(out, span_of(first ? first : "*"));
    buf_putc(out, ':');
    buf_put(out, span_of(second ? second : "*"));
    buf_putc(out, ':');
    buf_put(out, span_of(pop->group ? pop->group : "__QUEUE_MODE__"));
    buf_putc(out, '\0');
}

// path holds the path and, after its NUL, the key.
static void client_pop_encode(const struct queen_pop *pop, struct buf *path,
                              struct queen_request *req, struct queen_error *err)
{
    unsigned wait_ms = pop->timeout_ms > 0 ? pop->timeout_ms : DEFAULT_WAIT_MS;
    unsigned margin_ms = wait_ms > UINT_MAX - WAIT_MARGIN_MS ? 0 : WAIT_MARGIN_MS;

    *err = (struct queen_error){0};
    if (!pop->queue && !pop->namespace_ && !pop->task)
        fail_set(err, QUEEN_E_ARGUMENT, "a pop needs a queue, a namespace or a task");
    put_path(path, pop);
    put_parameters(path, pop, wait_ms);
    buf_putc(path, '\0');
    size_t key = path->len;
    put_key(path, pop);
    *req = (struct queen_request){
        .path = path->ptr,
        .key = path->ptr + key,
        .timeout_ms = pop->wait ? wait_ms + margin_ms : 0,
        // A retry after a lost response would wait for the lease of the first pop. The owner
        // of the partition can end that lease (assignment_doubt()), so it gets the error
        // instead.
        .once = pop->owner != NULL,
    };
}

// A number of the server that may not fit.
static int count_of(int64_t number)
{
    return number < 0 ? 0 : number > INT_MAX ? INT_MAX : (int)number;
}

static void read_message(struct js *j, struct arena *a, struct queen_delivery *d)
{
    int64_t number;
    span key;
    const struct {
        span name;
        const char **text;
    } texts[] = {
        {SPAN("id"), &d->id},
        {SPAN("transactionId"), &d->transaction_id},
        {SPAN("queue"), &d->queue},
        {SPAN("partition"), &d->partition},
        {SPAN("partitionId"), &d->partition_id},
        {SPAN("consumerGroup"), &d->group},
        {SPAN("leaseId"), &d->lease_id},
        {SPAN("createdAt"), &d->created_at},
        {SPAN("traceId"), &d->trace_id},
        {SPAN("producerSub"), &d->producer_sub},
        {SPAN("traceparent"), &d->traceparent},
        {SPAN("correlationId"), &d->correlation_id},
        {SPAN("eventType"), &d->event_type},
        {SPAN("firstFailedAt"), &d->first_failed_at},
        {SPAN("lastError"), &d->last_error},
    };

    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span raw = js_skip(j);
        if (j->rc != 0)
            return;
        if (span_eq(key, SPAN("data"))) {
            d->data = raw.ptr;
            d->data_len = raw.len;
        } else if (span_eq(key, SPAN("retryCount")) && js_int(raw, &number)) {
            d->retry_count = count_of(number);
        } else if (span_eq(key, SPAN("attempt")) && js_int(raw, &number)) {
            d->attempt = count_of(number);
        } else {
            for (size_t i = 0; i < countof(texts); i++)
                if (span_eq(key, texts[i].name))
                    *texts[i].text = take_text(raw, a);
        }
    }
    if (d->attempt == 0) // only a scheduled retry carries its number
        d->attempt = d->retry_count < INT_MAX ? d->retry_count + 1 : INT_MAX;
    if (!d->transaction_id || !d->partition_id || !d->data)
        js_fail(j, QUEEN_E_PROTOCOL, "a message lacks the fields to acknowledge it");
}

static void read_messages(struct js *j, struct owned_batch *o)
{
    struct queen_delivery *items = NULL;
    size_t n = 0, cap = 0;

    js_enter_array(j);
    while (js_next_item(j)) {
        if (n == cap) {
            cap = cap > 0 ? cap * 2 : 16;
            items = mem_realloc(items, cap * sizeof *items);
        }
        items[n] = (struct queen_delivery){0};
        read_message(j, &o->arena, &items[n++]);
    }
    struct queen_delivery *kept = arena_new_array(&o->arena, struct queen_delivery, n + 1);
    if (n > 0)
        memcpy(kept, items, n * sizeof *kept);
    free(items);
    o->pub.items = kept;
    o->pub.n = n;
}

// Takes the response.
static struct queen_batch *client_pop_decode(struct queen_response *response,
                                             struct queen_error *err)
{
    struct owned_batch *o = mem_new(struct owned_batch);
    struct js j = js_read((span){response->body, response->body_len});
    span key;

    arena_init(&o->arena);
    o->response = response;
    if (response->status == 204 || response->body_len == 0)
        return &o->pub;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (span_eq(key, SPAN("messages")) && js_peek(&j) == JS_ARRAY)
            read_messages(&j, o);
        else if (span_eq(key, SPAN("leaseId")))
            o->pub.lease_id = take_text(js_skip(&j), &o->arena);
        else
            js_skip(&j);
    }
    if (check_json(&j, "a pop", err) == 0)
        return &o->pub;
    queen_batch_free(&o->pub);
    return NULL;
}

void queen_batch_free(struct queen_batch *b)
{
    struct owned_batch *o = container_of(b, struct owned_batch, pub);

    if (!b)
        return;
    queen_response_free(o->response);
    arena_deinit(&o->arena);
    free(o);
}

struct queen_batch *queen_pop(struct queen_client *c, const struct queen_pop *pop,
                              struct queen_error *err)
{
    struct queen_request req;
    struct queen_error mine;
    struct buf path = {0};

    err = err ? err : &mine;
    client_pop_encode(pop, &path, &req, err);
    struct queen_response *r = ask(c, &req, &path, err);
    return r ? client_pop_decode(r, err) : NULL;
}

struct pop_call {
    queen_pop_cb done;
    void *ctx;
};

static void on_client_popped(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct pop_call *p = ctx;
    struct queen_batch *batch = NULL;
    struct queen_error mine = *err;

    if (r && mine.code == 0)
        batch = client_pop_decode(r, &mine);
    else
        queen_response_free(r);
    p->done(batch, &mine, p->ctx);
    free(p);
}

// A call that is not started yet.
static struct call *make_call(struct queen_client *c, const struct queen_pop *pop,
                              queen_pop_cb done, void *ctx)
{
    struct pop_call *p = mem_new(struct pop_call);
    struct queen_request req;
    struct queen_error err;
    struct buf path = {0};

    *p = (struct pop_call){done, ctx};
    client_pop_encode(pop, &path, &req, &err);
    struct call *call = err.code != 0 ? call_new_failed(c, &err, on_client_popped, p)
                                      : call_new(c, &req, on_client_popped, p);
    if (pop->wait)
        call_may_park(call);
    buf_free(&path);
    return call;
}

struct call *pop_begin(struct queen_client *c, const struct queen_pop *pop, queen_pop_cb done,
                       void *ctx)
{
    struct call *call = make_call(c, pop, done, ctx);

    call_begin(call);
    return call;
}

void queen_pop_start(struct queen_client *c, const struct queen_pop *pop, queen_pop_cb done,
                     void *ctx)
{
    call_submit(make_call(c, pop, done, ctx));
}
