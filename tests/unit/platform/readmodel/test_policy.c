// policy.c: when a model is due; the clock is a number.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "readmodel/policy.h"

#define S(n) ((int64_t)(n)*1000000)

static const struct policy seed = {
    .pace = {[MODEL_ATTRIBUTES] = {S(45), S(10)}, [MODEL_TRANSACTIONS] = {S(300), S(60)}},
    .bulk_debounce_us = S(300),
    .check_us = S(60),
};

static struct policy_item nothing(enum model m)
{
    return (struct policy_item){
        .model = m,
        .wanted_us = POLICY_NEVER,
        .first_change_us = POLICY_NEVER,
        .last_change_us = POLICY_NEVER,
        .visited_us = POLICY_NEVER,
        .retry_us = POLICY_NEVER,
        .claimed_until_us = POLICY_NEVER,
    };
}

static struct policy_item changed(enum model m, int64_t visited, int64_t first, int64_t last)
{
    struct policy_item i = nothing(m);
    i.visited_us = visited;
    i.first_change_us = first;
    i.last_change_us = last;
    return i;
}

static int64_t due(struct policy_item i) { return policy_due_us(&seed, &i, false); }

static void without_changes_nothing_is_due(void **state)
{
    (void)state;
    struct policy_item i = nothing(MODEL_ATTRIBUTES);
    i.visited_us = S(1);
    assert_true(due(i) == POLICY_NEVER);
    i.live = true;
    assert_true(due(i) == POLICY_NEVER);
}

static void a_refresh_waits_for_the_interval_and_for_quiet(void **state)
{
    (void)state;
    // quiet came first: the interval decides
    assert_int_equal(due(changed(MODEL_ATTRIBUTES, S(100), S(105), S(105))), S(145));
    assert_int_equal(due(changed(MODEL_TRANSACTIONS, S(100), S(105), S(105))), S(400));
    // the interval is over: the last change plus the debounce decides
    assert_int_equal(due(changed(MODEL_ATTRIBUTES, S(100), S(500), S(500))), S(510));
    assert_int_equal(due(changed(MODEL_TRANSACTIONS, S(100), S(500), S(520))), S(580));
    // never visited: only quiet
    assert_int_equal(due(changed(MODEL_ATTRIBUTES, POLICY_NEVER, S(500), S(503))), S(513));
}

static void writes_that_never_settle_do_not_keep_it_stale(void **state)
{
    (void)state;
    // changes all the time until now (which is long after): not later than first + 45 + 10
    assert_int_equal(due(changed(MODEL_ATTRIBUTES, S(100), S(101), S(900))), S(156));
    assert_int_equal(due(changed(MODEL_TRANSACTIONS, S(100), S(101), S(900))), S(461));
    assert_int_equal(due(changed(MODEL_ATTRIBUTES, POLICY_NEVER, S(101), S(900))), S(156));
    // a change that began before the visit counts from the visit
    assert_int_equal(due(changed(MODEL_ATTRIBUTES, S(100), S(90), S(900))), S(155));
}

static void the_bulk_window_stretches_the_debounce(void **state)
{
    (void)state;
    struct policy_item i = changed(MODEL_ATTRIBUTES, S(100), S(500), S(500));
    assert_int_equal(policy_due_us(&seed, &i, true), S(800));
    i = changed(MODEL_TRANSACTIONS, S(100), S(500), S(500));
    assert_int_equal(policy_due_us(&seed, &i, true), S(800));
    i = changed(MODEL_ATTRIBUTES, S(100), S(101), S(5000)); // but not for ever
    assert_int_equal(policy_due_us(&seed, &i, true), S(101 + 45 + 300));
}

static void a_live_model_is_checked_at_its_own_pace(void **state)
{
    (void)state;
    struct policy_item i = changed(MODEL_TRANSACTIONS, S(100), S(105), S(130));
    i.live = true;
    assert_int_equal(due(i), S(160));
    i.first_change_us = S(300);
    assert_int_equal(due(i), S(300));
}

static void a_wish_is_due_at_once_but_not_before_a_retry_or_under_a_claim(void **state)
{
    (void)state;
    struct policy_item i = changed(MODEL_ATTRIBUTES, S(100), S(105), S(105));
    i.wanted_us = S(110);
    assert_int_equal(due(i), S(110));
    i.retry_us = S(120);
    assert_int_equal(due(i), S(120));
    i.claimed_until_us = S(140);
    assert_int_equal(due(i), S(140));
}

static void failures_wait_longer_each_time(void **state)
{
    (void)state;
    assert_int_equal(policy_retry_us(1), S(5));
    assert_int_equal(policy_retry_us(2), S(10));
    assert_int_equal(policy_retry_us(6), S(160));
    assert_int_equal(policy_retry_us(7), S(300));
    assert_int_equal(policy_retry_us(1000000), S(300));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_changes_nothing_is_due),
        cmocka_unit_test(a_refresh_waits_for_the_interval_and_for_quiet),
        cmocka_unit_test(writes_that_never_settle_do_not_keep_it_stale),
        cmocka_unit_test(the_bulk_window_stretches_the_debounce),
        cmocka_unit_test(a_live_model_is_checked_at_its_own_pace),
        cmocka_unit_test(a_wish_is_due_at_once_but_not_before_a_retry_or_under_a_claim),
        cmocka_unit_test(failures_wait_longer_each_time),
    };
    return cmocka_run_group_tests_name("readmodel/policy", tests, NULL, NULL);
}
