// producer.c: a bounded buffer in front of pushes.
#include "producer_int.h"

#include <stdlib.h>
#include <time.h>

#include "backoff.h"
#include "base/mem.h"
#include "codec.h"
#include "fail.h"
#include "push.h"

// Steps of a message, in order.
static void on_wake(struct mailbox_item *item);
static void on_timer(uv_timer_t *timer);
static struct parcel *producer_load(struct queen_producer *p);
static void send_parcel(struct parcel *parcel);
static void on_answer(struct queen_response *r, const struct queen_error *err, void *ctx);
static void settle_message(struct queen_producer *p, struct item *item,
                           const struct queen_push_result *result,
                           const struct queen_error *err);
static void set_too_late(struct queen_error *err);
static void settle_all(struct parcel *parcel, const struct queen_push_results *results,
                       const struct queen_error *err);
static void put_back(struct parcel *parcel, bool alone);
static void on_producer_stop(struct mailbox_item *item);
static void on_producer_handle_closed(uv_handle_t *handle);

static void fill_defaults(struct queen_producer_options *o)
{
    o->batch_count = o->batch_count > 0 ? o->batch_count : 100;
    o->batch_bytes = o->batch_bytes > 0 ? o->batch_bytes : 1 << 20;
    o->linger_ms = o->linger_ms > 0 ? o->linger_ms : 1000;
    o->max_count = o->max_count > 0 ? o->max_count : 10000;
    o->max_bytes = o->max_bytes > 0 ? o->max_bytes : 64 << 20;
    o->max_in_flight = o->max_in_flight > 0 ? o->max_in_flight : 1;
    o->close_timeout_ms = o->close_timeout_ms > 0 ? o->close_timeout_ms : 30000;
}

struct queen_producer *queen_producer_new(struct queen_client *c,
                                          const struct queen_producer_options *o,
                                          struct queen_error *err)
{
    struct queen_producer *p = mem_new(struct queen_producer);
    pthread_condattr_t attr;

    p->client = c;
    p->conf = o ? *o : (struct queen_producer_options){0};
    fill_defaults(&p->conf);
    p->conf.refuse = p->conf.refuse || !c->has_thread;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &attr);
    pthread_condattr_destroy(&attr);
    STAILQ_INIT(&p->waiting);
    TAILQ_INIT(&p->parcels);
    STAILQ_INIT(&p->flushes);
    p->wake.deliver = on_wake;
    p->stop.deliver = on_producer_stop;
    if (err)
        *err = (struct queen_error){0};
    return p;
}

void producer_wake(struct queen_producer *p)
{
    if (p->wake_posted)
        return;
    p->wake_posted = mailbox_post(&p->client->mailbox, &p->wake) == 0;
}

static bool is_full(const struct queen_producer *p, size_t more)
{
    // A message larger than the limit is accepted if the buffer is empty.
    return p->n_unsettled >= p->conf.max_count ||
           (p->n_unsettled > 0 && p->unsettled_bytes + more > p->conf.max_bytes);
}

int queen_producer_send(struct queen_producer *p, const struct queen_message *m, void *tag,
                        struct queen_error *err)
{
    struct item *item = mem_new(struct item);
    struct queen_error mine;
    bool here = client_is_here(p->client);

    err = err ? err : &mine;
    item->tag = tag;
    int rc = put_message(&item->json, m, 0, err);
    pthread_mutex_lock(&p->lock);
    p->n_inside++;
    while (rc == 0 && !p->closing && is_full(p, item->json.len) && !p->conf.refuse && !here)
        pthread_cond_wait(&p->changed, &p->lock);
    if (--p->n_inside == 0 && p->closing)
        pthread_cond_broadcast(&p->changed); // queen_producer_free() continues
    if (rc == 0 && p->closing)
        rc = fail_set(err, QUEEN_E_CLOSED, "the producer is closing");
    if (rc == 0 && is_full(p, item->json.len))
        rc = fail_set(err, QUEEN_E_FULL, "the producer's buffer is full: %zu messages",
                      p->n_unsettled);
    if (rc == 0) {
        STAILQ_INSERT_TAIL(&p->waiting, item, link);
        item->number = ++p->stats.accepted;
        p->n_unsettled++;
        p->unsettled_bytes += item->json.len;
        p->waiting_bytes += item->json.len;
        // The first message starts the linger timer; after that, wake the loop only for a full
        // batch.
        if (++p->n_waiting == 1 || p->n_waiting == p->conf.batch_count ||
            p->waiting_bytes >= p->conf.batch_bytes)
            producer_wake(p);
        *err = (struct queen_error){0};
    }
    pthread_mutex_unlock(&p->lock);
    if (rc != 0) {
        buf_free(&item->json);
        free(item);
    }
    return rc;
}

// Handles belong to the loop, so they are created there, with the first message.
static void open_handles(struct queen_producer *p)
{
    if (p->n_handles > 0)
        return;
    uv_timer_init(p->client->loop, &p->timer);
    uv_timer_init(p->client->loop, &p->patience);
    p->timer.data = p->patience.data = p;
    p->n_handles = 2;
}

static void on_wake(struct mailbox_item *item)
{
    struct queen_producer *p = container_of(item, struct queen_producer, wake);

    pthread_mutex_lock(&p->lock);
    p->wake_posted = false;
    pthread_mutex_unlock(&p->lock);
    open_handles(p);
    producer_pump(p);
    producer_close_if_done(p);
}

// With the lock: whether a batch should be sent.
static bool may_send(const struct queen_producer *p)
{
    return p->n_waiting > 0 && !p->pausing && p->n_in_flight < p->conf.max_in_flight &&
           (p->due || p->hurry || p->closing || p->n_waiting >= p->conf.batch_count ||
            p->waiting_bytes >= p->conf.batch_bytes);
}

void producer_pump(struct queen_producer *p)
{
    open_handles(p);
    pthread_mutex_lock(&p->lock);
    while (may_send(p)) {
        struct parcel *parcel = producer_load(p);
        pthread_mutex_unlock(&p->lock);
        send_parcel(parcel);
        pthread_mutex_lock(&p->lock);
    }
    bool empty = p->n_waiting == 0;
    if (empty)
        p->due = p->hurry = false;
    pthread_mutex_unlock(&p->lock);
    if (!empty && !p->pausing && !uv_is_active((uv_handle_t *)&p->timer))
        uv_timer_start(&p->timer, on_timer, p->conf.linger_ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct queen_producer *p = timer->data;

    p->pausing = false;
    p->due = true;
    producer_pump(p);
}

// With the lock.
static struct parcel *producer_load(struct queen_producer *p)
{
    struct parcel *parcel = mem_new(struct parcel);
    size_t bytes = 0;
    struct item *item;

    parcel->producer = p;
    STAILQ_INIT(&parcel->items);
    while ((item = STAILQ_FIRST(&p->waiting)) && parcel->n < p->conf.batch_count &&
           !(parcel->n > 0 && (item->alone || bytes + item->json.len > p->conf.batch_bytes))) {
        STAILQ_REMOVE_HEAD(&p->waiting, link);
        STAILQ_INSERT_TAIL(&parcel->items, item, link);
        parcel->n++;
        bytes += item->json.len;
        if (item->alone)
            break;
    }
    parcel->first = STAILQ_FIRST(&parcel->items)->number;
    p->n_waiting -= parcel->n;
    p->waiting_bytes -= bytes;
    TAILQ_INSERT_TAIL(&p->parcels, parcel, link);
    return parcel;
}

static void send_parcel(struct parcel *parcel)
{
    struct queen_producer *p = parcel->producer;
    struct buf body = {0};
    struct item *item;

    buf_put_lit(&body, "{\"items\":[");
    STAILQ_FOREACH (item, &parcel->items, link) {
        if (item != STAILQ_FIRST(&parcel->items))
            buf_putc(&body, ',');
        buf_put(&body, buf_span(&item->json));
    }
    buf_put_lit(&body, "]}");
    p->n_in_flight++;
    struct queen_request req = {
        .method = "POST", .path = "/api/v1/push", .body = body.ptr, .body_len = body.len};
    struct queen_error no_memory;
    fail_set(&no_memory, QUEEN_E_MEMORY, "no memory for the request");
    parcel->call = body.failed ? call_new_failed(p->client, &no_memory, on_answer, parcel)
                               : call_new(p->client, &req, on_answer, parcel);
    call_begin(parcel->call);
    buf_free(&body);
}

// Whether to retry the messages of a failed request. Those of a refused request are sent one
// by one, so that the valid ones are stored.
static bool is_worth_another(const struct parcel *parcel, const struct queen_error *why)
{
    return why->retryable || (why->code == QUEEN_E_REFUSED && parcel->n > 1);
}

static void on_answer(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct parcel *parcel = ctx;
    struct queen_producer *p = parcel->producer;
    struct queen_push_results *results = NULL;
    struct queen_error why = *err;

    parcel->call = NULL;
    if (r && why.code == 0)
        results = push_decode(r, parcel->n, &why);
    else
        queen_response_free(r);
    p->n_in_flight--;
    bool again = why.code != 0 && is_worth_another(parcel, &why);
    if (p->deadline_passed && (again || why.code == QUEEN_E_CLOSED))
        set_too_late(&why);
    if (!again || p->deadline_passed) {
        settle_all(parcel, results, &why);
        p->n_failed = 0;
    } else if (why.retryable) {
        put_back(parcel, false);
        p->pausing = true;
        if (p->conf.on_retry)
            p->conf.on_retry(&why, p->conf.ctx);
        uv_timer_start(&p->timer, on_timer,
                       backoff_ms(p->client->conf.retry_delay_ms, ++p->n_failed), 0);
    } else {
        put_back(parcel, true);
        p->due = true;
    }
    queen_push_results_free(results);
    producer_pump(p);
    producer_end_flushes(p);
    producer_close_if_done(p);
}

static void set_too_late(struct queen_error *err)
{
    fail_set(err, QUEEN_E_CLOSED, "the producer was closed before a server had confirmed it");
}

// The parcel stays in the list until all of its messages are reported: a flush waits for that.
static void settle_all(struct parcel *parcel, const struct queen_push_results *results,
                       const struct queen_error *err)
{
    struct queen_producer *p = parcel->producer;
    struct item *item;

    for (size_t i = 0; (item = STAILQ_FIRST(&parcel->items)); i++) {
        STAILQ_REMOVE_HEAD(&parcel->items, link);
        settle_message(p, item, results ? &results->items[i] : NULL, err);
    }
    pthread_mutex_lock(&p->lock);
    TAILQ_REMOVE(&p->parcels, parcel, link);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    free(parcel);
}

// Reports the result of a message and frees it.
static void settle_message(struct queen_producer *p, struct item *item,
                           const struct queen_push_result *result,
                           const struct queen_error *err)
{
    struct queen_error why = *err;

    if (result && result->status == QUEEN_FAILED)
        fail_set(&why, QUEEN_E_SERVER, "%s", result->error ? result->error : "not stored");
    if (p->conf.on_result)
        p->conf.on_result(result, &why, item->tag, p->conf.ctx);
    pthread_mutex_lock(&p->lock);
    p->n_unsettled--;
    p->unsettled_bytes -= item->json.len;
    if (why.code == 0)
        p->stats.stored++;
    else
        p->stats.failed++;
    pthread_mutex_unlock(&p->lock);
    buf_free(&item->json);
    free(item);
}

// Merges two ordered lists. With several requests in flight a parcel may fail after one that
// was accepted later, and producer_flush.c relies on the head being the oldest.
static void put_back(struct parcel *parcel, bool alone)
{
    struct queen_producer *p = parcel->producer;
    struct item *item, *next, *before = NULL;

    pthread_mutex_lock(&p->lock);
    while ((item = STAILQ_FIRST(&parcel->items))) {
        STAILQ_REMOVE_HEAD(&parcel->items, link);
        item->alone = item->alone || alone;
        p->n_waiting++;
        p->waiting_bytes += item->json.len;
        next = before ? STAILQ_NEXT(before, link) : STAILQ_FIRST(&p->waiting);
        for (; next && next->number < item->number; next = STAILQ_NEXT(next, link))
            before = next;
        if (before)
            STAILQ_INSERT_AFTER(&p->waiting, before, item, link);
        else
            STAILQ_INSERT_HEAD(&p->waiting, item, link);
        before = item;
    }
    TAILQ_REMOVE(&p->parcels, parcel, link);
    pthread_mutex_unlock(&p->lock);
    free(parcel);
}

void queen_producer_stats(struct queen_producer *p, struct queen_producer_stats *out)
{
    pthread_mutex_lock(&p->lock);
    *out = p->stats;
    out->waiting = p->n_unsettled;
    pthread_mutex_unlock(&p->lock);
}

// ---- closing ----

static void producer_dispose(struct queen_producer *p)
{
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void queen_producer_free(struct queen_producer *p)
{
    if (!p || client_may_block(p->client, NULL) != 0)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->changed); // callers that wait for room fail
    pthread_mutex_unlock(&p->lock);
    client_await_close(p->client, &p->stop, &p->lock, &p->changed, &p->closed, &p->n_inside);
    producer_dispose(p);
}

void queen_producer_close(struct queen_producer *p, void (*closed)(void *ctx), void *ctx)
{
    p->on_closed = closed;
    p->closed_ctx = ctx;
    p->closing = true;
    if (mailbox_post(&p->client->mailbox, &p->stop) != 0)
        p->closed = true; // the client is closed already, contrary to its documentation
}

// With the lock: all waiting messages, as a parcel that is not sent.
static struct parcel *load_all(struct queen_producer *p)
{
    struct parcel *parcel = mem_new(struct parcel);

    parcel->producer = p;
    parcel->n = p->n_waiting;
    parcel->first = STAILQ_FIRST(&p->waiting)->number;
    STAILQ_INIT(&parcel->items);
    STAILQ_CONCAT(&parcel->items, &p->waiting);
    p->n_waiting = p->waiting_bytes = 0;
    TAILQ_INSERT_TAIL(&p->parcels, parcel, link);
    return parcel;
}

// Cancels requests in flight; on_answer() reports their messages.
static void on_patience(uv_timer_t *timer)
{
    struct queen_producer *p = timer->data;
    struct parcel *parcel, *rest = NULL;
    struct queen_error err;

    p->deadline_passed = true;
    TAILQ_FOREACH (parcel, &p->parcels, link)
        call_cancel(parcel->call);
    pthread_mutex_lock(&p->lock);
    if (p->n_waiting > 0)
        rest = load_all(p);
    pthread_mutex_unlock(&p->lock);
    set_too_late(&err);
    if (rest)
        settle_all(rest, NULL, &err);
    producer_end_flushes(p);
    producer_close_if_done(p);
}

static void on_producer_stop(struct mailbox_item *item)
{
    struct queen_producer *p = container_of(item, struct queen_producer, stop);

    p->stopping = true;
    open_handles(p);
    uv_update_time(p->client->loop); // after a long callback the loop's time is stale
    uv_timer_start(&p->patience, on_patience, p->conf.close_timeout_ms, 0);
    producer_pump(p);
    producer_close_if_done(p);
}

void producer_close_if_done(struct queen_producer *p)
{
    pthread_mutex_lock(&p->lock);
    bool done = p->n_unsettled == 0 && !p->wake_posted && p->n_flushes_posted == 0;
    pthread_mutex_unlock(&p->lock);
    if (!done || !p->stopping || p->n_in_flight > 0 || !STAILQ_EMPTY(&p->flushes) ||
        uv_is_closing((uv_handle_t *)&p->timer))
        return;
    uv_close((uv_handle_t *)&p->timer, on_producer_handle_closed);
    uv_close((uv_handle_t *)&p->patience, on_producer_handle_closed);
}

static void on_producer_handle_closed(uv_handle_t *handle)
{
    struct queen_producer *p = handle->data;

    if (--p->n_handles > 0)
        return;
    if (p->client->has_thread) {
        pthread_mutex_lock(&p->lock);
        p->closed = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock); // queen_producer_free() continues
        return;
    }
    void (*closed)(void *) = p->on_closed;
    void *ctx = p->closed_ctx;
    producer_dispose(p);
    if (closed)
        closed(ctx);
}
