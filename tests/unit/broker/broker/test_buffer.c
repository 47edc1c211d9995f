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

// What cannot go to the buffer waits on for its partition, and costs nothing meanwhile.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_delay_that_is_buffered_does_not_follow_a_jump_of_our_clock, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_request_at_a_locked_lane_does_not_keep_the_loop_busy_in_an_outage, setup,
            teardown),
    };

    log_setup(LOG_OFF, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
