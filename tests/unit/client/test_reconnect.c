// Tests of self-healing on a virtual clock: no test here takes time.
#include "reconnect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000 };

static struct reconnect h;
static uint64_t now;
static char steps[256]; // d: torn down, s: subscribed
static bool works;      // result of a subscribe, reported at once
static bool answers;    // or not at all

static void tear_down(void *ctx)
{
    (void)ctx;
    strcat(steps, "d");
}

static void subscribe(void *ctx)
{
    (void)ctx;
    strcat(steps, "s");
    if (answers)
        reconnect_done(&h, works, now);
}

static int reset(void **state)
{
    (void)state;
    now = 1000 * SECOND;
    steps[0] = '\0';
    works = answers = true;
    reconnect_init(&h, &reconnect_defaults, (struct reconnect_ops){tear_down, subscribe, NULL},
                   now);
    return 0;
}

// Second by second, so that everything that is due happens when it is.
static void pass(unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        now += SECOND;
        reconnect_tick(&h, now);
    }
}

static unsigned rebuilds(void) { return (unsigned)strlen(steps) / 2; }

static void an_error_is_followed_by_a_rebuild_after_5_seconds(void **state)
{
    (void)state;
    reconnect_error(&h, now);
    pass(4);
    assert_string_equal(steps, "");
    pass(1);
    assert_string_equal(steps, "ds");
    assert_int_equal(h.state, RECONNECT_HEALTHY);
    pass(1000);
    assert_string_equal(steps, "ds");
}

// The first invariant: build anew, then subscribe; never the other way, never one alone.
static void every_rebuild_is_torn_down_before_it_is_subscribed(void **state)
{
    (void)state;
    works = false;
    reconnect_error(&h, now);
    pass(600);
    assert_true(rebuilds() > 5);
    for (size_t i = 0; steps[i]; i += 2)
        assert_memory_equal(steps + i, "ds", 2);
}

static void there_are_three_rebuilds_after_5_10_and_15_seconds(void **state)
{
    (void)state;
    works = false;
    reconnect_error(&h, now);
    pass(5);
    assert_int_equal(rebuilds(), 1);
    pass(9);
    assert_int_equal(rebuilds(), 1);
    pass(1);
    assert_int_equal(rebuilds(), 2);
    pass(14);
    assert_int_equal(rebuilds(), 2);
    pass(1);
    assert_int_equal(rebuilds(), 3);
    assert_int_equal(h.state, RECONNECT_WATCHDOG);
}

static void then_the_watchdog_tries_every_60_seconds_until_it_works(void **state)
{
    (void)state;
    works = false;
    reconnect_error(&h, now);
    pass(30);
    for (unsigned i = 4; i < 10; i++) {
        pass(59);
        assert_int_equal(rebuilds(), i - 1);
        pass(1);
        assert_int_equal(rebuilds(), i);
        assert_int_equal(h.state, RECONNECT_WATCHDOG);
    }
    works = true;
    pass(60);
    assert_int_equal(h.state, RECONNECT_HEALTHY);
    unsigned before = rebuilds();
    pass(600);
    assert_int_equal(rebuilds(), before);
    works = false; // and the next error begins at the beginning
    reconnect_error(&h, now);
    pass(5);
    assert_int_equal(rebuilds(), before + 1);
}

// The second invariant: errors that come while one is dealt with start nothing of their own.
static void there_are_never_two_watchdogs(void **state)
{
    (void)state;
    works = false;
    reconnect_error(&h, now);
    pass(30);
    assert_int_equal(h.state, RECONNECT_WATCHDOG);
    unsigned before = rebuilds();
    for (unsigned i = 0; i < 600; i++) {
        reconnect_error(&h, now);
        reconnect_error(&h, now);
        pass(1);
    }
    assert_int_equal(rebuilds(), before + 10);
}

static void while_a_rebuild_is_under_way_no_other_begins(void **state)
{
    (void)state;
    answers = false;
    reconnect_error(&h, now);
    pass(5);
    assert_int_equal(h.state, RECONNECT_REBUILDING);
    reconnect_error(&h, now);
    reconnect_look(&h, true, now);
    pass(600);
    assert_string_equal(steps, "ds");
    reconnect_done(&h, true, now);
    assert_int_equal(h.state, RECONNECT_HEALTHY);
    reconnect_done(&h, false, now); // called twice: the second has no effect
    assert_int_equal(h.state, RECONNECT_HEALTHY);
}

static void silence_while_the_queue_has_events_is_stale(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 299; i++) {
        pass(1);
        reconnect_look(&h, true, now);
    }
    assert_string_equal(steps, "");
    pass(1);
    reconnect_look(&h, true, now);
    pass(1);
    assert_string_equal(steps, "ds");
}

static void silence_of_an_empty_queue_is_not(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3600; i++) {
        pass(1);
        reconnect_look(&h, false, now);
    }
    reconnect_look(&h, true, now); // the first event has not had its chance yet
    pass(10);
    assert_string_equal(steps, "");
}

static void events_keep_it_fresh(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3600; i++) {
        pass(1);
        if (i % 290 == 0)
            reconnect_event(&h, now);
        reconnect_look(&h, true, now);
    }
    assert_string_equal(steps, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_error_is_followed_by_a_rebuild_after_5_seconds, reset),
        cmocka_unit_test_setup(every_rebuild_is_torn_down_before_it_is_subscribed, reset),
        cmocka_unit_test_setup(there_are_three_rebuilds_after_5_10_and_15_seconds, reset),
        cmocka_unit_test_setup(then_the_watchdog_tries_every_60_seconds_until_it_works, reset),
        cmocka_unit_test_setup(there_are_never_two_watchdogs, reset),
        cmocka_unit_test_setup(while_a_rebuild_is_under_way_no_other_begins, reset),
        cmocka_unit_test_setup(silence_while_the_queue_has_events_is_stale, reset),
        cmocka_unit_test_setup(silence_of_an_empty_queue_is_not, reset),
        cmocka_unit_test_setup(events_keep_it_fresh, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
