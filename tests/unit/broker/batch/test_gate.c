// gate.c: when a batch leaves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "batch/gate.h"

enum { NOW = 1000000 };

static const struct batch_conf conf = {
    .max_requests = 100, .max_items = 1000, .preferred = 10, .hold_ms = 20, .max_flights = 6};
static struct gate g;

static struct gate_queue waiting(unsigned requests, unsigned items, unsigned waited_ms)
{
    return (struct gate_queue){requests, items, NOW - waited_ms * 1000ull};
}

static bool is_open(unsigned requests, unsigned items, unsigned waited_ms)
{
    return gate_is_open(&g, waiting(requests, items, waited_ms), NOW);
}

static void open_gate(unsigned limit)
{
    gate_init(&g, conf, (struct limit_conf){.fixed = true, .min = 1, .max = limit}, NOW);
}

static void the_gate_stays_closed_without_requests(void **state)
{
    (void)state;
    open_gate(4);
    assert_false(is_open(0, 0, 1000));
    assert_int_equal(gate_opens_in_ms(&g, waiting(0, 0, 1000), NOW), 0);
}

static void with_nothing_in_flight_one_request_leaves_at_once(void **state)
{
    (void)state;
    open_gate(4);
    assert_true(is_open(1, 1, 0));
}

static void while_one_is_in_flight_few_requests_gather(void **state)
{
    (void)state;
    open_gate(4);
    gate_left(&g);
    assert_false(is_open(1, 1, 0));
    assert_false(is_open(9, 999, 19));
    gate_landed(&g, 1, 1000, NOW);
    assert_true(is_open(1, 1, 0));
}

static void a_worthwhile_batch_does_not_wait_for_more(void **state)
{
    (void)state;
    open_gate(4);
    gate_left(&g);
    assert_true(is_open(10, 10, 0));  // preferred
    assert_true(is_open(1, 1000, 0)); // as many messages as fit
}

static void a_full_batch_leaves_even_if_more_were_preferred(void **state)
{
    (void)state;
    struct batch_conf odd = conf;
    odd.preferred = 1000;
    gate_init(&g, odd, (struct limit_conf){.fixed = true, .max = 4}, NOW);
    gate_left(&g);
    assert_false(is_open(99, 99, 0));
    assert_true(is_open(100, 100, 0));
}

static void no_request_waits_longer_than_max_hold(void **state)
{
    (void)state;
    open_gate(4);
    gate_left(&g);
    assert_false(is_open(1, 1, 19));
    assert_true(is_open(1, 1, 20));
}

static void the_limit_is_kept_however_many_wait(void **state)
{
    (void)state;
    open_gate(4);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(is_open(100, 1000, 1000));
        gate_left(&g);
    }
    assert_false(is_open(100, 1000, 1000));
    gate_landed(&g, 1, 1000, NOW);
    assert_true(is_open(100, 1000, 1000));
}

static void a_second_flight_is_always_tried(void **state)
{
    (void)state;
    open_gate(1);
    gate_left(&g);
    assert_true(is_open(100, 1000, 0));
    gate_left(&g);
    assert_false(is_open(100, 1000, 0));
}

static void but_not_beyond_the_ceiling(void **state)
{
    (void)state;
    struct batch_conf one = conf;
    one.max_flights = 1;
    gate_init(&g, one, (struct limit_conf){.fixed = true, .max = 100}, NOW);
    assert_int_equal(g.limit.now, 1); // clamped
    assert_true(is_open(1, 1, 0));
    gate_left(&g);
    assert_false(is_open(100, 1000, 1000));
}

static void the_time_until_it_opens_is_rounded_up(void **state)
{
    (void)state;
    open_gate(4);
    gate_left(&g);
    assert_int_equal(gate_opens_in_ms(&g, waiting(1, 1, 0), NOW), 20);
    assert_int_equal(gate_opens_in_ms(&g, waiting(1, 1, 15), NOW), 5);
    struct gate_queue q = {1, 1, NOW - 15001};
    assert_int_equal(gate_opens_in_ms(&g, q, NOW), 5);
    q.oldest_us = NOW - 14999;
    assert_int_equal(gate_opens_in_ms(&g, q, NOW), 6);
    // After that long it is open indeed.
    assert_true(gate_is_open(&g, q, NOW + 6 * 1000));
}

static void a_request_that_is_due_is_sent_soon(void **state)
{
    (void)state;
    open_gate(4);
    gate_left(&g);
    assert_int_equal(gate_opens_in_ms(&g, waiting(1, 1, 20), NOW), 1);
    assert_int_equal(gate_opens_in_ms(&g, waiting(1, 1, 500), NOW), 1);
}

static void time_alone_does_not_open_a_gate_whose_limit_is_reached(void **state)
{
    (void)state;
    open_gate(2);
    gate_left(&g), gate_left(&g);
    assert_int_equal(gate_opens_in_ms(&g, waiting(5, 5, 15), NOW), 0);
}

static void landings_teach_the_limit(void **state)
{
    (void)state;
    gate_init(&g, conf,
              (struct limit_conf){.min = 1,
                                  .max = 100,
                                  .alpha = 1,
                                  .beta = 3,
                                  .window_samples = 1,
                                  .min_window_s = 30,
                                  .update_ms = 1},
              NOW);
    for (unsigned i = 1; i < 50; i++) {
        gate_left(&g);
        gate_landed(&g, 1, 1000, NOW + i * 2000);
    }
    assert_int_equal(g.limit.now, conf.max_flights); // the ceiling, not the limit's own maximum
}

static void after_a_crowd_the_next_batch_gathers_for_a_moment(void **state)
{
    (void)state;
    open_gate(4);
    gate_left(&g);
    gate_landed(&g, 8, 1000, NOW);
    struct gate_queue q = {1, 1, NOW}; // nine may come, so seven are most of them
    assert_false(gate_is_open(&g, q, NOW));
    assert_int_equal(gate_opens_in_ms(&g, q, NOW), 1);
    q.requests = 6;
    assert_false(gate_is_open(&g, q, NOW + 500));
    q.requests = 7;
    assert_true(gate_is_open(&g, q, NOW + 500));
    q.requests = 1;
    assert_false(gate_is_open(&g, q, NOW + 999));
    assert_true(gate_is_open(&g, q, NOW + 1000)); // nobody waits longer
}

static void after_a_few_batches_requests_are_sent_at_once(void **state)
{
    (void)state;
    open_gate(4);
    gate_left(&g);
    gate_landed(&g, 3, 1000, NOW);
    assert_true(is_open(1, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gate_stays_closed_without_requests),
        cmocka_unit_test(with_nothing_in_flight_one_request_leaves_at_once),
        cmocka_unit_test(while_one_is_in_flight_few_requests_gather),
        cmocka_unit_test(a_worthwhile_batch_does_not_wait_for_more),
        cmocka_unit_test(a_full_batch_leaves_even_if_more_were_preferred),
        cmocka_unit_test(no_request_waits_longer_than_max_hold),
        cmocka_unit_test(the_limit_is_kept_however_many_wait),
        cmocka_unit_test(a_second_flight_is_always_tried),
        cmocka_unit_test(but_not_beyond_the_ceiling),
        cmocka_unit_test(the_time_until_it_opens_is_rounded_up),
        cmocka_unit_test(a_request_that_is_due_is_sent_soon),
        cmocka_unit_test(time_alone_does_not_open_a_gate_whose_limit_is_reached),
        cmocka_unit_test(landings_teach_the_limit),
        cmocka_unit_test(after_a_crowd_the_next_batch_gathers_for_a_moment),
        cmocka_unit_test(after_a_few_batches_requests_are_sent_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
