// The broker under test and what surrounds it.
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "segment/keys.h"

struct broker *broker;
struct broker_conf rig_conf;
struct spool *rig_spool;

static uv_loop_t loop;
static struct house *house;
static unsigned n_given, n_done; // operations

int rig_setup(void **state)
{
    (void)state;
    static const struct batch_conf batch = {.max_requests = 100,
                                            .max_items = 1000,
                                            .preferred = 1,
                                            .hold_ms = 20,
                                            .max_flights = 4};
    rig_conf = (struct broker_conf){
        .push = batch,
        .pop = batch,
        .ack = batch,
        .renew = batch,
        .tx = batch,
        .custom = batch,
        .limit = {.fixed = true, .min = 1, .max = 4},
        .max_pending = 100,
        .poll_initial_ms = 100,
        .poll_threshold = 5,
        .poll_max_ms = 1000,
        .poll_multiplier = 2,
        .evict = {3600 * 1000, 100},
        .retain = {3600 * 1000, 100},
        .idle_partition_days = 30,
        .history_days = 90,
    };
    clock_freeze(50ull * 1000 * 1000, 1700000000ull * 1000 * 1000);
    fake_reset();
    n_given = n_done = 0;
    broker = NULL;
    return uv_loop_init(&loop);
}

void rig_open(void)
{
    house = house_new(1);
    if (rig_spool)
        house_use_spool(house, rig_spool,
                        &(struct replay_conf){.max_batch = 3, .refresh_ms = 1000});
    broker = broker_open(house, 0, &loop, &rig_conf);
    fake_set_up(true);
}

static void on_closed(void *ctx) { *(bool *)ctx = true; }

int rig_teardown(void **state)
{
    (void)state;
    bool closed = false;

    if (broker) {
        broker_drain(broker);
        for (unsigned i = 0; i < 20; i++) {
            turn();
            fake_fail_all(QE_PG_AWAY);
        }
        turn();
        assert_int_equal(n_done, n_given); // each exactly once; see on_*_done
        assert_int_equal(broker->n_pending, 0);
        assert_int_equal(broker->n_parked, 0);
        broker_close(broker, on_closed, &closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_true(closed);
        house_free(house);
    }
    clock_release();
    return uv_loop_close(&loop); // UV_EBUSY if a handle leaked
}

void turn(void)
{
    // The second finds what the callbacks of the first have left.
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_run(&loop, UV_RUN_NOWAIT);
}

void wait_ms(unsigned ms)
{
    clock_advance_us(ms * 1000ull);
    turn();
}

const uint8_t *uuid(unsigned n)
{
    static uint8_t ids[256][16];

    assert_true(n < 256);
    memset(ids[n], (int)n, 16);
    return ids[n];
}

// ---- pushes ----

static void on_push_done(struct push_op *op, int status)
{
    struct push *p = container_of(op, struct push, op);

    p->times++;
    p->status = status;
    n_done++;
    assert_int_equal(p->times, 1);
}

void push_item(struct push *p, const char *queue, const char *partition, const char *txid)
{
    struct push_item *it = &p->items[p->op.n_items++];

    assert_true(p->op.n_items <= countof(p->items));
    *it = (struct push_item){.queue = span_of(queue),
                             .partition = span_of(partition),
                             .txid = span_of(txid),
                             .payload = SPAN("{}")};
    if (txid) {
        it->txid_is_key = key_of_text(it->txid, it->key);
    } else {
        id_uuid7(it->key);
        it->txid_is_key = true;
    }
}

void push_start(struct push *p)
{
    p->op.items = p->items;
    p->op.done = on_push_done;
    n_given++;
    broker_push(broker, &p->op);
    assert_int_equal(p->times, 0); // never from inside
}

void answer_lanes(void)
{
    turn();
    struct pg_call *c = fake_call("ensure_lanes");
    for (unsigned i = 0; i < fake_len(c->params, PG_TEXT, 1); i++) {
        span name = fake_bytes(c->params, PG_TEXT, 1, i); // "p7": lane 7; nothing ends it
        int64_t num = 0;
        assert_true(str_parse_i64((span){name.ptr + 1, name.len - 1}, &num));
        fake_row("idx:i lane:l lane_id:u", (int)i, num, uuid((unsigned)num));
    }
    fake_answer(c, 0);
    turn();
}

void row_stored(int64_t lane)
{
    fake_row("lane:l first_seq:l created_at:T status:i", lane, (int64_t)1, (int64_t)CREATED_US,
             0);
}

void answer_stored(void)
{
    struct pg_call *c = fake_call("push");

    for (unsigned i = 0; i < fake_len(c->params, PG_INT8, 0); i++)
        row_stored(fake_int(c->params, PG_INT8, 0, i));
    fake_answer(c, 0);
    turn();
}

// ---- pops ----

static void on_render(struct pop_op *op, const struct pop_result *result)
{
    struct pop *p = container_of(op, struct pop, op);

    p->rendered += result->n_messages;
    p->n_claims += result->n_claims;
    p->has_lease = result->lease != NULL;
    for (unsigned i = 0; i < result->n_claims; i++) {
        size_t used = strlen(p->partitions);
        snprintf(p->partitions + used, sizeof p->partitions - used, "%s" SPAN_FMT,
                 used > 0 ? " " : "", SPAN_ARG(result->claims[i].partition));
    }
}

static void on_pop_done(struct pop_op *op, int status)
{
    struct pop *p = container_of(op, struct pop, op);

    p->times++;
    p->status = status;
    n_done++;
    assert_int_equal(p->times, 1);
}

void pop_fill(struct pop *p, const char *queue, unsigned timeout_ms)
{
    *p = (struct pop){.op = {.queue = span_of(queue),
                             .group = SPAN("g"),
                             .batch = 10,
                             .partitions = 1,
                             .wait = timeout_ms > 0,
                             .timeout_ms = timeout_ms}};
}

void pop_give(struct pop *p)
{
    p->op.render = on_render;
    p->op.done = on_pop_done;
    n_given++;
    broker_pop(broker, &p->op);
    assert_int_equal(p->times, 0); // never from inside
    turn();
}

void pop_start(struct pop *p, const char *queue, unsigned timeout_ms)
{
    pop_fill(p, queue, timeout_ms);
    pop_give(p);
}

void answer_changes(void)
{
    fake_row("snapshot:t", "1:1:");
    fake_answer(fake_call("changes"), 0);
    turn();
}

void answer_look(void)
{
    if (fake_find("changes"))
        answer_changes();
}

static const char *lane_name(int lane)
{
    static char names[100][16];

    assert_true(lane < 100);
    snprintf(names[lane], sizeof names[lane], "p%d", lane);
    return names[lane];
}

void answer_discover(unsigned n)
{
    for (int lane = 1; lane <= (int)n; lane++)
        fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)lane,
                 uuid((unsigned)lane), lane_name(lane), (int64_t)(100 + lane), 1);
    fake_answer(fake_call("discover"), 0);
    turn();
}

void row_claimed(int target, int lane, bool more, int64_t lease_us)
{
    fake_row("target:i status:i wait_us:l lane_id:u retries:i start_seq:l take:i more:b "
             "first_seq:l count:i created_at:T keys:y body:y",
             target, 0, lease_us, uuid((unsigned)lane), 0, (int64_t)1, 1, more, (int64_t)1, 1,
             (int64_t)CREATED_US, SPAN("0123456789abcdef"), SPAN("\x01\0\0\0\0\x02{}"));
}

void row_status(int target, int status, int64_t wait_us)
{
    fake_row("target:i status:i wait_us:l", target, status, wait_us);
}

int64_t target_of(const struct pg_call *claim, unsigned i)
{
    return fake_int(claim->params, PG_INT8, 0, i);
}

const void *lease_of(const struct pg_call *claim, unsigned i)
{
    return fake_bytes(claim->params, PG_UUID, 0, i).ptr;
}

void pop_first(struct pop *p, const char *queue, unsigned timeout_ms, unsigned n_lanes)
{
    pop_start(p, queue, timeout_ms);
    answer_changes();
    answer_discover(n_lanes);
}

void answer_claim(void)
{
    fake_answer(fake_call("claim"), 0);
    turn();
}

void answer_careful_claim(void)
{
    fake_answer(fake_call("claim_careful"), 0);
    turn();
}

void claim_of_lane(int lane, bool more, int64_t lease_us)
{
    assert_int_equal(target_of(fake_call("claim"), 0), 100 + lane);
    row_claimed(1, lane, more, lease_us);
    answer_claim();
}

void push_to(const char *partition, struct push *p)
{
    *p = (struct push){0};
    push_item(p, "q", partition, NULL);
    push_start(p);
    turn();
    if (fake_find("ensure_lanes"))
        answer_lanes();
    answer_stored();
}

void answer_number(int consumer)
{
    struct pg_call *c = fake_call("ensure_consumers");

    fake_row("idx:i lane:l consumer:l", 0, fake_int(c->params, PG_INT8, 0, 0),
             (int64_t)consumer);
    fake_answer(c, 0);
    turn();
}
