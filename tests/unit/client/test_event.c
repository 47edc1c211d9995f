// Tests of what becomes of an event: retries, dead letters, and the window of duplicates.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "dedup.h"
#include "event_plan.h"

static const unsigned pauses_ms[] = {1000, 5000, 15000};
static const struct queen_event_retry here = {.pauses_ms = pauses_ms, .n_pauses = 3};
static const struct queen_event_retry by_queue = {.by_queue = true};

static void a_retryable_event_is_tried_after_1_5_and_15_seconds_and_then_dead(void **state)
{
    (void)state;
    for (unsigned tried = 1; tried <= 3; tried++) {
        struct event_plan plan = event_plan(QUEEN_RETRYABLE, tried, &here);
        assert_true(plan.again);
        assert_int_equal(plan.pause_ms, pauses_ms[tried - 1]);
    }
    struct event_plan last = event_plan(QUEEN_RETRYABLE, 4, &here);
    assert_false(last.again);
    assert_int_equal(last.status, QUEEN_ACK_DLQ);
}

static void the_policy_of_the_queue_decides_if_requested(void **state)
{
    (void)state;
    struct event_plan plan = event_plan(QUEEN_RETRYABLE, 1, &by_queue);
    assert_false(plan.again);
    assert_int_equal(plan.status, QUEEN_ACK_FAILED);
}

// For every result of a handler: after a limited number of tries the event is
// acknowledged in one of the ways that end it, and never simply given back.
static void every_event_is_settled_in_the_end(void **state)
{
    (void)state;
    const struct queen_event_retry *policies[] = {&here, &by_queue,
                                                  &(struct queen_event_retry){0}};

    for (unsigned k = 0; k < 3; k++) {
        for (unsigned outcome = QUEEN_HANDLED; outcome <= QUEEN_HOPELESS; outcome++) {
            unsigned tried = 1;
            struct event_plan plan;
            while ((plan = event_plan(outcome, tried, policies[k])).again)
                assert_true(++tried <= 4);
            assert_true(plan.status == QUEEN_ACK_COMPLETED || plan.status == QUEEN_ACK_DLQ ||
                        plan.status == QUEEN_ACK_FAILED);
            assert_int_equal(plan.status == QUEEN_ACK_COMPLETED, outcome == QUEEN_HANDLED);
        }
    }
}

static span id(char *room, unsigned i)
{
    return (span){room, (size_t)sprintf(room, "id-%u", i)};
}

static void handled_events_are_remembered_within_the_window(void **state)
{
    (void)state;
    struct dedup *d = dedup_new(100, 1000);
    char room[32];

    for (unsigned i = 0; i < 100; i++) {
        assert_false(dedup_has(d, id(room, i), 0));
        dedup_add(d, id(room, i), 0);
    }
    for (unsigned i = 0; i < 100; i++)
        assert_true(dedup_has(d, id(room, i), 1000));
    dedup_free(d);
}

static void the_window_is_bounded_by_count_and_by_age(void **state)
{
    (void)state;
    struct dedup *d = dedup_new(10, 1000);
    char room[32];

    for (unsigned i = 0; i < 1000; i++) {
        dedup_add(d, id(room, i), i);
        for (unsigned back = 0; back < 10 && back <= i; back++)
            assert_true(dedup_has(d, id(room, i - back), i));
        if (i >= 10)
            assert_false(dedup_has(d, id(room, i - 10), i));
    }
    assert_true(dedup_has(d, id(room, 999), 1999));
    assert_false(dedup_has(d, id(room, 999), 2000));
    dedup_add(d, id(room, 999), 2000); // and the empty window works on
    assert_true(dedup_has(d, id(room, 999), 2000));
    dedup_free(d);
}

static void hidden_ids_are_not_found_until_they_are_shown(void **state)
{
    (void)state;
    struct dedup *d = dedup_new(10, 1000);
    char room[32];

    for (unsigned i = 0; i < 6; i++)
        dedup_add(d, id(room, i), 0);
    dedup_hide(d);
    for (unsigned i = 6; i < 13; i++)
        dedup_add(d, id(room, i), 0); // 0 to 2 are gone
    dedup_add(d, id(room, 5), 0);     // handled again: 3 is gone
    assert_false(dedup_has(d, id(room, 4), 0));
    assert_true(dedup_has(d, id(room, 5), 0));
    assert_true(dedup_has(d, id(room, 6), 0));
    dedup_show(d);
    assert_false(dedup_has(d, id(room, 3), 0));
    assert_true(dedup_has(d, id(room, 4), 0));
    dedup_clear(d);
    for (unsigned i = 0; i < 13; i++)
        assert_false(dedup_has(d, id(room, i), 0));
    dedup_add(d, id(room, 1), 0);
    assert_true(dedup_has(d, id(room, 1), 0));
    dedup_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_retryable_event_is_tried_after_1_5_and_15_seconds_and_then_dead),
        cmocka_unit_test(the_policy_of_the_queue_decides_if_requested),
        cmocka_unit_test(every_event_is_settled_in_the_end),
        cmocka_unit_test(handled_events_are_remembered_within_the_window),
        cmocka_unit_test(the_window_is_bounded_by_count_and_by_age),
        cmocka_unit_test(hidden_ids_are_not_found_until_they_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
