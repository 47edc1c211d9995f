// sql_wake.c: see sql_wake.h.
#include "server/sql_wake.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"
#include "pg/pool.h"

enum {
    TICK_MS = 1000,
    // A consumer that pops again and again is parked most of the time. Keep the lock meanwhile.
    KEEP_US = 10 * 1000000,
    // More notifications than this within a second: poll for a second instead.
    BUSY_COUNT = 50,
    BUSY_US = 1000000,
    POLL_MS = 25,
    CHECK_US = 15 * 1000000, // notices a connection that died without a sign
    DEADLINE_MS = 3000,
};

enum wish { WISH_NONE, WISH_LISTEN, WISH_LOCK, WISH_UNLOCK, WISH_CHECK };

struct sql_wake {
    struct house *house;
    uv_timer_t tick, poll;
    uv_async_t parked; // from the brokers' threads
    unsigned n_handles;
    struct pg_pool *pool; // of one connection; NULL: not started

    struct pg_call call; // one at a time
    struct pg_params params;
    enum wish asked; // what it is for
    bool up, pooled; // the pool has a connection, which is to a transaction pooler
    bool listening, locked;
    bool stopping, disconnected, closing;
    bool lost; // the connection was replaced while the call was under way
    uint64_t parked_us, checked_us;
    uint64_t since_us; // begin of this second of notifications
    unsigned n_notified;
    uint64_t busy_until_us; // polling instead; 0: not
};

// In order.
static void on_sql_wake_state(void *ctx, bool up);
static void on_parked(void *ctx);
static void on_sql_wake_async(uv_async_t *async);
static void on_sql_wake_tick(uv_timer_t *tick);
static void sql_wake_step(struct sql_wake *w);
static void on_sql_wake_done(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_new_connection(void *ctx);
static void on_notified(void *ctx, span payload);
static void on_sql_wake_poll(uv_timer_t *poll);
static void on_pool_closed(void *ctx);
static void sql_wake_close_handles(struct sql_wake *w);
static void on_sql_wake_closed(uv_handle_t *handle);

struct sql_wake *sql_wake_new(uv_loop_t *loop, struct house *house)
{
    struct sql_wake *w = mem_new(struct sql_wake);

    w->house = house;
    uv_timer_init(loop, &w->tick);
    uv_timer_init(loop, &w->poll);
    uv_async_init(loop, &w->parked, on_sql_wake_async);
    w->tick.data = w->poll.data = w->parked.data = w;
    w->n_handles = 3;
    house_watch_parked(house, on_parked, w);
    return w;
}

void sql_wake_start(struct sql_wake *w, const struct pg_pool_conf *pg)
{
    w->pool = pg_pool_open(w->tick.loop,
                           &(struct pg_pool_conf){.on_new_server = on_new_connection,
                                                  .on_notified = on_notified,
                                                  .conninfo = pg->conninfo,
                                                  .pooler = pg->pooler,
                                                  .max_conns = 1,
                                                  .keep_conns = 1,
                                                  .connect_timeout_ms = pg->connect_timeout_ms,
                                                  .deadline_ms = DEADLINE_MS,
                                                  .idle_close_ms = UINT32_MAX},
                           on_sql_wake_state, w);
    uv_timer_start(&w->tick, on_sql_wake_tick, 0, TICK_MS);
}

// Before a call is sent: LISTEN would reach a session that other clients share.
static void on_sql_wake_state(void *ctx, bool up)
{
    struct sql_wake *w = ctx;

    w->up = up;
    w->pooled = pg_pool_is_pooled(w->pool);
    if (w->pooled)
        log_info("sql_wake.off", "why=\"LISTEN does not work behind a transaction pooler\"");
}

// On a broker's thread, when a pop parks and house_await_parked() asked for it.
static void on_parked(void *ctx)
{
    struct sql_wake *w = ctx;

    uv_async_send(&w->parked);
}

static void on_sql_wake_async(uv_async_t *async)
{
    struct sql_wake *w = async->data;

    w->parked_us = clock_mono_us();
    sql_wake_step(w);
}

static void on_sql_wake_tick(uv_timer_t *tick)
{
    struct sql_wake *w = tick->data;

    if (house_parked(w->house) > 0)
        w->parked_us = clock_mono_us();
    sql_wake_step(w);
}

static enum wish next_wish(struct sql_wake *w, uint64_t now)
{
    bool awaited = w->parked_us != 0 && now - w->parked_us < KEEP_US && w->busy_until_us == 0;

    if (!w->listening)
        return WISH_LISTEN;
    if (awaited != w->locked)
        return awaited ? WISH_LOCK : WISH_UNLOCK;
    return now - w->checked_us > CHECK_US ? WISH_CHECK : WISH_NONE;
}

static void sql_wake_step(struct sql_wake *w)
{
    static const struct pg_statement *const statements[] = {
        [WISH_LISTEN] = &pg_stmt_listen_pushed,
        [WISH_LOCK] = &pg_stmt_await_pushed,
        [WISH_UNLOCK] = &pg_stmt_await_pushed,
        [WISH_CHECK] = &pg_stmt_listen_pushed, // harmless if it listens already
    };
    uint64_t now = clock_mono_us();

    if (w->pooled && !w->stopping)
        sql_wake_stop(w);
    if (w->stopping || !w->up || w->asked != WISH_NONE)
        return;
    if (w->busy_until_us != 0 && now >= w->busy_until_us) {
        w->busy_until_us = 0;
        uv_timer_stop(&w->poll);
        house_poll(w->house); // for pushes since the last poll
    }
    w->asked = next_wish(w, now);
    house_await_parked(w->house, w->asked == WISH_NONE && !w->locked && w->busy_until_us == 0);
    if (w->asked == WISH_NONE)
        return;
    w->lost = false;
    pg_params_reset(&w->params);
    if (w->asked == WISH_LOCK || w->asked == WISH_UNLOCK)
        pg_param_bool(&w->params, w->asked == WISH_LOCK);
    w->call = (struct pg_call){.statement = statements[w->asked],
                               .params = &w->params,
                               .done = on_sql_wake_done,
                               .owner = w};
    pg_pool_exec(w->pool, &w->call);
}

static void on_sql_wake_done(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct sql_wake *w = call->owner;
    enum wish asked = w->asked;

    w->asked = WISH_NONE;
    w->checked_us = clock_mono_us();
    if (status != 0) {
        // The connection is probably gone, and listening and the lock with it. If it is not,
        // listening again is harmless, and closing it ends the lock.
        log_debug("sql_wake.failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
        w->listening = w->locked = false;
        return; // the next tick tries again
    }
    if (w->lost) {
        w->listening = w->locked = false;
    } else if (asked == WISH_LISTEN) {
        w->listening = true;
        log_info("sql_wake.listening", "channel=queen_pushed");
        if (!w->stopping)
            house_poll(w->house); // for pushes before that
    } else if (asked == WISH_LOCK) {
        w->locked = pg_reply_rows(reply) == 1 &&
                    !pg_reply_is_null(reply, 0, AWAIT_PUSHED_COL_AWAIT_PUSHED) &&
                    pg_reply_bool(reply, 0, AWAIT_PUSHED_COL_AWAIT_PUSHED);
        if (!w->locked)
            return; // another session holds it exclusively; the next tick tries again
        if (!w->stopping)
            house_poll(w->house); // a session may have looked before
    } else if (asked == WISH_UNLOCK) {
        w->locked = false;
    }
    sql_wake_step(w);
}

// The call that is under way, if any, may have been sent on either connection.
static void on_new_connection(void *ctx)
{
    struct sql_wake *w = ctx;

    w->listening = w->locked = false;
    w->lost = true;
}

static void on_notified(void *ctx, span payload)
{
    struct sql_wake *w = ctx;
    uint64_t now = clock_mono_us();

    if (w->stopping)
        return;
    if (payload.len > 0)
        house_notified(w->house, HOUSE_STORED, payload);
    else
        house_poll(w->house);
    if (now - w->since_us > BUSY_US) {
        w->since_us = now;
        w->n_notified = 0;
    }
    if (++w->n_notified > BUSY_COUNT && w->busy_until_us == 0) {
        w->busy_until_us = now + BUSY_US;
        uv_timer_start(&w->poll, on_sql_wake_poll, POLL_MS, POLL_MS);
        sql_wake_step(w);
    }
}

static void on_sql_wake_poll(uv_timer_t *poll)
{
    struct sql_wake *w = poll->data;

    house_poll(w->house);
    if (clock_mono_us() >= w->busy_until_us)
        sql_wake_step(w);
}

void sql_wake_stop(struct sql_wake *w)
{
    if (!w || w->stopping)
        return;
    w->stopping = true;
    house_await_parked(w->house, false);
    uv_timer_stop(&w->tick);
    uv_timer_stop(&w->poll);
    if (w->pool)
        pg_pool_close(w->pool, on_pool_closed, w);
    else
        w->disconnected = true;
}

static void on_pool_closed(void *ctx)
{
    struct sql_wake *w = ctx;

    w->disconnected = true;
    if (w->closing)
        sql_wake_close_handles(w);
}

// A pop that parks at the last moment may still call on_parked(), so the handle for that lives
// until the loops of the brokers have ended.
void sql_wake_close(struct sql_wake *w)
{
    if (!w)
        return;
    sql_wake_stop(w);
    w->closing = true;
    if (w->disconnected)
        sql_wake_close_handles(w);
}

static void sql_wake_close_handles(struct sql_wake *w)
{
    uv_close((uv_handle_t *)&w->tick, on_sql_wake_closed);
    uv_close((uv_handle_t *)&w->poll, on_sql_wake_closed);
    uv_close((uv_handle_t *)&w->parked, on_sql_wake_closed);
}

static void on_sql_wake_closed(uv_handle_t *handle)
{
    struct sql_wake *w = handle->data;

    if (--w->n_handles > 0)
        return;
    pg_params_free(&w->params);
    free(w);
}
