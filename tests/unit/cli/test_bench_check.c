// The ledger must find every loss, repetition and disorder, and must not cry wolf.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/load/check.h"

static struct ledger *ledger;

static int setup(void **state)
{
    (void)state;
    ledger = ledger_new((struct ledger_shape){.producers = 2, .partitions = 3, .groups = 2});
    return ledger ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    ledger_free(ledger);
    return 0;
}

static void send(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ledger_send(ledger, 1, 2);
}

// One answer of a pop sent and answered at these times, with these numbers.
static void receive(uint32_t group, uint32_t sent_ms, uint32_t now_ms, unsigned n,
                    const uint32_t *numbers)
{
    struct ledger_answer a = {ledger_answer_id(ledger), group, sent_ms, now_ms};

    for (unsigned i = 0; i < n; i++)
        assert_true(ledger_receive(ledger, &a, 1, 2, numbers[i]));
}
#define RECEIVE(group, sent, now, ...)                                                    \
    receive((group), (sent), (now), sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), \
            (uint32_t[]){__VA_ARGS__})

static void assert_sum(uint64_t repeated, uint64_t disordered, uint64_t skipped,
                       uint64_t remaining)
{
    struct ledger_sum s = ledger_sum(ledger);

    assert_int_equal(s.repeated, repeated);
    assert_int_equal(s.disordered, disordered);
    assert_int_equal(s.skipped, skipped);
    assert_int_equal(s.remaining, remaining);
}

static void messages_once_and_in_order_are_correct(void **state)
{
    (void)state;
    send(5);
    RECEIVE(0, 1, 2, 0, 1, 2);
    RECEIVE(1, 1, 2, 0);
    RECEIVE(0, 3, 4, 3, 4);
    RECEIVE(1, 3, 4, 1, 2, 3, 4);
    assert_sum(0, 0, 0, 0);
    assert_int_equal(ledger_delivered(ledger), 10);
}

static void numbers_count_per_producer_and_partition(void **state)
{
    (void)state;
    assert_int_equal(ledger_send(ledger, 0, 0), 0);
    assert_int_equal(ledger_send(ledger, 0, 0), 1);
    assert_int_equal(ledger_send(ledger, 0, 1), 0);
    assert_int_equal(ledger_send(ledger, 1, 0), 0);
}

static void each_group_is_judged_by_itself(void **state)
{
    (void)state;
    send(3);
    RECEIVE(0, 1, 2, 0, 1, 2);
    assert_sum(0, 0, 0, 3);
}

static void a_gap_is_a_loss(void **state)
{
    (void)state;
    send(5);
    RECEIVE(0, 1, 2, 0, 1, 4);
    RECEIVE(1, 1, 2, 0, 1, 2, 3, 4);
    assert_sum(0, 0, 2, 0);
}

static void a_second_delivery_is_a_repetition_whenever_it_comes(void **state)
{
    (void)state;
    send(3);
    RECEIVE(0, 1, 2, 0, 0, 1);
    RECEIVE(0, 3, 4, 2, 1);
    RECEIVE(1, 1, 2, 0, 1, 2);
    assert_sum(2, 0, 0, 0);
}

static void a_late_one_is_repeated_when_it_comes_twice(void **state)
{
    (void)state;
    send(2);
    RECEIVE(0, 1, 9, 1);
    RECEIVE(0, 1, 9, 0);
    RECEIVE(0, 1, 9, 0);
    RECEIVE(1, 1, 2, 0, 1);
    assert_sum(1, 0, 0, 0);
}

static void disorder_in_one_answer_is_disorder(void **state)
{
    (void)state;
    send(3);
    RECEIVE(0, 1, 2, 1, 0, 2);
    RECEIVE(1, 1, 2, 0, 1, 2);
    assert_sum(0, 1, 0, 0);
}

static void an_older_one_brought_by_a_later_pop_is_disorder(void **state)
{
    (void)state;
    send(2);
    RECEIVE(0, 1, 5, 1);
    RECEIVE(0, 6, 7, 0);
    RECEIVE(1, 1, 2, 0, 1);
    assert_sum(0, 1, 0, 0);
}

static void answers_of_pops_under_way_together_may_overtake(void **state)
{
    (void)state;
    send(4);
    RECEIVE(0, 1, 5, 2, 3);
    RECEIVE(0, 2, 6, 0, 1); // sent at 2, before 3 arrived at 5
    RECEIVE(1, 1, 2, 0, 1, 2, 3);
    assert_sum(0, 0, 0, 0);
}

static void a_doubtful_one_may_come_or_not(void **state)
{
    (void)state;
    send(5);
    ledger_doubt(ledger, 1, 2, 1); // in a gap
    ledger_doubt(ledger, 1, 2, 2); // comes
    ledger_doubt(ledger, 1, 2, 4); // at the end
    RECEIVE(0, 1, 2, 0, 2, 3);
    RECEIVE(1, 1, 2, 0, 1, 2, 3, 4);
    assert_sum(0, 0, 0, 0);
    assert_int_equal(ledger_doubtful(ledger), 3);
}

static void a_sure_one_beside_a_doubtful_one_is_still_missed(void **state)
{
    (void)state;
    send(4);
    ledger_doubt(ledger, 1, 2, 3);
    RECEIVE(0, 1, 2, 1);
    RECEIVE(1, 1, 2, 0, 1, 2);
    assert_sum(0, 0, 1, 1);
}

static void a_message_that_was_never_sent_is_foreign(void **state)
{
    (void)state;
    struct ledger_answer a = {ledger_answer_id(ledger), 0, 1, 2};

    send(1);
    assert_false(ledger_receive(ledger, &a, 1, 2, 1));
    assert_false(ledger_receive(ledger, &a, 2, 2, 0));
    assert_false(ledger_receive(ledger, &a, 1, 3, 0));
    a.group = 2;
    assert_false(ledger_receive(ledger, &a, 1, 2, 0));
}

static void a_shape_beyond_all_memory_is_refused(void **state)
{
    (void)state;
    assert_null(ledger_new((struct ledger_shape){60000, 1000000, 10}));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(messages_once_and_in_order_are_correct),
        T(numbers_count_per_producer_and_partition),
        T(each_group_is_judged_by_itself),
        T(a_gap_is_a_loss),
        T(a_second_delivery_is_a_repetition_whenever_it_comes),
        T(a_late_one_is_repeated_when_it_comes_twice),
        T(disorder_in_one_answer_is_disorder),
        T(an_older_one_brought_by_a_later_pop_is_disorder),
        T(answers_of_pops_under_way_together_may_overtake),
        T(a_doubtful_one_may_come_or_not),
        T(a_sure_one_beside_a_doubtful_one_is_still_missed),
        T(a_message_that_was_never_sent_is_foreign),
        T(a_shape_beyond_all_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
