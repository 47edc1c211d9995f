// consumer.c: runs loops of pop, handler and acknowledgement.
#include "queen/consumer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "client_int.h"
#include "fail.h"
#include "job.h"
#include "pop.h"
#include "threads.h"

enum { PAUSE_AFTER_ERROR_MS = 1000, PAUSE_WHEN_EMPTY_MS = 100, DEFAULT_RENEW_S = 60 };

// One of the concurrent loops.
struct poller {
    struct queen_consumer *consumer;
    uv_timer_t timer;      // pause before a pop, or time until the next extension
    struct call *pop;      // NULL: none in flight
    struct queen_job *job; // NULL: no batch is being handled
    unsigned asked;        // most messages that this pop may return
    uint64_t n_jobs;       // number of jobs so far, to recognise a late answer to an extension
    bool handling, renewing, want_end, ended;
    uint64_t renewing_job;
};

struct queen_consumer {
    struct queen_client *client;
    struct queen_consumer_options conf; // texts in `names`
    char *names[8];
    struct threads *threads; // NULL: handlers run on the loop
    struct poller *pollers;
    struct mailbox_item start, stop, close;

    bool stopping, closing;
    unsigned n_running; // pollers
    unsigned n_handles;
    _Atomic uint64_t n_messages;
    uint64_t n_asked;    // messages that pops in flight may return
    unsigned n_handling; // pollers with a running handler
    uint64_t idle_us;    // since when no handler runs

    pthread_mutex_t lock; // guards the rest
    pthread_cond_t changed;
    bool stopped, closed, stop_posted;
    unsigned n_inside;      // threads in queen_consumer_wait()
    struct queen_error err; // why it stopped
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// Steps of a poller, in order.
static void on_start(struct mailbox_item *item);
static void next_pop(struct poller *l);
static void on_pause_over(uv_timer_t *timer);
static void on_consumer_popped(struct queen_batch *batch, const struct queen_error *err,
                               void *ctx);
static void on_pop_failed(struct poller *l, const struct queen_error *err);
static void consumer_give_back(struct poller *l, struct queen_batch *batch);
static void run_handler(struct poller *l, struct queen_batch *batch);
static void on_renew(uv_timer_t *timer);
static void on_finished(struct queen_job *job);
static void on_consumer_acked(struct queen_ack_results *r, const struct queen_error *err,
                              void *ctx);
static void end_poller(struct poller *l);
static void on_consumer_stop(struct mailbox_item *item);
static void on_close(struct mailbox_item *item);
static void on_consumer_handle_closed(uv_handle_t *handle);
static void consumer_dispose(struct queen_consumer *c);

static void copy_names(struct queen_consumer *c)
{
    struct queen_pop *pop = &c->conf.pop;
    const char **texts[] = {
        &pop->queue, &pop->partition,         &pop->namespace_, &pop->task,
        &pop->group, &pop->subscription_mode, &pop->owner,      &pop->subscription_from};

    for (size_t i = 0; i < countof(texts); i++) {
        if (*texts[i])
            c->names[i] = mem_strndup(*texts[i], strlen(*texts[i]));
        *texts[i] = c->names[i];
    }
}

struct queen_consumer *queen_consumer_new(struct queen_client *client,
                                          const struct queen_consumer_options *o,
                                          struct queen_error *err)
{
    struct queen_consumer *c = mem_new(struct queen_consumer);

    c->client = client;
    c->conf = *o;
    copy_names(c);
    c->conf.pop.wait = !o->no_wait;
    c->conf.pop.batch = o->pop.batch > 0 ? o->pop.batch : 1;
    c->conf.concurrency = o->concurrency > 0 ? o->concurrency : 1;
    c->conf.renew_seconds = o->renew_seconds > 0 ? o->renew_seconds : DEFAULT_RENEW_S;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->start.deliver = on_start;
    c->stop.deliver = on_consumer_stop;
    c->close.deliver = on_close;
    int rc = o->handler ? 0 : fail_set(err, QUEEN_E_ARGUMENT, "a consumer needs a handler");
    if (rc == 0 && client->has_thread) {
        c->threads = threads_new(c->conf.concurrency, o->handler, o->ctx, err);
        rc = c->threads ? 0 : QUEEN_E_MEMORY;
    }
    if (rc == 0 && mailbox_post(&client->mailbox, &c->start) != 0)
        rc = fail_set(err, QUEEN_E_CLOSED, "the client is closing");
    if (rc == 0)
        return c;
    consumer_dispose(c);
    return NULL;
}

static void on_start(struct mailbox_item *item)
{
    struct queen_consumer *c = container_of(item, struct queen_consumer, start);
    unsigned n = c->conf.concurrency;

    c->pollers = mem_new_array(struct poller, n);
    c->n_running = c->n_handles = n;
    c->idle_us = clock_mono_us();
    for (unsigned i = 0; i < n; i++) {
        struct poller *l = &c->pollers[i];
        l->consumer = c;
        uv_timer_init(c->client->loop, &l->timer);
        l->timer.data = l;
    }
    for (unsigned i = 0; i < n; i++)
        next_pop(&c->pollers[i]);
}

static bool is_idle_too_long(const struct queen_consumer *c)
{
    return c->conf.idle_ms > 0 && c->n_handling == 0 &&
           clock_mono_us() - c->idle_us >= c->conf.idle_ms * 1000ull;
}

static void next_pop(struct poller *l)
{
    struct queen_consumer *c = l->consumer;
    struct queen_pop pop = c->conf.pop;

    // A server may return more messages than requested.
    uint64_t used = c->n_messages + c->n_asked;
    uint64_t room = used < c->conf.limit ? c->conf.limit - used : 0;
    if (c->conf.limit > 0 && pop.batch > room)
        pop.batch = (unsigned)room;
    if (c->stopping || pop.batch == 0 || is_idle_too_long(c)) {
        end_poller(l);
        return;
    }
    // A long poll must not outlast idle_ms.
    if (c->conf.idle_ms > 0 && pop.wait &&
        (pop.timeout_ms == 0 || pop.timeout_ms > c->conf.idle_ms))
        pop.timeout_ms = c->conf.idle_ms;
    l->asked = pop.batch;
    c->n_asked += l->asked;
    l->pop = pop_begin(c->client, &pop, on_consumer_popped, l);
}

static void pause_poller(struct poller *l, unsigned ms)
{
    uv_timer_start(&l->timer, on_pause_over, ms, 0);
}

static void on_pause_over(uv_timer_t *timer) { next_pop(timer->data); }

static void consumer_report(struct queen_consumer *c, const struct queen_error *err)
{
    if (c->conf.on_error)
        c->conf.on_error(err, c->conf.ctx);
}

static void on_consumer_popped(struct queen_batch *batch, const struct queen_error *err,
                               void *ctx)
{
    struct poller *l = ctx;
    struct queen_consumer *c = l->consumer;

    l->pop = NULL;
    c->n_asked -= l->asked;
    if (!batch) {
        on_pop_failed(l, err);
    } else if (batch->n == 0) {
        queen_batch_free(batch);
        if (c->conf.no_wait && !c->stopping)
            pause_poller(l, PAUSE_WHEN_EMPTY_MS);
        else
            next_pop(l);
    } else if (c->stopping && !c->conf.pop.auto_ack) {
        consumer_give_back(l, batch);
    } else {
        c->n_messages += batch->n;
        run_handler(l, batch);
    }
}

static void on_pop_failed(struct poller *l, const struct queen_error *err)
{
    struct queen_consumer *c = l->consumer;

    if (!(c->stopping && err->code == QUEEN_E_CLOSED))
        consumer_report(c, err);
    if (err->retryable && !c->stopping) {
        pause_poller(l, PAUSE_AFTER_ERROR_MS);
        return;
    }
    if (!c->stopping) { // not retryable: stop the other pollers, too
        pthread_mutex_lock(&c->lock);
        if (c->err.code == 0)
            c->err = *err;
        pthread_mutex_unlock(&c->lock);
        queen_consumer_stop(c);
    }
    end_poller(l);
}

// They arrived after the stop: release them, without counting a failure.
static void consumer_give_back(struct poller *l, struct queen_batch *batch)
{
    l->job = job_new(l->consumer->client, batch, on_finished, l);
    l->job->verdict = QUEEN_RETRY;
    on_finished(l->job);
}

static void run_handler(struct poller *l, struct queen_batch *batch)
{
    struct queen_consumer *c = l->consumer;

    l->job = job_new(c->client, batch, on_finished, l);
    l->n_jobs++;
    l->handling = true;
    c->n_handling++;
    if (c->conf.renew_every_ms > 0 && batch->lease_id && batch->lease_id[0] != '\0')
        uv_timer_start(&l->timer, on_renew, c->conf.renew_every_ms, c->conf.renew_every_ms);
    if (c->threads) {
        threads_run(c->threads, l->job);
        return;
    }
    struct queen_job *job = l->job;
    enum queen_verdict v = c->conf.handler(job, c->conf.ctx);
    if (v != QUEEN_LATER)
        queen_job_finish(job, v);
}

static void on_consumer_renewed(const struct queen_error *err, void *ctx)
{
    struct poller *l = ctx;

    l->renewing = false;
    // Ignore it if the job has ended meanwhile.
    if (err->code == QUEEN_E_LEASE && l->job && l->n_jobs == l->renewing_job) {
        l->job->lost = true;
        consumer_report(l->consumer, err);
    }
    if (l->want_end)
        end_poller(l);
}

static void on_renew(uv_timer_t *timer)
{
    struct poller *l = timer->data;
    struct queen_consumer *c = l->consumer;

    if (l->renewing || l->job->lost)
        return;
    l->renewing = true;
    l->renewing_job = l->n_jobs;
    queen_extend_start(c->client, l->job->batch->lease_id, c->conf.renew_seconds,
                       on_consumer_renewed, l);
}

static void on_finished(struct queen_job *job)
{
    struct poller *l = job->owner;
    struct queen_consumer *c = l->consumer;

    uv_timer_stop(&l->timer);
    if (l->handling) {
        l->handling = false;
        c->n_handling--;
        c->idle_us = clock_mono_us();
    }
    if (c->conf.pop.auto_ack) {
        job_free(job);
        l->job = NULL;
        next_pop(l);
        return;
    }
    struct queen_ack *acks = mem_new_array(struct queen_ack, job->batch->n);
    job_verdicts(job, acks);
    queen_ack_start(c->client, c->conf.pop.group, acks, job->batch->n, on_consumer_acked, l);
    free(acks);
}

static void on_consumer_acked(struct queen_ack_results *r, const struct queen_error *err,
                              void *ctx)
{
    struct poller *l = ctx;
    struct queen_error refused;

    if (!r) {
        consumer_report(l->consumer, err);
    } else if (r->n_refused > 0) {
        const char *why = NULL;
        for (size_t i = 0; i < r->n && !why; i++)
            why = r->items[i].success ? NULL : r->items[i].error;
        fail_set(&refused, QUEEN_E_LEASE, "%zu of %zu acknowledgements were refused: %s",
                 r->n_refused, r->n, why ? why : "no reason given");
        consumer_report(l->consumer, &refused);
    }
    queen_ack_results_free(r);
    job_free(l->job);
    l->job = NULL;
    next_pop(l);
}

// ---- stopping ----

static void end_poller(struct poller *l)
{
    struct queen_consumer *c = l->consumer;

    if (l->ended || l->renewing) { // the pending extension still refers to the poller
        l->want_end = true;
        return;
    }
    l->ended = true;
    uv_timer_stop(&l->timer);
    if (--c->n_running > 0)
        return;
    if (c->conf.on_stopped)
        c->conf.on_stopped(c->conf.ctx);
    pthread_mutex_lock(&c->lock);
    c->stopped = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->closing) // behind a stop that may still be in the mailbox
        (void)!mailbox_post(&c->client->mailbox, &c->close);
}

void queen_consumer_stop(struct queen_consumer *c)
{
    pthread_mutex_lock(&c->lock);
    bool first = !c->stop_posted;
    c->stop_posted = true;
    pthread_mutex_unlock(&c->lock);
    if (first)
        (void)!mailbox_post(&c->client->mailbox, &c->stop); // open: see job.c
}

static void on_consumer_stop(struct mailbox_item *item)
{
    struct queen_consumer *c = container_of(item, struct queen_consumer, stop);

    c->stopping = true;
    for (unsigned i = 0; i < c->conf.concurrency; i++) {
        struct poller *l = &c->pollers[i];
        if (l->pop)
            call_hang_up(l->pop);
        else if (!l->job && !l->ended)
            end_poller(l); // it was pausing
    }
}

int queen_consumer_wait(struct queen_consumer *c, struct queen_error *err)
{
    int rc = client_may_block(c->client, err);

    if (rc != 0)
        return rc;
    pthread_mutex_lock(&c->lock);
    c->n_inside++;
    while (!c->stopped)
        pthread_cond_wait(&c->changed, &c->lock);
    rc = c->err.code;
    if (err)
        *err = c->err;
    if (--c->n_inside == 0)
        pthread_cond_broadcast(&c->changed); // queen_consumer_free() continues
    pthread_mutex_unlock(&c->lock);
    return rc;
}

uint64_t queen_consumer_count(const struct queen_consumer *c) { return c->n_messages; }

void queen_consumer_free(struct queen_consumer *c)
{
    if (!c || client_may_block(c->client, NULL) != 0)
        return;
    queen_consumer_stop(c);
    (void)queen_consumer_wait(c, NULL);
    client_await_close(c->client, &c->close, &c->lock, &c->changed, &c->closed, &c->n_inside);
    consumer_dispose(c);
}

void queen_consumer_close(struct queen_consumer *c, void (*closed)(void *ctx), void *ctx)
{
    c->on_closed = closed;
    c->closed_ctx = ctx;
    c->closing = true;
    if (c->stopped)
        (void)!mailbox_post(&c->client->mailbox, &c->close);
    else
        queen_consumer_stop(c);
}

static void on_close(struct mailbox_item *item)
{
    struct queen_consumer *c = container_of(item, struct queen_consumer, close);

    for (unsigned i = 0; i < c->conf.concurrency; i++)
        uv_close((uv_handle_t *)&c->pollers[i].timer, on_consumer_handle_closed);
}

static void on_consumer_handle_closed(uv_handle_t *handle)
{
    struct queen_consumer *c = ((struct poller *)handle->data)->consumer;

    if (--c->n_handles > 0)
        return;
    if (c->client->has_thread) {
        pthread_mutex_lock(&c->lock);
        c->closed = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock); // queen_consumer_free() continues
        return;
    }
    void (*closed)(void *) = c->on_closed;
    void *ctx = c->closed_ctx;
    consumer_dispose(c);
    if (closed)
        closed(ctx);
}

static void consumer_dispose(struct queen_consumer *c)
{
    threads_free(c->threads);
    for (size_t i = 0; i < countof(c->names); i++)
        free(c->names[i]);
    free(c->pollers);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
