// worker.c: a generator thread: an epoll loop over the connections of producers and consumers.
#include "bench/load/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

enum {
    REST_US = 5000, // before the next try after an empty pop, an error, a lost connection
    LOOK_MS = 20,   // how often it checks the phase, at least
    MAX_EVENTS = 256,
};

// Steps of a thread, in order.
static void wake_rested(struct worker *w, uint64_t now);
static void conn_open(struct worker *w, struct conn *c);
static void conn_next(struct worker *w, struct conn *c);
static void push_due(struct worker *w, uint64_t now);
static void conn_push(struct worker *w, struct conn *c, uint64_t due_us);
static void conn_send(struct worker *w, struct conn *c, enum bench_op op);
static void arm_timer(struct worker *w);
static void on_worker_ready(struct worker *w, struct conn *c);
static void conn_lost(struct worker *w, struct conn *c, int rc);
static void conn_rest(struct worker *w, struct conn *c, uint64_t rest_us);
static bool may_leave(const struct worker *w);
static void worker_clean(struct worker *w);

static void queue_add(struct conn_queue *q, struct conn *c)
{
    c->in = q;
    TAILQ_INSERT_TAIL(q, c, link);
}

static void queue_remove(struct conn *c)
{
    if (c->in)
        TAILQ_REMOVE(c->in, c, link);
    c->in = NULL;
}

void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct epoll_event events[MAX_EVENTS];

    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event on_timer = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (w->epoll < 0 || w->timer < 0 ||
        epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->timer, &on_timer) != 0)
        BUG("cannot watch sockets: %s", strerror(errno));

    for (uint32_t i = 0; i < w->n_conns; i++)
        conn_open(w, &w->conns[i]);
    w->next_due_us = clock_mono_us();
    while (!may_leave(w)) {
        uint64_t now = clock_mono_us();
        wake_rested(w, now);
        push_due(w, now);
        arm_timer(w);
        int n = epoll_wait(w->epoll, events, MAX_EVENTS, LOOK_MS);
        for (int i = 0; i < n; i++)
            if (events[i].data.ptr)
                on_worker_ready(w, events[i].data.ptr);
    }
    worker_clean(w);
    atomic_store(&w->done, true);
    return NULL;
}

static void wake_rested(struct worker *w, uint64_t now)
{
    struct conn *c;

    while ((c = TAILQ_FIRST(&w->resting)) && c->wake_us <= now) {
        queue_remove(c);
        if (c->http.fd < 0)
            conn_open(w, c);
        else
            conn_next(w, c);
    }
}

static void conn_open(struct worker *w, struct conn *c)
{
    int rc = bench_conn_open(&c->http, w->load->addr);
    if (rc != 0) {
        counter_add(&w->stats.conn_errors, 1);
        bench_stats_note(&w->stats, "connect: %s", strerror(-rc));
        conn_rest(w, c, REST_US);
        return;
    }
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                             .data.ptr = c};
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->http.fd, &ev) != 0)
        BUG("cannot watch a socket: %s", strerror(errno));
    conn_next(w, c);
}

// Decides what an idle connection does next.
static void conn_next(struct worker *w, struct conn *c)
{
    struct bench_load *l = w->load;
    enum bench_phase phase = phase_of(l);

    if (c->produces) {
        if (w->step_us > 0)
            queue_add(&w->idle, c);
        else if (phase <= BENCH_MEASURE)
            conn_push(w, c, clock_mono_us());
    } else if (c->n_acks > 0) {
        bench_put_ack(&c->http.out, l->text, buf_span(&c->acks), c->group);
        conn_send(w, c, BENCH_OP_ACK);
    } else if (phase <= BENCH_MEASURE || (phase == BENCH_DRAIN && l->plan.drains)) {
        buf_reset(&c->http.out);
        buf_put(&c->http.out, buf_span(&c->pop));
        conn_send(w, c, BENCH_OP_POP);
    }
}

static void push_due(struct worker *w, uint64_t now)
{
    struct conn *c;

    if (!(w->step_us > 0) || phase_of(w->load) > BENCH_MEASURE)
        return;
    while (w->next_due_us <= now && (c = TAILQ_FIRST(&w->idle))) {
        queue_remove(c);
        conn_push(w, c, w->next_due_us);
        double step = w->step_us + w->step_rest;
        w->next_due_us += (uint64_t)step;
        w->step_rest = step - (double)(uint64_t)step;
    }
}

static void conn_push(struct worker *w, struct conn *c, uint64_t due_us)
{
    struct bench_load *l = w->load;
    unsigned n = l->plan.configure ? 1 : l->plan.batch;

    if (l->plan.limit > 0) {
        uint64_t from = atomic_fetch_add(&l->taken, n);
        if (from >= l->plan.limit)
            return;
        if (l->plan.configure) {
            bench_put_configure(&c->http.out, l->text, from);
            c->due_us = due_us;
            conn_send(w, c, BENCH_OP_CONFIGURE);
            return;
        }
        if (n > l->plan.limit - from)
            n = (unsigned)(l->plan.limit - from);
    }
    struct bench_push p = {
        .producer = c->id, .n = n, .due_us = due_us, .spread = l->plan.spread};
    bench_put_push(&c->http.out, l->text, l->ledger, p, c->sent);
    c->n_sent = n;
    c->due_us = due_us;
    conn_send(w, c, BENCH_OP_PUSH);
}

static void conn_send(struct worker *w, struct conn *c, enum bench_op op)
{
    c->op = op;
    c->sent_us = clock_mono_us();
    c->busy = true;
    atomic_fetch_add_explicit(&w->n_busy, 1, memory_order_relaxed);
    int rc = bench_conn_start(&c->http);
    if (rc < 0)
        conn_lost(w, c, rc);
}

// Set to the next due push, if a connection is free to send it, or the next connection to wake.
static void arm_timer(struct worker *w)
{
    uint64_t at = UINT64_MAX;

    if (w->step_us > 0 && !TAILQ_EMPTY(&w->idle) && phase_of(w->load) <= BENCH_MEASURE)
        at = w->next_due_us;
    if (!TAILQ_EMPTY(&w->resting) && TAILQ_FIRST(&w->resting)->wake_us < at)
        at = TAILQ_FIRST(&w->resting)->wake_us;
    if (at == w->armed_us || at == UINT64_MAX)
        return;
    w->armed_us = at;
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / 1000000), .tv_nsec = (long)(at % 1000000) * 1000}};
    if (timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        BUG("cannot set a timer: %s", strerror(errno));
}

static void on_worker_ready(struct worker *w, struct conn *c)
{
    struct bench_reply reply;
    int rc = BENCH_CONN_DONE;

    if (c->http.fd < 0)
        return;
    if (c->busy && c->http.out_done < c->http.out.len)
        rc = bench_conn_flush(&c->http);
    if (rc >= 0)
        rc = bench_conn_read(&c->http, &reply);
    if (rc == BENCH_CONN_MORE)
        return;
    if (rc == BENCH_CONN_DONE && !c->busy)
        rc = -EPROTO; // an unsolicited answer
    if (rc < 0) {
        conn_lost(w, c, rc);
        return;
    }

    c->busy = false;
    atomic_fetch_sub_explicit(&w->n_busy, 1, memory_order_relaxed);
    bool last = c->http.last;
    uint64_t handle_ms = (uint64_t)w->load->text->conf->handle_ms;
    bool eager = worker_answer(w, c, &reply);
    if (last)
        bench_conn_close(&c->http);
    if (!eager)
        conn_rest(w, c, REST_US);
    else if (c->n_acks > 0 && handle_ms > 0)
        conn_rest(w, c, handle_ms * 1000); // the handler
    else if (last)
        conn_open(w, c);
    else
        conn_next(w, c);
}

static void conn_lost(struct worker *w, struct conn *c, int rc)
{
    // A server may close an idle connection; only a request in flight is an error.
    if (c->busy) {
        c->busy = false;
        atomic_fetch_sub_explicit(&w->n_busy, 1, memory_order_relaxed);
        counter_add(&w->stats.conn_errors, 1);
        bench_stats_note(&w->stats, "connection lost: %s", strerror(-rc));
        if (c->op == BENCH_OP_PUSH)
            worker_doubt(w, c);
        c->n_acks = 0;
    }
    queue_remove(c);
    bench_conn_close(&c->http);
    conn_rest(w, c, REST_US);
}

// The list stays sorted by wake_us.  Most rests are equally long, so the place is the end.
static void conn_rest(struct worker *w, struct conn *c, uint64_t rest_us)
{
    struct conn *before = TAILQ_LAST(&w->resting, conn_queue);

    c->wake_us = clock_mono_us() + rest_us;
    while (before && before->wake_us > c->wake_us)
        before = TAILQ_PREV(before, conn_queue, link);
    c->in = &w->resting;
    if (before)
        TAILQ_INSERT_AFTER(&w->resting, before, c, link);
    else
        TAILQ_INSERT_HEAD(&w->resting, c, link);
}

static bool may_leave(const struct worker *w)
{
    const struct bench_load *l = w->load;
    enum bench_phase phase = phase_of(l);
    bool busy = atomic_load_explicit(&w->n_busy, memory_order_relaxed) > 0;

    if (phase == BENCH_END || busy)
        return phase == BENCH_END;
    if (l->plan.limit > 0 && atomic_load(&l->taken) >= l->plan.limit)
        return true;
    return phase == BENCH_DRAIN && !l->plan.drains;
}

static void worker_clean(struct worker *w)
{
    for (uint32_t i = 0; i < w->n_conns; i++) {
        struct conn *c = &w->conns[i];
        if (c->busy && c->op == BENCH_OP_PUSH)
            worker_doubt(w, c);
        bench_conn_deinit(&c->http);
        buf_free(&c->pop);
        buf_free(&c->acks);
        free(c->sent);
    }
    free(w->conns);
    close(w->epoll);
    close(w->timer);
}
