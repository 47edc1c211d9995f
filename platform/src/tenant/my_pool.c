// my_pool.c: assigns calls to connections and opens connections on demand.
#include "tenant/my_pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tenant/my_int.h"

enum { TICK_MS = 250 };

STAILQ_HEAD(my_queue, my_call);
TAILQ_HEAD(my_list, my_conn);

struct my_pool {
    uv_loop_t *loop;
    struct my_pool_conf conf;
    struct my_place place;
    struct my_queue queue, refused;
    struct my_list conns, idle; // idle: most recently used first
    unsigned n_conns, n_ready, n_dialing, n_queued;
    bool up;
    uint64_t last_reply_us;
    char error[160];
    uv_idle_t soon; // runs work that must not run inside my_pool_exec()
    uv_timer_t tick;
    unsigned n_handles;
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// In the order of a call; then the connection callbacks.
static void run_soon(struct my_pool *p);
static void on_soon(uv_idle_t *soon);
static void send_queued(struct my_pool *p);
static void dial_if_needed(struct my_pool *p);
static void on_my_pool_ready(struct my_conn *c);
static void on_answered(struct my_conn *c, struct my_call *call, int status,
                        const struct my_reply *reply);
static void on_broken(struct my_conn *c, const char *why);
static void on_my_pool_closed(struct my_conn *c);
static void on_my_pool_tick(uv_timer_t *tick);
static void close_if_done(struct my_pool *p);
static void on_my_pool_handle_closed(uv_handle_t *handle);

static const struct my_events events = {on_my_pool_ready, on_answered, on_broken,
                                        on_my_pool_closed};

static char *copy_bytes(const char *text)
{
    return text ? mem_strndup(text, strlen(text)) : NULL;
}

struct my_pool *my_pool_open(uv_loop_t *loop, const struct my_pool_conf *conf)
{
    struct my_pool *p = mem_new(struct my_pool);
    const struct my_place *at = conf->place;

    p->loop = loop;
    p->conf = *conf;
    p->place = (struct my_place){.host = copy_bytes(at->host),
                                 .user = copy_bytes(at->user),
                                 .password = copy_bytes(at->password),
                                 .db = copy_bytes(at->db),
                                 .socket = copy_bytes(at->socket),
                                 .port = at->port,
                                 .tls = at->tls,
                                 .tls_unchecked = at->tls_unchecked,
                                 .tls_ca = at->tls_ca,
                                 .any_auth = at->any_auth};
    p->conf.place = &p->place;
    STAILQ_INIT(&p->queue);
    STAILQ_INIT(&p->refused);
    TAILQ_INIT(&p->conns);
    TAILQ_INIT(&p->idle);
    uv_idle_init(loop, &p->soon);
    uv_timer_init(loop, &p->tick);
    p->soon.data = p->tick.data = p;
    p->n_handles = 2;
    uv_timer_start(&p->tick, on_my_pool_tick, TICK_MS, TICK_MS);
    return p;
}

static void refuse_call(struct my_pool *p, struct my_call *call, int code)
{
    call->refusal = code;
    STAILQ_INSERT_TAIL(&p->refused, call, link);
    run_soon(p);
}

static struct my_call *take_queued(struct my_pool *p)
{
    struct my_call *call = STAILQ_FIRST(&p->queue);

    STAILQ_REMOVE_HEAD(&p->queue, link);
    p->n_queued--;
    return call;
}

void my_pool_exec(struct my_pool *p, struct my_call *call)
{
    call->queued_us = clock_mono_us();
    call->retried = false;
    if (p->closing) {
        refuse_call(p, call, QE_STOPPING);
        return;
    }
    STAILQ_INSERT_TAIL(&p->queue, call, link);
    p->n_queued++;
    run_soon(p);
}

static void run_soon(struct my_pool *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->soon))
        uv_idle_start(&p->soon, on_soon);
}

static void on_soon(uv_idle_t *soon)
{
    struct my_pool *p = soon->data;
    struct my_queue present = STAILQ_HEAD_INITIALIZER(present);

    uv_idle_stop(soon);
    STAILQ_CONCAT(&present, &p->refused);
    while (!STAILQ_EMPTY(&present)) {
        struct my_call *call = STAILQ_FIRST(&present);
        struct my_reply reply = {0};
        STAILQ_REMOVE_HEAD(&present, link);
        my_reply_fail(&reply, 0, "",
                      call->refusal == QE_PG_AWAY ? p->error : err_text(call->refusal));
        call->done(call, call->refusal, &reply);
    }
    send_queued(p);
    dial_if_needed(p);
    close_if_done(p);
}

static void send_queued(struct my_pool *p)
{
    struct my_conn *c;

    while (p->n_queued > 0 && (c = TAILQ_FIRST(&p->idle)) != NULL) {
        TAILQ_REMOVE(&p->idle, c, idle);
        my_conn_send(c, take_queued(p));
    }
}

static void dial_if_needed(struct my_pool *p)
{
    while (!p->closing && p->n_queued > p->n_dialing &&
           p->n_ready + p->n_dialing < p->conf.max_conns) {
        struct my_conn *c = my_conn_dial(p->loop, &p->place, p->conf.connect_timeout_ms,
                                         p->conf.statement_timeout_ms, &events, p);
        c->max_result_bytes = p->conf.max_result_bytes;
        TAILQ_INSERT_TAIL(&p->conns, c, all);
        p->n_conns++;
        p->n_dialing++;
    }
}

static void my_pool_drop(struct my_pool *p, struct my_conn *c)
{
    p->n_ready--;
    TAILQ_REMOVE(&p->conns, c, all);
    my_conn_close(c);
    run_soon(p);
}

static void return_conn(struct my_pool *p, struct my_conn *c)
{
    c->idle_since_us = clock_mono_us();
    if (p->closing || c->doomed) {
        my_pool_drop(p, c);
        return;
    }
    TAILQ_INSERT_HEAD(&p->idle, c, idle);
    run_soon(p);
}

static void on_my_pool_ready(struct my_conn *c)
{
    struct my_pool *p = c->owner;

    p->n_dialing--;
    p->n_ready++;
    p->up = true;
    p->error[0] = '\0';
    return_conn(p, c);
}

static void on_answered(struct my_conn *c, struct my_call *call, int status,
                        const struct my_reply *reply)
{
    struct my_pool *p = c->owner;
    bool never_sent = status == QE_PG_GONE && !c->prepared && !call->retried && !p->closing;

    if (status != QE_PG_GONE)
        p->last_reply_us = clock_mono_us();
    if (never_sent) { // the server had closed the idle connection: use another one
        call->retried = true;
        STAILQ_INSERT_HEAD(&p->queue, call, link);
        p->n_queued++;
        return_conn(p, c);
        return;
    }
    call->done(call, status, reply); // before c is closed, because it owns reply
    return_conn(p, c);
    close_if_done(p);
}

static void on_broken(struct my_conn *c, const char *why)
{
    struct my_pool *p = c->owner;

    snprintf(p->error, sizeof p->error, "%s", why);
    p->n_dialing--;
    TAILQ_REMOVE(&p->conns, c, all);
    my_conn_close(c);
    if (p->n_ready == 0 && p->n_dialing == 0) {
        p->up = false;
        while (p->n_queued > 0)
            refuse_call(p, take_queued(p), QE_PG_AWAY);
    }
}

static void on_my_pool_closed(struct my_conn *c)
{
    struct my_pool *p = c->owner;

    p->n_conns--;
    close_if_done(p);
}

static unsigned my_pool_deadline_ms(const struct my_pool *p, const struct my_call *call)
{
    return call->deadline_ms > 0 ? call->deadline_ms : p->conf.deadline_ms;
}

struct my_kill {
    struct my_call call;
    struct my_statement statement;
    char text[40];
};

static void on_killed(struct my_call *call, int status, const struct my_reply *reply)
{
    (void)status; // it may have ended, or the server is away
    (void)reply;
    free(call->owner);
}

// The server goes on with a statement when its connection is cut: MySQL has no time limit for
// writes, so repeated ones would pile up behind each other.
static void kill_statement(struct my_pool *p, unsigned long thread_id)
{
    struct my_kill *k = mem_new(struct my_kill);

    snprintf(k->text, sizeof k->text, "kill query %lu", thread_id);
    k->statement = (struct my_statement){"kill", k->text, 0};
    k->call = (struct my_call){.statement = &k->statement, .done = on_killed, .owner = k};
    my_pool_exec(p, &k->call);
}

static void on_my_pool_tick(uv_timer_t *tick)
{
    struct my_pool *p = tick->data;
    uint64_t now = clock_mono_us();
    struct my_conn *c, *next;
    struct my_call *call;

    TAILQ_FOREACH (c, &p->conns, all)
        if (c->call && !c->doomed &&
            now > c->call->sent_us + my_pool_deadline_ms(p, c->call) * 1000ull) {
            my_conn_abort(c);
            kill_statement(p, mysql_thread_id(&c->my));
        }
    while ((call = STAILQ_FIRST(&p->queue)) != NULL &&
           now > call->queued_us + my_pool_deadline_ms(p, call) * 1000ull)
        refuse_call(p, take_queued(p), QE_PG_RETRY);
    for (c = TAILQ_FIRST(&p->idle); c; c = next) {
        next = TAILQ_NEXT(c, idle);
        if (p->n_ready > 1 && now > c->idle_since_us + p->conf.idle_close_ms * 1000ull) {
            TAILQ_REMOVE(&p->idle, c, idle);
            my_pool_drop(p, c);
        }
    }
}

uint64_t my_pool_last_reply_us(const struct my_pool *p) { return p->last_reply_us; }
const char *my_pool_error(const struct my_pool *p) { return p->error; }
bool my_pool_is_up(const struct my_pool *p) { return p->up; }
unsigned my_pool_conns(const struct my_pool *p) { return p->n_ready; }

void my_pool_close(struct my_pool *p, void (*closed)(void *ctx), void *ctx)
{
    struct my_conn *c;

    assert(!p->closing);
    p->closing = true;
    p->closed = closed;
    p->closed_ctx = ctx;
    while (p->n_queued > 0)
        refuse_call(p, take_queued(p), QE_STOPPING);
    while ((c = TAILQ_FIRST(&p->idle)) != NULL) {
        TAILQ_REMOVE(&p->idle, c, idle);
        my_pool_drop(p, c);
    }
    run_soon(p); // connection attempts end by themselves, at the latest with their time limit
}

static void close_if_done(struct my_pool *p)
{
    if (!p->closing || p->n_conns > 0 || !STAILQ_EMPTY(&p->refused) ||
        uv_is_closing((uv_handle_t *)&p->tick))
        return;
    uv_close((uv_handle_t *)&p->soon, on_my_pool_handle_closed);
    uv_close((uv_handle_t *)&p->tick, on_my_pool_handle_closed);
}

static void on_my_pool_handle_closed(uv_handle_t *handle)
{
    struct my_pool *p = handle->data;

    if (--p->n_handles > 0)
        return;
    void (*closed)(void *) = p->closed;
    void *ctx = p->closed_ctx;
    my_place_deinit(&p->place);
    free(p);
    if (closed)
        closed(ctx);
}
