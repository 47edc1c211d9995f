// pool.c: assigns a connection to each call and opens as many connections as the load needs.
//
// This file decides when the database is unavailable: no connection is up, at least one dial
// has failed, and that has lasted longer than a restart of the server may take.
#include "pg/pool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "pg/conn_int.h"
#include "pg/reply_int.h"

enum {
    TICK_MS = 250,
    GRACE_US = 1000 * 1000, // an outage shorter than this only delays calls
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 1000, // so the database is tried at least once per second
    MAX_DIALS = 4,         // at once; each costs the server a process
};

STAILQ_HEAD(call_queue, pg_call);
TAILQ_HEAD(conn_list, pg_conn);

enum pool_state { POOL_UNKNOWN, POOL_UP, POOL_DOWN };

struct pg_pool {
    uv_loop_t *loop;
    struct pg_pool_conf conf;
    struct target target;
    struct pg_pool_stats *stats, own_stats;

    struct call_queue queue;      // not sent yet
    struct call_queue refused;    // failed, done is called soon
    struct conn_list conns, idle; // idle: most recently used first, so surplus ones age
    unsigned n_conns;             // not freed yet, closed ones included
    unsigned n_ready, n_dialing, n_busy, n_queued;

    enum pool_state state;
    bool paused;         // see pg_pool_resume()
    uint64_t trouble_us; // since when no connection is up; 0: one is
    uint64_t server;     // start time of the server that our connections are to; 0: none yet
    bool lost_all;       // no connection to that server is left
    unsigned n_failed_dials;
    char error[160]; // of the last dial that failed
    uint64_t next_dial_us;

    uv_idle_t soon;             // runs work that must not run inside pg_pool_exec()
    uint64_t heard_us, busy_us; // time of the last result; when n_busy last left 0
    unsigned hurry_ms;          // upper bound of all deadlines; 0: none
    uv_timer_t tick;            // deadlines, idle connections, the outage's age
    uv_timer_t redial;
    unsigned n_handles;

    void (*on_state)(void *ctx, bool up);
    void *state_ctx;
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// Steps of a call, in order; then the events of connections.
static void run_soon(struct pg_pool *p);
static void on_soon(uv_idle_t *soon);
static void tell_refused(struct pg_pool *p);
static void send_queued(struct pg_pool *p);
static void dial_if_needed(struct pg_pool *p);
static void on_pg_pool_ready(struct pg_conn *c);
static void on_answered(struct pg_conn *c, struct pg_call *call, int status,
                        const struct pg_reply *reply);
static void on_broken(struct pg_conn *c, const char *why);
static void on_pg_pool_closed(struct pg_conn *c);
static void on_redial(uv_timer_t *timer);
static void meet_server(struct pg_pool *p, uint64_t server);
static void on_pg_pool_tick(uv_timer_t *timer);
static void pg_pool_drop(struct pg_pool *p, struct pg_conn *c);
static void pg_pool_close_if_done(struct pg_pool *p);
static void on_pg_pool_handle_closed(uv_handle_t *handle);

static const struct conn_events events = {on_pg_pool_ready, on_answered, on_broken,
                                          on_pg_pool_closed};

static void pg_pool_publish(struct pg_pool *p)
{
    atomic_store_explicit(&p->stats->n_open, p->n_ready, memory_order_relaxed);
    atomic_store_explicit(&p->stats->n_busy, p->n_busy, memory_order_relaxed);
    atomic_store_explicit(&p->stats->n_queued, p->n_queued, memory_order_relaxed);
}

static void set_state(struct pg_pool *p, enum pool_state state)
{
    if (p->state == state)
        return;
    p->state = state;
    atomic_store_explicit(&p->stats->up, state == POOL_UP, memory_order_relaxed);
    if (p->on_state != NULL && !p->closing)
        p->on_state(p->state_ctx, state == POOL_UP);
}

struct pg_pool *pg_pool_open(uv_loop_t *loop, const struct pg_pool_conf *conf,
                             void (*on_state)(void *ctx, bool up), void *ctx)
{
    assert(conf->max_conns > 0);

    struct pg_pool *p = mem_new(struct pg_pool);
    p->loop = loop;
    p->conf = *conf;
    target_init(&p->target, conf->conninfo, conf->pooler);
    p->target.max_result_bytes = conf->max_result_bytes;
    p->conf.conninfo = p->target.conninfo;
    p->stats = conf->stats ? conf->stats : &p->own_stats;
    p->on_state = on_state;
    p->state_ctx = ctx;
    STAILQ_INIT(&p->queue);
    STAILQ_INIT(&p->refused);
    TAILQ_INIT(&p->conns);
    TAILQ_INIT(&p->idle);
    p->trouble_us = clock_mono_us();
    p->paused = conf->paused;

    uv_idle_init(loop, &p->soon);
    uv_timer_init(loop, &p->tick);
    uv_timer_init(loop, &p->redial);
    p->soon.data = p->tick.data = p->redial.data = p;
    p->n_handles = 3;
    uv_timer_start(&p->tick, on_pg_pool_tick, TICK_MS, TICK_MS);
    run_soon(p); // open the first connection to see whether the database is available
    return p;
}

void pg_pool_resume(struct pg_pool *p)
{
    p->paused = false;
    run_soon(p);
}

static struct pg_conn *take_idle(struct pg_pool *p)
{
    struct pg_conn *c = TAILQ_FIRST(&p->idle);

    if (c != NULL)
        TAILQ_REMOVE(&p->idle, c, idle);
    return c;
}

static void pg_pool_refuse(struct pg_pool *p, struct pg_call *call, int code)
{
    call->refusal = code;
    STAILQ_INSERT_TAIL(&p->refused, call, link);
    run_soon(p);
}

// Sends the call on c, which is not in the idle list.
static void send_on(struct pg_pool *p, struct pg_conn *c, struct pg_call *call)
{
    int rc = conn_send(c, call);

    if (rc == 0) {
        if (p->n_busy++ == 0)
            p->busy_us = call->sent_us;
        return;
    }
    pg_pool_refuse(p, call, rc);
    if (c->doomed)
        pg_pool_drop(p, c);
    else
        TAILQ_INSERT_HEAD(&p->idle, c, idle);
}

void pg_pool_exec(struct pg_pool *p, struct pg_call *call)
{
    call->queued_us = clock_mono_us();
    call->sent = false;
    counter_add(&p->stats->calls, 1);

    struct pg_conn *c;
    if (p->closing || p->state == POOL_DOWN) {
        pg_pool_refuse(p, call, p->closing ? QE_STOPPING : QE_PG_AWAY);
    } else if (p->n_queued == 0 && (c = take_idle(p)) != NULL) {
        send_on(p, c, call);
    } else {
        if (call->urgent)
            STAILQ_INSERT_HEAD(&p->queue, call, link);
        else
            STAILQ_INSERT_TAIL(&p->queue, call, link);
        p->n_queued++;
        run_soon(p);
    }
    pg_pool_publish(p);
}

static void run_soon(struct pg_pool *p)
{
    if (!uv_is_closing((uv_handle_t *)&p->soon))
        uv_idle_start(&p->soon, on_soon);
}

static void on_soon(uv_idle_t *soon)
{
    struct pg_pool *p = soon->data;

    uv_idle_stop(soon);
    tell_refused(p);
    dial_if_needed(p);
    pg_pool_publish(p);
    pg_pool_close_if_done(p);
}

// Only the calls present now: a done callback that retries at once must not block the loop.
static void tell_refused(struct pg_pool *p)
{
    struct call_queue present = STAILQ_HEAD_INITIALIZER(present);

    STAILQ_CONCAT(&present, &p->refused);
    while (!STAILQ_EMPTY(&present)) {
        struct pg_call *call = STAILQ_FIRST(&present);
        STAILQ_REMOVE_HEAD(&present, link);
        counter_add(&p->stats->failed, 1);
        call->done(call, call->refusal, &(struct pg_reply){.message = err_text(call->refusal)});
    }
}

static struct pg_call *take_queued(struct pg_pool *p)
{
    struct pg_call *call = STAILQ_FIRST(&p->queue);

    if (call != NULL) {
        STAILQ_REMOVE_HEAD(&p->queue, link);
        p->n_queued--;
    }
    return call;
}

static void send_queued(struct pg_pool *p)
{
    struct pg_conn *c;

    while (p->n_queued > 0 && (c = take_idle(p)) != NULL)
        send_on(p, c, take_queued(p));
}

// Keep at least one connection, even without load: it shows whether the database is available.
static bool wants_conn(const struct pg_pool *p)
{
    const struct pg_call *first = STAILQ_FIRST(&p->queue);
    unsigned most = p->conf.max_conns + (first != NULL && first->urgent);

    if (p->closing || p->paused || p->n_dialing >= MAX_DIALS ||
        p->n_ready + p->n_dialing >= most)
        return false;
    // After lost_all a new connection shows whether this is another server.
    return ((p->n_ready == 0 || p->lost_all) && p->n_dialing == 0) ||
           p->n_queued > p->n_dialing;
}

static void dial_if_needed(struct pg_pool *p)
{
    while (wants_conn(p)) {
        uint64_t now = clock_mono_us();
        if (now < p->next_dial_us) {
            uv_timer_start(&p->redial, on_redial, (p->next_dial_us - now) / 1000 + 1, 0);
            return;
        }
        struct pg_conn *c =
            conn_dial(p->loop, &p->target, p->conf.connect_timeout_ms, &events, p);
        c->on_notified = p->conf.on_notified;
        c->notified_ctx = p->state_ctx;
        TAILQ_INSERT_TAIL(&p->conns, c, all);
        p->n_conns++;
        p->n_dialing++;
    }
}

static void on_redial(uv_timer_t *timer) { dial_if_needed(timer->data); }

static void on_pg_pool_ready(struct pg_conn *c)
{
    struct pg_pool *p = c->owner;

    p->n_dialing--;
    p->n_ready++;
    p->n_failed_dials = 0;
    p->next_dial_us = 0;
    p->trouble_us = 0;
    counter_add(&p->stats->opened, 1);
    c->idle_since_us = clock_mono_us();
    TAILQ_INSERT_HEAD(&p->idle, c, idle);
    meet_server(p, c->server);
    if (p->state == POOL_DOWN)
        log_info("pg.available", "conns=%u", p->n_ready);
    set_state(p, POOL_UP);
    send_queued(p);
    dial_if_needed(p);
    pg_pool_publish(p);
}

// A connection to another server than the last one; never c, which the pool is using.
static struct pg_conn *find_stranger(const struct pg_pool *p)
{
    struct pg_conn *c;

    TAILQ_FOREACH (c, &p->conns, all)
        if ((c->state == CONN_IDLE || c->state == CONN_BUSY) && c->server != p->server)
            return c;
    return NULL;
}

// The previous server may still answer, but its results no longer count.
static void leave_server(struct pg_pool *p, struct pg_conn *c)
{
    struct pg_call *call = c->state == CONN_BUSY ? c->call : NULL;

    c->doomed = true;
    if (call != NULL)
        p->n_busy--;
    else
        TAILQ_REMOVE(&p->idle, c, idle);
    pg_pool_drop(p, c);
    if (call == NULL)
        return;
    counter_add(&p->stats->failed, 1);
    call->done(call, QE_PG_GONE, &(struct pg_reply){.message = "the server was replaced"});
}

// See pool.h. on_new_server runs first, so that the caller's next calls are correct.
static void meet_server(struct pg_pool *p, uint64_t server)
{
    bool is_new = p->server != 0 && (p->server != server || p->lost_all);
    struct pg_conn *c;

    p->server = server;
    p->lost_all = false;
    if (!is_new)
        return;
    for (unsigned left = p->n_queued; left > 0; left--) {
        struct pg_call *call = take_queued(p);
        if (call->of_server) {
            pg_pool_refuse(p, call, QE_PG_RETRY);
        } else {
            STAILQ_INSERT_TAIL(&p->queue, call, link);
            p->n_queued++;
        }
    }
    if (p->conf.on_new_server != NULL && !p->closing)
        p->conf.on_new_server(p->state_ctx);
    // A done callback may change the list, so restart the search after each one.
    while ((c = find_stranger(p)) != NULL)
        leave_server(p, c);
}

static void pg_pool_notify(struct pg_call *call, int status, const struct pg_reply *reply);

// Sends the next call before this result is processed, so that the server works meanwhile.
static void on_answered(struct pg_conn *c, struct pg_call *call, int status,
                        const struct pg_reply *reply)
{
    struct pg_pool *p = c->owner;

    p->n_busy--;
    if (c->doomed) {
        log_warn("pg.connection_lost", "code=%s error=\"%s\"", err_name(status),
                 pg_reply_message(reply));
        pg_pool_drop(p, c);
    } else if (p->closing || p->n_ready > p->conf.max_conns) {
        p->heard_us = clock_mono_us();
        pg_pool_drop(p, c);
    } else {
        p->heard_us = c->idle_since_us = clock_mono_us();
        TAILQ_INSERT_HEAD(&p->idle, c, idle);
        send_queued(p);
    }
    if (status != 0)
        counter_add(&p->stats->failed, 1);
    pg_pool_publish(p);
    pg_pool_notify(call, status, reply);
    pg_pool_close_if_done(p);
}

static void pg_pool_notify(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct reply_odd odd = {0};
    bool is_named = call->statement->index != PG_UNPREPARED;
    const char *name = is_named ? call->statement->name : "(made at run time)";
    struct pg_reply seen = *reply;

    seen.odd = &odd;
    call->done(call, status, &seen); // call may have been freed
    if (odd.what) {
        char why[80];
        snprintf(why, sizeof why, "row %u, column %u %s", odd.row, odd.col + 1, odd.what);
        conn_log_unexpected(name, why);
    }
}

// A dial failed, or an idle connection was closed by the server.
static void on_broken(struct pg_conn *c, const char *why)
{
    struct pg_pool *p = c->owner;

    if (c->state == CONN_DIALING) {
        // At this level once per outage, because it repeats every second.
        log_at(p->n_failed_dials == 0 ? LOG_WARN : LOG_DEBUG, "pg.dial_failed",
               "tries=%u error=\"%s\"", p->n_failed_dials + 1, why);
        unsigned doublings = p->n_failed_dials < 5 ? p->n_failed_dials : 5;
        uint64_t wait_ms = (uint64_t)BACKOFF_MIN_MS << doublings;
        if (wait_ms > BACKOFF_MAX_MS)
            wait_ms = BACKOFF_MAX_MS;
        // Jitter, so that the pools of many workers do not reconnect in step.
        uint64_t wait_us = wait_ms * 500 + id_random_u64() % (wait_ms * 500);
        p->n_failed_dials++;
        snprintf(p->error, sizeof p->error, "%s", why);
        p->next_dial_us = clock_mono_us() + wait_us;
    } else {
        log_warn("pg.connection_lost", "code=%s error=\"%s\"", err_name(QE_PG_GONE), why);
        TAILQ_REMOVE(&p->idle, c, idle);
    }
    pg_pool_drop(p, c);
    dial_if_needed(p);
    pg_pool_publish(p);
}

// c is not in the idle list. Calls no callback.
static void pg_pool_drop(struct pg_pool *p, struct pg_conn *c)
{
    if (c->state == CONN_DIALING) {
        p->n_dialing--;
    } else {
        p->n_ready--;
        if (c->doomed)
            counter_add(&p->stats->broken, 1);
        // PostgreSQL 14 behind a pooler shows no crash: see identify.c.
        p->lost_all = p->lost_all || p->n_ready == 0 || c->other_server ||
                      (c->pooled && c->doomed && !c->has_reset);
        if (p->n_ready == 0 && p->trouble_us == 0)
            p->trouble_us = clock_mono_us();
    }
    TAILQ_REMOVE(&p->conns, c, all);
    conn_close(c);
    run_soon(p);
}

static void on_pg_pool_closed(struct pg_conn *c)
{
    struct pg_pool *p = c->owner;

    p->n_conns--;
    pg_pool_close_if_done(p);
}

// ---- timers ----

static void fail_queued(struct pg_pool *p, int code)
{
    while (p->n_queued > 0)
        pg_pool_refuse(p, take_queued(p), code);
}

static void check_outage(struct pg_pool *p, uint64_t now)
{
    bool has_failed = p->paused || p->n_failed_dials > 0;

    if (p->n_ready > 0 || !has_failed || now - p->trouble_us < GRACE_US)
        return;
    if (p->state != POOL_DOWN) // a start that takes its time is no error
        log_at(p->paused ? LOG_INFO : LOG_ERROR, "pg.unavailable", "tries=%u queued=%u",
               p->n_failed_dials, p->n_queued);
    set_state(p, POOL_DOWN);
    fail_queued(p, QE_PG_AWAY);
}

static unsigned pg_pool_deadline_ms(const struct pg_pool *p, const struct pg_call *call)
{
    unsigned ms = call->deadline_ms > 0 ? call->deadline_ms : p->conf.deadline_ms;

    return p->hurry_ms > 0 && p->hurry_ms < ms ? p->hurry_ms : ms;
}

static void tell_overdue(struct pg_pool *p, struct pg_conn *c)
{
    struct pg_call *call = c->call;

    log_error("pg.statement_timeout", "statement=%s deadline_ms=%u", call->statement->name,
              pg_pool_deadline_ms(p, call));
    c->doomed = true;
    p->n_busy--;
    pg_pool_drop(p, c);
    counter_add(&p->stats->failed, 1);
    call->done(call, QE_PG_GONE,
               &(struct pg_reply){.message = "no answer before the deadline"});
}

static struct pg_conn *find_overdue(const struct pg_pool *p, uint64_t now)
{
    struct pg_conn *c;

    TAILQ_FOREACH (c, &p->conns, all)
        if (c->state == CONN_BUSY &&
            now > c->call->sent_us + pg_pool_deadline_ms(p, c->call) * 1000ull)
            return c;
    return NULL;
}

static void check_deadlines(struct pg_pool *p, uint64_t now)
{
    struct pg_conn *c;

    // A done callback may change the list, so restart the search after each one.
    while ((c = find_overdue(p, now)) != NULL)
        tell_overdue(p, c);
    // All connections have been busy for that long: fail waiting calls instead of letting them
    // hang. Deadlines differ, so check every call, not only the first.
    for (unsigned left = p->n_queued; left > 0; left--) {
        struct pg_call *call = take_queued(p);
        if (now > call->queued_us + pg_pool_deadline_ms(p, call) * 1000ull) {
            pg_pool_refuse(p, call, QE_PG_RETRY);
        } else {
            STAILQ_INSERT_TAIL(&p->queue, call, link);
            p->n_queued++;
        }
    }
}

static void close_surplus(struct pg_pool *p, uint64_t now)
{
    unsigned keep = p->conf.keep_conns > 0 ? p->conf.keep_conns : 1;
    struct pg_conn *c;

    while (p->n_ready > keep && (c = TAILQ_LAST(&p->idle, conn_list)) != NULL &&
           now > c->idle_since_us + (uint64_t)p->conf.idle_close_ms * 1000) {
        TAILQ_REMOVE(&p->idle, c, idle);
        pg_pool_drop(p, c);
    }
}

static void on_pg_pool_tick(uv_timer_t *timer)
{
    struct pg_pool *p = timer->data;
    uint64_t now = clock_mono_us();

    check_outage(p, now);
    check_deadlines(p, now);
    close_surplus(p, now);
    pg_pool_publish(p);
    pg_pool_close_if_done(p);
}

// ---- state and shutdown ----

bool pg_pool_has_idle(const struct pg_pool *p)
{
    return p->n_queued == 0 && !TAILQ_EMPTY(&p->idle);
}

bool pg_pool_is_full(const struct pg_pool *p) { return p->n_busy >= p->conf.max_conns; }
uint64_t pg_pool_heard_us(const struct pg_pool *p) { return p->heard_us; }

uint64_t pg_pool_silent_since_us(const struct pg_pool *p)
{
    if (p->n_busy == 0)
        return 0;
    return p->heard_us > p->busy_us ? p->heard_us : p->busy_us;
}

uint64_t pg_pool_server(const struct pg_pool *p) { return p->server; }
bool pg_pool_is_pooled(const struct pg_pool *p) { return p->target.pooled; }
void pg_pool_hurry(struct pg_pool *p, unsigned ms) { p->hurry_ms = ms; }
const char *pg_pool_error(const struct pg_pool *p) { return p->error; }
const struct pg_pool_stats *pg_pool_stats(const struct pg_pool *p) { return p->stats; }

void pg_pool_close(struct pg_pool *p, void (*closed)(void *ctx), void *ctx)
{
    assert(!p->closing);
    p->closing = true;
    p->closed = closed;
    p->closed_ctx = ctx;

    uv_timer_stop(&p->redial);
    fail_queued(p, QE_STOPPING);
    struct pg_conn *c = TAILQ_FIRST(&p->conns), *next;
    for (; c != NULL; c = next) {
        next = TAILQ_NEXT(c, all);
        if (c->state == CONN_BUSY)
            continue;
        if (c->state == CONN_IDLE)
            TAILQ_REMOVE(&p->idle, c, idle);
        pg_pool_drop(p, c);
    }
    run_soon(p);
}

static void pg_pool_close_if_done(struct pg_pool *p)
{
    if (!p->closing || p->n_conns > 0 || !STAILQ_EMPTY(&p->refused) ||
        uv_is_closing((uv_handle_t *)&p->tick))
        return;
    uv_close((uv_handle_t *)&p->soon, on_pg_pool_handle_closed);
    uv_close((uv_handle_t *)&p->tick, on_pg_pool_handle_closed);
    uv_close((uv_handle_t *)&p->redial, on_pg_pool_handle_closed);
}

static void on_pg_pool_handle_closed(uv_handle_t *handle)
{
    struct pg_pool *p = handle->data;

    if (--p->n_handles > 0)
        return;
    if (p->closed != NULL)
        p->closed(p->closed_ctx);
    target_deinit(&p->target);
    free(p);
}
