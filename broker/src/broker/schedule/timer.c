// Firing: messages whose time has come are appended to their lanes.
//
// The first broker of a house wakes up when the earliest known message is
// due: it has scheduled it, or has seen it in an answer of queen.next_due, which comes with
// every look into the feed.  Every house does so, and the lanes' locks share the work; so a
// message does not depend on the house that took it, and houses that come second look into the
// feed for their parked pops.  It also probes periodically (another house may
// have died).  PostgreSQL's clock alone decides what is due.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

enum {
    AT_ONCE = 2000,               // messages per step
    START_US = 100 * 1000,        // let the pool connect first
    ALL_US = 30 * 1000 * 1000,    // a look at everything, however old
    RETRY_US = 1000 * 1000,       // the database is away
    PAUSED_US = 250 * 1000,       // maintenance
    LAG_US = 2 * 1000 * 1000,     // who schedules for now may commit this much later
    SLICES_US = 60 * 1000 * 1000, // slices to be made and dropped
};

struct timer {
    struct house *house;
    _Atomic uint64_t at_us;   // monotonic: when it wakes up
    _Atomic int64_t from_us;  // see timer_from_us()
    struct mailbox_item kick; // at_us has become earlier
    _Atomic bool kicked;
    // Monotonic: other sessions have locked due messages, and will be tried again then; 0:
    // none.
    _Atomic uint64_t locked_until_us;
    // of broker 0
    struct due due, slices_due;
    bool flying;
    bool worked;        // once
    bool expected;      // something is known to be due
    uint64_t looked_us; // at everything
};

static void on_timer_kick(struct mailbox_item *item);
static void wake_at(struct timer *f, uint64_t at_us, bool expected);
static void on_timer_due(struct due *d);
static void timer_query(struct timer *f);
static void on_fired(struct pg_call *pg, int status, const struct pg_reply *reply);
static void on_slices_due(struct due *d);

struct timer *timer_new(struct house *h)
{
    struct timer *f = mem_new(struct timer);

    f->house = h;
    atomic_store(&f->at_us, UINT64_MAX);
    return f;
}

void timer_free(struct timer *f) { free(f); }

int64_t timer_from_us(const struct house *h)
{
    return atomic_load_explicit(&h->timer->from_us, memory_order_relaxed);
}

void timer_start(struct broker *b)
{
    struct timer *f = b->house->timer;

    if (b->index != 0 || b->conf.timer_probe_ms == 0)
        return;
    wake_at(f, clock_mono_us() + START_US, false);
    due_set(&b->due, &f->slices_due, clock_mono_us() + SLICES_US, on_slices_due);
    broker_wake(b);
}

void timer_forget(struct house *h)
{
    h->timer->looked_us = 0;
    atomic_store(&h->timer->from_us, 0);
    timer_expect(h, 0);
}

// Times come from the database: a wait that is far off must not wrap around to now.
static int64_t bounded(int64_t wait_us)
{
    return wait_us < 0 ? 0 : wait_us < INT64_MAX / 4 ? wait_us : INT64_MAX / 4;
}

void timer_expect(struct house *h, int64_t wait_us)
{
    struct timer *f = h->timer;
    uint64_t at = clock_mono_us() + (uint64_t)bounded(wait_us);
    uint64_t known = atomic_load(&f->at_us);

    do
        if (known <= at)
            return;
    while (!atomic_compare_exchange_weak(&f->at_us, &known, at));
    if (!h->brokers[0] || h->brokers[0]->conf.timer_probe_ms == 0 ||
        atomic_exchange(&f->kicked, true))
        return;
    f->kick = (struct mailbox_item){.deliver = on_timer_kick, .owner = f};
    if (mailbox_post(&h->brokers[0]->mailbox, &f->kick) != 0)
        atomic_store(&f->kicked, false); // closing: others fire it, or the next start
}

void timer_expect_feed(struct house *h, int64_t wait_us)
{
    uint64_t now = clock_mono_us(), until = atomic_load(&h->timer->locked_until_us);

    // The feed does not show that a due message is locked.
    if (wait_us <= 0 && until > now)
        wait_us = (int64_t)(until - now);
    timer_expect(h, wait_us);
}

void broker_times_changed(struct broker *b) { timer_expect(b->house, 0); }

static struct broker *timer_broker(const struct timer *f) { return f->house->brokers[0]; }

static void on_timer_kick(struct mailbox_item *item)
{
    struct timer *f = item->owner;

    atomic_store(&f->kicked, false);
    if (!f->flying)
        wake_at(f, atomic_load(&f->at_us), true);
    broker_wake(timer_broker(f));
}

static void wake_at(struct timer *f, uint64_t at_us, bool expected)
{
    f->expected = expected;
    atomic_store(&f->at_us, at_us);
    due_set(&timer_broker(f)->due, &f->due, at_us, on_timer_due);
}

static void on_timer_due(struct due *d)
{
    struct timer *f = container_of(d, struct timer, due);
    struct broker *b = timer_broker(f);

    if (b->closing)
        return;
    if (!broker_is_up(b))
        wake_at(f, clock_mono_us() + RETRY_US, f->expected);
    else if (house_maintenance(f->house) & MAINTENANCE_PUSH) // nothing comes into queues
        wake_at(f, clock_mono_us() + PAUSED_US, f->expected);
    else if (!f->flying)
        timer_query(f);
}

static void timer_query(struct timer *f)
{
    struct call *c = call_new(timer_broker(f), &pg_stmt_fire_scheduled, f);
    uint64_t now = clock_mono_us();

    if (f->looked_us == 0 || now - f->looked_us >= ALL_US) {
        f->looked_us = now;
        atomic_store(&f->from_us, 0);
    }
    f->flying = true;
    // Expectations of earlier times that arrive from here on are read in on_fired().
    atomic_store(&f->at_us, UINT64_MAX);
    pg_param_i32(&c->params, f->house->origin);
    pg_param_i32(&c->params, AT_ONCE);
    pg_param_i64(&c->params, atomic_load(&f->from_us));
    call_send(c, on_fired);
}

static void note_late(struct broker *b, span late)
{
    for (size_t i = 0; i + 4 <= late.len; i += 4) {
        const unsigned char *p = (const unsigned char *)late.ptr + i;
        uint64_t ms = (uint64_t)p[0] << 24 | (uint64_t)p[1] << 16 | (uint64_t)p[2] << 8 | p[3];
        histogram_add(&b->stats.late_us, ms * 1000);
    }
    counter_add(&b->stats.fired, late.len / 4);
}

// When to check again, from the row about the whole step.
static uint64_t next_look(struct timer *f, const struct pg_reply *reply, unsigned row,
                          unsigned n_lanes)
{
    uint64_t now = clock_mono_us();
    bool busy = pg_reply_bool(reply, row, FIRE_SCHEDULED_COL_BUSY);

    if (!pg_reply_is_null(reply, row, FIRE_SCHEDULED_COL_THROUGH_US))
        atomic_store(&f->from_us,
                     pg_reply_i64(reply, row, FIRE_SCHEDULED_COL_THROUGH_US) - LAG_US);
    // Another broker has delivered it, or will: the feed wakes the pops that wait for it here.
    if (busy || (f->expected && n_lanes == 0))
        notify_poll(timer_broker(f));
    uint64_t next = UINT64_MAX;
    if (pg_reply_bool(reply, row, FIRE_SCHEDULED_COL_MORE)) {
        next = now;
    } else if (!pg_reply_is_null(reply, row, FIRE_SCHEDULED_COL_WAIT_US)) {
        next = now + (uint64_t)bounded(pg_reply_i64(reply, row, FIRE_SCHEDULED_COL_WAIT_US));
    }
    atomic_store(&f->locked_until_us, busy ? next : 0);
    return next;
}

static const struct lane_cols lane_cols = {
    FIRE_SCHEDULED_COL_LANE, FIRE_SCHEDULED_COL_LANE_ID, FIRE_SCHEDULED_COL_LANE_NAME,
    FIRE_SCHEDULED_COL_PARTITION_NAME, FIRE_SCHEDULED_COL_ONLY_GROUP};

static void on_fired(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct timer *f = c->what;
    struct broker *b = c->broker;
    uint64_t now = clock_mono_us(), next = UINT64_MAX;
    unsigned n_lanes = 0;
    span last_queue = SPAN_NONE;

    f->flying = false;
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++)
        if (!pg_reply_is_null(reply, row, FIRE_SCHEDULED_COL_LANE) &&
            (!lane_is_in_row(reply, row, lane_cols) ||
             pg_reply_is_null(reply, row, FIRE_SCHEDULED_COL_QUEUE_NAME)))
            status = call_unexpected(c, "a partition without a number, id or name");
    f->worked = f->worked || status == 0;
    if (status != 0) {
        // Until the schema is there, which is brought up to date while we start, it must fail.
        log_at(is_outage(status) || !f->worked ? LOG_DEBUG : LOG_WARN, "timer.failed",
               "status=%s detail=\"%s\"", err_name(status), pg_reply_message(reply));
        next = now + RETRY_US;
    }
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++) {
        if (!pg_reply_is_null(reply, row, FIRE_SCHEDULED_COL_LANE)) {
            span queue = pg_reply_bytes(reply, row, FIRE_SCHEDULED_COL_QUEUE_NAME);
            n_lanes++;
            bool retry = !pg_reply_is_null(reply, row, FIRE_SCHEDULED_COL_ONLY_GROUP);
            struct stored_lane told = {
                .queue = queue,
                .partition = pg_reply_bytes(reply, row,
                                            retry ? FIRE_SCHEDULED_COL_PARTITION_NAME
                                                  : FIRE_SCHEDULED_COL_LANE_NAME),
                .only = retry ? pg_reply_bytes(reply, row, FIRE_SCHEDULED_COL_ONLY_GROUP)
                              : SPAN_NONE,
                .num = pg_reply_i64(reply, row, FIRE_SCHEDULED_COL_LANE),
                .id = pg_reply_uuid(reply, row, FIRE_SCHEDULED_COL_LANE_ID),
            };
            notify_stored(b, &told, !span_eq(queue, last_queue));
            last_queue = queue;
            continue;
        }
        if (!pg_reply_is_null(reply, row, FIRE_SCHEDULED_COL_LATE))
            note_late(b, pg_reply_bytes(reply, row, FIRE_SCHEDULED_COL_LATE));
        next = next_look(f, reply, row, n_lanes);
    }
    uint64_t heard = atomic_load(&f->at_us); // while the call was out
    if (heard < next)
        next = heard;
    uint64_t probe = now + b->conf.timer_probe_ms * 1000ull;
    wake_at(f, next < probe ? next : probe, next < probe);
    call_free(c);
    broker_wake(b);
}

// ---- slices ----

static void on_slices(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;

    if (status != 0)
        log_warn("timer.slices_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    else if (pg_reply_rows(reply) == 1 &&
             (pg_reply_i32(reply, 0, MAINTAIN_SLICES_COL_MADE) > 0 ||
              pg_reply_i32(reply, 0, MAINTAIN_SLICES_COL_DROPPED) > 0))
        log_info("timer.slices_changed", "made=%d dropped=%d",
                 pg_reply_i32(reply, 0, MAINTAIN_SLICES_COL_MADE),
                 pg_reply_i32(reply, 0, MAINTAIN_SLICES_COL_DROPPED));
    call_free(c);
}

static void on_slices_due(struct due *d)
{
    struct timer *f = container_of(d, struct timer, slices_due);
    struct broker *b = timer_broker(f);

    if (b->closing)
        return;
    if (broker_is_up(b))
        call_send(call_new(b, &pg_stmt_maintain_slices, NULL), on_slices);
    due_set(&b->due, &f->slices_due, clock_mono_us() + SLICES_US, on_slices_due);
}
