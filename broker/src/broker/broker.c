// One broker: its life, the turn of its loop, and how operations travel.
#include "broker/broker_int.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "crypt/sealer.h"

enum { LOG_EVERY_US = 1000 * 1000 };

static void on_turn(uv_check_t *turn);
static void on_timer(uv_timer_t *timer);
static void take_turn(struct broker *b);
static void call_finished(struct broker *b);
static void rearm_timer(struct broker *b);
static void on_pg_state(void *ctx, bool up);
static void broker_close_if_done(struct broker *b);
static void on_broker_pool_closed(void *ctx);
static void on_broker_handle_closed(uv_handle_t *handle);
static void on_mailbox_closed(void *ctx);

// ---- life ----

struct house *house_new(unsigned n)
{
    assert(n > 0 && n <= 256);
    struct house *h = mem_new(struct house);
    h->n = n;
    h->brokers = mem_new_array(struct broker *, n);
    h->timer = timer_new(h);
    id_random(h->mark, sizeof h->mark);
    do
        id_random(&h->origin, sizeof h->origin);
    while (h->origin >= -3 && h->origin <= 0); // 0: a SQL session; below: see refresh_stats.sql
    return h;
}

// Brokers are freed here and not when they close: another one may still have been posting to
// the mailbox.
void house_free(struct house *h)
{
    for (unsigned i = 0; i < h->n; i++) {
        if (!h->brokers[i])
            continue;
        mailbox_deinit(&h->brokers[i]->mailbox);
        free(h->brokers[i]);
    }
    if (h->replay)
        replay_free(h->replay);
    timer_free(h->timer);
    free(h->brokers);
    free(h);
}

void house_use_spool(struct house *h, struct spool *s, const struct replay_conf *conf)
{
    h->spool = s;
    h->replay_conf = *conf;
    h->replay = replay_new(h);
}

unsigned house_size(const struct house *h) { return h->n; }
struct broker *house_broker(const struct house *h, unsigned i) { return h->brokers[i]; }

struct broker *house_home(struct house *h, span queue)
{
    return h->brokers[XXH3_64bits_withSeed(queue.ptr, queue.len, map_seed) % h->n];
}

struct broker *broker_open(struct house *h, unsigned index, uv_loop_t *loop,
                           const struct broker_conf *conf)
{
    const struct batch_conf *const batches[OP_KINDS] = {
        [OP_PUSH] = &conf->push,     [OP_POP] = &conf->pop,        [OP_ACK] = &conf->ack,
        [OP_RENEW] = &conf->renew,   [OP_TRANSACTION] = &conf->tx, [OP_CYCLE] = &conf->cycle,
        [OP_CUSTOM] = &conf->custom,
    };
    struct broker *b = mem_new(struct broker);
    uint64_t now = clock_mono_us();

    b->house = h;
    b->index = index;
    b->loop = loop;
    b->conf = *conf;
    b->pg_ahead_us = (int64_t)clock_wall_us() - (int64_t)now; // until it is known better
    if (conf->keys)
        b->sealer = sealer_new(conf->keys);
    TAILQ_INIT(&b->recent_lanes);
    TAILQ_INIT(&b->recent_groups);
    TAILQ_INIT(&b->parked_lanes);
    STAILQ_INIT(&b->later);
    TAILQ_INIT(&b->feed_waiting);
    TAILQ_INIT(&b->feed_flying_pops);
    TAILQ_INIT(&b->noting_pops);
    LIST_INIT(&b->selectors);
    LIST_INIT(&b->touched);
    STAILQ_INIT(&b->finished);
    STAILQ_INIT(&b->schedule_queue);
    STAILQ_INIT(&b->customs_first);
    TAILQ_INIT(&b->push_flights);
    for (unsigned kind = 0; kind < OP_KINDS; kind++) {
        STAILQ_INIT(&b->ops[kind].queue);
        gate_init(&b->ops[kind].gate, *batches[kind], conf->limit, now);
    }

    if (mailbox_open(&b->mailbox, loop) != 0)
        BUG("no mailbox");
    uv_check_init(loop, &b->turn);
    uv_timer_init(loop, &b->timer);
    b->turn.data = b->timer.data = b;
    b->n_handles = 3; // and the mailbox
    uv_check_start(&b->turn, on_turn);
    b->conf.pg.on_new_server = broker_forget;
    b->conf.pg.stats = &b->pg_stats;
    b->pg = pg_pool_open(loop, &b->conf.pg, on_pg_state, b);
    h->brokers[index] = b;
    chores_start(b);
    timer_start(b);
    stats_start(b);
    if (index == 0 && h->spool)
        maintenance_start(b);
    if (index == 0)
        keys_start(b);
    recorder_start(b);
    stored_start(b);
    unused_start(b);
    return b;
}

static void on_pg_state(void *ctx, bool up)
{
    struct broker *b = ctx;

    atomic_store_explicit(&b->up, up, memory_order_relaxed);
    b->away = !up;
    broker_wake(b); // pushes are diverted, or go on
    if (up && b->house->spool)
        replay_kick(b->house);
}

void broker_resume(struct broker *b) { pg_pool_resume(b->pg); }
const char *broker_pg_error(const struct broker *b) { return pg_pool_error(b->pg); }
const struct broker_stats *broker_stats(const struct broker *b) { return &b->stats; }
const struct pg_pool_stats *broker_pg_stats(const struct broker *b) { return &b->pg_stats; }

bool broker_is_up(const struct broker *b)
{
    return atomic_load_explicit(&b->up, memory_order_relaxed);
}

bool house_is_up(const struct house *h)
{
    for (unsigned i = 0; i < h->n; i++)
        if (!h->brokers[i] || !broker_is_up(h->brokers[i]))
            return false;
    return true;
}

void broker_drain(struct broker *b)
{
    b->draining = true;
    pops_drain(b);
    broker_wake(b);
}

bool broker_is_quiet(const struct broker *b)
{
    return b->index != 0 || !b->house->replay || !replay_is_busy(b->house->replay);
}

void broker_close(struct broker *b, void (*closed)(void *ctx), void *ctx)
{
    b->closing = true;
    b->closed = closed;
    b->closed_ctx = ctx;
    pops_drain(b);
    lanes_refuse_parked(b);
    recorder_finish(b);
    stored_finish(b);
    pg_pool_close(b->pg, on_broker_pool_closed, b);
}

static void on_broker_pool_closed(void *ctx)
{
    struct broker *b = ctx;

    b->pg = NULL;
    broker_close_if_done(b);
}

static void broker_close_if_done(struct broker *b)
{
    call_finished(b);
    uv_close((uv_handle_t *)&b->turn, on_broker_handle_closed);
    uv_close((uv_handle_t *)&b->timer, on_broker_handle_closed);
    mailbox_close(&b->mailbox, on_mailbox_closed, b);
}

static void handle_gone(struct broker *b)
{
    if (--b->n_handles > 0)
        return;
    feed_deinit(b);
    selectors_free(b);
    recorder_free(b);
    stored_free(b);
    lanes_free(b);
    due_deinit(&b->due);
    free(b->unresolved);
    free(b->alone);
    free(b->locked);
    free(b->unnumbered);
    free(b->give_back);
    free(b->watermarks);
    sealer_free(b->sealer);
    if (b->closed)
        b->closed(b->closed_ctx); // b itself goes with its house
}

static void on_broker_handle_closed(uv_handle_t *handle) { handle_gone(handle->data); }
static void on_mailbox_closed(void *ctx) { handle_gone(ctx); }

// ---- the turn ----

// After the loop has read all sockets: what came in together leaves together.
static void on_turn(uv_check_t *turn) { take_turn(turn->data); }
static void on_timer(uv_timer_t *timer) { take_turn(timer->data); }

static void flush_all(struct broker *b)
{
    lanes_flush(b);
    groups_flush(b);
    pushes_flush(b);
    schedules_flush(b);
    feed_flush(b);
    claims_flush(b);
    acks_flush(b);
    renewals_flush(b);
    give_back_flush(b);
    watermarks_flush(b);
    transactions_flush(b);
    cycles_flush(b);
    customs_flush(b);
}

static void take_turn(struct broker *b)
{
    if (b->closing)
        return;
    b->in_turn = true;
    b->n_turns++;
    b->again = false;
    // Also in the check phase, which comes before the timer that the poll has just waited for:
    // else rearming would push that timer on and on.
    due_run(&b->due, clock_mono_us());
    if (is_beyond_limits(b))
        unused_forget(b);
    flush_all(b);
    call_finished(b);
    if (b->again) { // done callbacks have brought more
        b->again = false;
        flush_all(b);
    }
    b->in_turn = false;
    rearm_timer(b);
    if (b->again || !STAILQ_EMPTY(&b->finished))
        uv_timer_start(&b->timer, on_timer, 1, 0);
}

// When the earliest of: something due, a batch that has waited for company long enough.
static void rearm_timer(struct broker *b)
{
    uint64_t now = clock_mono_us(), next = due_next_us(&b->due);
    uint64_t in_ms = next == UINT64_MAX ? 0 : next <= now ? 1 : (next - now + 999) / 1000;
    static const uint8_t gathering[] = {OP_PUSH, OP_POP, OP_ACK, OP_RENEW}; // others never wait

    for (unsigned i = 0; i < countof(gathering); i++) {
        const struct op_stage *s = &b->ops[gathering[i]];
        const struct op *oldest = STAILQ_FIRST(&s->queue);
        if (!oldest)
            continue;
        unsigned ms = gate_opens_in_ms(
            &s->gate,
            (struct gate_queue){.requests = s->n_requests, .oldest_us = oldest->since_us}, now);
        if (ms > 0 && (in_ms == 0 || ms < in_ms))
            in_ms = ms;
    }
    if (in_ms == 0)
        uv_timer_stop(&b->timer);
    else // never 0: libuv 1.44 would run it again within the same turn
        uv_timer_start(&b->timer, on_timer, in_ms, 0);
}

void broker_wake(struct broker *b)
{
    if (b->in_turn)
        b->again = true;
    else if (!b->closing)
        uv_timer_start(&b->timer, on_timer, 0, 0);
}

// ---- operations ----

void op_begin(struct broker *b, struct op *op, uint8_t kind, op_complete_cb *complete)
{
    *op = (struct op){
        .origin = b, .kind = kind, .complete = complete, .since_us = clock_mono_us()};
}

void op_go(struct broker *b, struct broker *home, struct op *op,
           void (*arrive)(struct mailbox_item *))
{
    op->mail = (struct mailbox_item){.deliver = arrive, .owner = home};
    if (home == b)
        arrive(&op->mail);
    else if (mailbox_post(&home->mailbox, &op->mail) != 0)
        op_finish(b, op, QE_STOPPING);
}

bool op_admit(struct broker *home, struct op *op)
{
    op->arrival = ++home->n_arrived;
    if (home->n_pending < home->conf.max_pending && !home->closing) {
        home->n_pending++;
        atomic_store_explicit(&home->stats.pending, home->n_pending, memory_order_relaxed);
        return true;
    }
    home->n_pending++; // op_finish() will take it off again
    counter_add(&home->stats.refused, 1);
    op_finish(home, op, home->closing ? QE_STOPPING : QE_BUSY);
    return false;
}

static void deliver_finished(struct mailbox_item *item)
{
    struct op *op = container_of(item, struct op, mail);

    STAILQ_INSERT_TAIL(&op->origin->finished, op, link);
    broker_wake(op->origin);
}

void op_finish(struct broker *home, struct op *op, int status)
{
    op->status = status;
    if (home->n_pending > 0)
        home->n_pending--;
    atomic_store_explicit(&home->stats.pending, home->n_pending, memory_order_relaxed);
    counter_add(&home->stats.requests[op->kind], 1);
    if (status != 0 && status != UV_ECANCELED)
        counter_add(&home->stats.failed[op->kind], 1);
    if (op->kind != OP_POP || !pop_of(op)->has_waited)
        histogram_add(&home->stats.latency_us[op->kind], clock_mono_us() - op->since_us);

    if (op->origin == home) {
        STAILQ_INSERT_TAIL(&home->finished, op, link);
        broker_wake(home);
        return;
    }
    op->mail = (struct mailbox_item){.deliver = deliver_finished};
    if (mailbox_post(&op->origin->mailbox, &op->mail) != 0)
        BUG("an operation outlived the broker it was given to");
}

static void call_finished(struct broker *b)
{
    // Only those present now: a done callback may start the next operation.
    struct op_list now = STAILQ_HEAD_INITIALIZER(now);
    STAILQ_CONCAT(&now, &b->finished);

    while (!STAILQ_EMPTY(&now)) {
        struct op *op = STAILQ_FIRST(&now);
        STAILQ_REMOVE_HEAD(&now, link);
        op->complete(op);
    }
}

// ---- calls ----

struct call *call_new(struct broker *b, const struct pg_statement *statement, void *what)
{
    struct call *c = mem_new(struct call);
    c->broker = b;
    c->what = what;
    c->pg.statement = statement;
    c->pg.params = &c->params;
    c->pg.owner = c;
    return c;
}

void call_send(struct call *c, pg_done_cb done)
{
    c->pg.done = done;
    c->pg.of_server = is_of_server(c->pg.statement);
    c->left_us = clock_mono_us();
    pg_pool_exec(c->broker->pg, &c->pg);
    pg_watchdog_start(c->broker);
}

void call_free(struct call *c)
{
    pg_params_free(&c->params);
    free(c);
}

int call_unexpected(const struct call *c, const char *detail)
{
    struct broker *b = c->broker;
    uint64_t now = clock_mono_us();

    if (b->unexpected_us == 0 || now - b->unexpected_us >= LOG_EVERY_US) {
        b->unexpected_us = now;
        log_error("pg.unexpected_result", "statement=%s detail=\"%s\"", c->pg.statement->name,
                  detail);
    }
    return QE_PG_SHAPE;
}

// An outage, a conflict and a lost connection are logged elsewhere, or repeated.
void call_failed(const struct call *c, int status, const struct pg_reply *reply)
{
    struct broker *b = c->broker;
    uint64_t now = clock_mono_us();

    if (status != QE_PG_FAILED && status != QE_PG_DATA)
        return;
    if (b->failed_us != 0 && now - b->failed_us < LOG_EVERY_US) {
        b->n_failed++;
        return;
    }
    log_warn("db.statement_failed", "statement=%s sqlstate=%s error=\"%s\" unlogged=%u",
             c->pg.statement->name, pg_reply_sqlstate(reply), pg_reply_message(reply),
             b->n_failed);
    b->failed_us = now;
    b->n_failed = 0;
}

bool is_outage(int status)
{
    return status == QE_PG_AWAY || status == QE_PG_GONE || status == QE_PG_FULL ||
           status == QE_PG_READ_ONLY;
}

// By the monotonic clock, so that a jump of ours changes nothing.
int64_t broker_pg_us(const struct broker *b)
{
    return (int64_t)clock_mono_us() + b->pg_ahead_us;
}

bool is_worth_retry(int status) { return status == QE_PG_RETRY || status == QE_PG_GONE; }
