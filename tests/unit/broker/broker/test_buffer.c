// buffer.c and replay.c: what goes through the file buffer comes out as it was meant.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "rig.h"
#include "spool/spool.h"

enum { HOUR_S = 3600, WALL_S = 1700000000 };

static char dir[32];

static int setup(void **state)
{
    struct fault f;
    struct spool_conf conf = {.dir = dir,
                              .events_per_file = 100,
                              .idle_ms = 50,
                              .max_bytes = 1 << 20,
                              .by_hand = true};

    strcpy(dir, "/tmp/queen-divert-XXXXXX");
    if (rig_setup(state) != 0 || !mkdtemp(dir))
        return -1;
    return spool_open(&rig_spool, &conf, &f);
}

static int teardown(void **state)
{
    char command[64];
    int rc = rig_teardown(state);

    spool_close(rig_spool);
    rig_spool = NULL;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return rc | system(command);
}

static void answer_flags(void)
{
    fake_row("queen.maintenance_flags():i", 0);
    fake_answer(fake_call("maintenance"), 0);
    turn();
}

static void settle_disk(void)
{
    for (unsigned i = 0; i < 3; i++) {
        spool_turn(rig_spool);
        turn();
    }
}

// Our clock is set back by an hour after the start; the delay is still ten seconds.
static void a_delay_that_is_buffered_does_not_follow_a_jump_of_our_clock(void **state)
{
    (void)state;
    static struct push p;
    p = (struct push){0};
    rig_open();
    turn();
    answer_flags();
    fake_set_up(false);
    clock_freeze(clock_mono_us(), (WALL_S - HOUR_S) * 1000000ull);
    push_item(&p, "q", "p1", "later");
    p.items[0].when = PUSH_AFTER;
    p.items[0].when_us = 10 * 1000 * 1000;
    push_start(&p);
    turn();
    settle_disk();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.items[0].status, PUSH_BUFFERED);

    fake_set_up(true);
    wait_ms(1);
    settle_disk();
    if (fake_find("maintenance"))
        answer_flags();
    settle_disk();
    answer_lanes();
    struct pg_call *call = fake_call("schedule");
    assert_int_equal(fake_int(call->params, PG_INT8, 1, 0) / 1000000, WALL_S + 10);
    fake_row("status:i id:u due_at:T", 0, uuid(7), (int64_t)(WALL_S + 10) * 1000000);
    fake_answer(call, 0);
    settle_disk();
}

// A request that cannot be buffered waits for its partition, and costs nothing meanwhile.
static void a_request_at_a_locked_lane_does_not_keep_the_loop_busy_in_an_outage(void **state)
{
    (void)state;
    static struct push p;
    p = (struct push){0};
    rig_open();
    turn();
    answer_flags();
    push_item(&p, "q", "p1", "later");
    p.items[0].when = PUSH_AFTER;
    p.items[0].when_us = 10 * 1000 * 1000;
    push_start(&p);
    turn();
    answer_lanes();
    fake_answer_locked(fake_call("schedule"));
    turn();
    fake_set_up(false);
    turn();
    assert_int_equal(broker->n_parked_ops, 1);
    assert_false(broker->again); // after its turn
    assert_int_equal(p.times, 0);
    fake_set_up(true);
    turn();
    while (!fake_find("schedule") && fake_nth(0)) {
        if (fake_nth(0) == fake_find("maintenance"))
            fake_row("queen.maintenance_flags():i", 0);
        fake_answer(fake_nth(0), 0); // no lane is locked any more
        wait_ms(1);
    }
    fake_row("status:i id:u due_at:T", 0, uuid(7), (int64_t)(WALL_S + 10) * 1000000);
    fake_answer(fake_find("schedule"), 0);
    turn();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.items[0].status, PUSH_SCHEDULED);
}

static void push_to_lanes(struct push *p, const char *first, const char *second)
{
    *p = (struct push){0};
    push_item(p, "q", first, NULL);
    if (second)
        push_item(p, "q", second, NULL);
    push_start(p);
    turn();
}

// A record of lane 3 waits in the buffer, because the lane is locked.
static void buffer_for_locked_lane(struct push *p)
{
    rig_open();
    turn();
    answer_flags();
    fake_set_up(false);
    push_to_lanes(p, "p3", NULL);
    settle_disk();
    assert_int_equal(p->items[0].status, PUSH_BUFFERED);
    fake_set_up(true);
    wait_ms(1);
    settle_disk();
    if (fake_find("maintenance"))
        answer_flags();
    settle_disk();
    answer_lanes();
    fake_answer_locked(fake_call("push"));
    turn();
}

static void assert_buffered(const struct push *p)
{
    assert_int_equal(p->times, 1);
    assert_int_equal(p->items[0].status, PUSH_BUFFERED);
}

// No lane is locked any more: what the buffer holds comes out.
static struct pg_call *replay_all(void)
{
    for (unsigned i = 0; i < 100 && !fake_find("push"); i++) {
        if (fake_find("locked_lanes"))
            fake_answer(fake_find("locked_lanes"), 0);
        settle_disk();
        wait_ms(10);
    }
    return fake_call("push");
}

// The keys that the call carries for a lane are these two.
static void assert_order(const struct pg_call *call, int64_t lane, const uint8_t first[16],
                         const uint8_t second[16])
{
    for (unsigned i = 0; i < fake_len(call->params, PG_INT8, 0); i++) {
        if (fake_int(call->params, PG_INT8, 0, i) != lane)
            continue;
        span keys = fake_bytes(call->params, PG_BYTEA, 0, i);
        assert_int_equal(keys.len, 32);
        assert_memory_equal(keys.ptr, first, 16);
        assert_memory_equal(keys.ptr + 16, second, 16);
        return;
    }
    fail_msg("nothing for lane %lld", (long long)lane);
}

// Lanes 1 and 2 are locked, and a, which needs both, waits at lane 1.  b must go to the buffer
// because of lane 3.
static void a_request_at_another_locked_lane_is_not_overtaken_on_the_way_to_disk(void **state)
{
    (void)state;
    static struct push kept, a, b;
    buffer_for_locked_lane(&kept);
    push_to_lanes(&a, "p1", "p2");
    wait_ms(1);
    for (int64_t lane = 1; lane <= 3; lane++)
        fake_row("lane:l", lane);
    fake_answer(fake_call("locked_lanes"), 0);
    turn();
    answer_lanes();
    fake_answer_locked(fake_call("push"));
    turn();
    push_to_lanes(&b, "p2", "p3");
    for (unsigned ms = 0; ms < 600; ms += 10) {
        wait_ms(10);
        spool_turn(rig_spool);
    }
    settle_disk();
    assert_buffered(&b);
    assert_buffered(&a);
    struct pg_call *call = replay_all();
    assert_order(call, 2, a.items[1].key, b.items[0].key);
    assert_order(call, 3, kept.items[0].key, b.items[1].key);
    answer_stored();
    settle_disk();
}

// Lane 1 is locked, and a waits for it.  b leaves without its part for lane 1, and is lost with
// the database.
static void a_request_that_fails_in_flight_is_buffered_behind_those_it_waits_for(void **state)
{
    (void)state;
    static struct push known, a, b;
    rig_open();
    turn();
    answer_flags();
    push_to_lanes(&known, "p1", "p2");
    answer_lanes();
    answer_stored();
    push_to_lanes(&a, "p1", NULL);
    fake_answer_locked(fake_call("push"));
    turn();
    push_to_lanes(&b, "p1", "p2");
    fake_answer(fake_find("push"), QE_PG_AWAY);
    fake_set_up(false);
    turn();
    settle_disk();
    assert_buffered(&b);
    assert_buffered(&a);
    fake_set_up(true);
    wait_ms(1);
    if (fake_find("maintenance"))
        answer_flags();
    struct pg_call *call = replay_all();
    assert_order(call, 1, a.items[0].key, b.items[0].key);
    answer_stored();
    settle_disk();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_delay_that_is_buffered_does_not_follow_a_jump_of_our_clock, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_request_at_a_locked_lane_does_not_keep_the_loop_busy_in_an_outage, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_request_at_another_locked_lane_is_not_overtaken_on_the_way_to_disk, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_request_that_fails_in_flight_is_buffered_behind_those_it_waits_for, setup,
            teardown),
    };

    log_setup(LOG_OFF, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
