// Chores in the database that any broker may do, one at a time: rotation and over-age messages.
#include "broker/broker_int.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "pg/sql.gen.h"

// The slot of consumer versions is changed when it has grown this large, and the old one
// emptied no sooner than this long after.
enum { ROTATE_EVERY_MS = 10000, ROTATE_MIN_AGE_S = 30, ROTATE_BYTES = 32 << 20 };

static void on_due(struct due *d);
static void on_rotated(struct pg_call *pg, int status, const struct pg_reply *reply);
static void expire(struct broker *b);
static void on_expired(struct pg_call *pg, int status, const struct pg_reply *reply);

static void again_in(struct broker *b, unsigned ms)
{
    // Spread, so that several brokers do not all come at once.
    due_set(&b->due, &b->chores_due, clock_mono_us() + ms * 1000ull + id_random_u64() % 500000,
            on_due);
}

void chores_start(struct broker *b)
{
    b->expired_us = clock_mono_us();
    if (b->index == 0)
        again_in(b, b->conf.expire_ms < ROTATE_EVERY_MS ? b->conf.expire_ms : ROTATE_EVERY_MS);
}

static void on_due(struct due *d)
{
    struct broker *b = container_of(d, struct broker, chores_due);

    if (!broker_is_up(b) || b->closing) {
        again_in(b, ROTATE_EVERY_MS);
        return;
    }
    struct call *c = call_new(b, &pg_stmt_rotate, NULL);
    pg_param_i32(&c->params, ROTATE_MIN_AGE_S);
    pg_param_i64(&c->params, ROTATE_BYTES);
    call_send(c, on_rotated);
}

static void on_rotated(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    if (status != 0)
        log_warn("chores.rotate", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    else
        log_debug("chores.rotate", "did=" SPAN_FMT, SPAN_ARG(pg_reply_bytes(reply, 0, 0)));
    call_free(c);
    if (clock_mono_us() - b->expired_us >= b->conf.expire_ms * 1000ull)
        expire(b);
    else
        again_in(b, b->conf.expire_ms < ROTATE_EVERY_MS ? b->conf.expire_ms : ROTATE_EVERY_MS);
}

static void expire(struct broker *b)
{
    struct call *c = call_new(b, &pg_stmt_expire, NULL);

    b->expired_us = clock_mono_us();
    pg_param_i32(&c->params, (int32_t)b->conf.expire_limit);
    call_send(c, on_expired);
}

static void on_expired(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    if (status != 0)
        log_warn("chores.expire", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        span queue = pg_reply_bytes(reply, row, 0);
        int64_t n = pg_reply_i64(reply, row, 1);
        counter_add(&b->stats.expired, (uint64_t)n);
        log_info("messages.expired", "queue=\"" SPAN_FMT "\" count=%lld", SPAN_ARG(queue),
                 (long long)n);
    }
    call_free(c);
    again_in(b, b->conf.expire_ms < ROTATE_EVERY_MS ? b->conf.expire_ms : ROTATE_EVERY_MS);
}
