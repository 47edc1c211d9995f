// limit.c: the limit follows the round trips.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "batch/limit.h"

static const struct limit_conf conf = {.min = 2,
                                       .max = 8,
                                       .alpha = 1,
                                       .beta = 3,
                                       .window_samples = 1, // the mean is the last one
                                       .min_window_s = 30,
                                       .update_ms = 100};
static uint64_t now;
static struct limit l;

static void sample(uint64_t rtt_us) // with time for a change
{
    now += 100 * 1000;
    limit_sample(&l, rtt_us, now);
}

static int setup(void **state)
{
    (void)state;
    now = 1000000;
    limit_init(&l, conf, now);
    return 0;
}

static void it_starts_at_its_minimum(void **state)
{
    (void)state;
    assert_int_equal(l.now, 2);
}

static void a_nonsensical_range_is_mended(void **state)
{
    (void)state;
    limit_init(&l, (struct limit_conf){.min = 0, .max = 0}, now);
    assert_int_equal(l.now, 1);
    limit_init(&l, (struct limit_conf){.min = 5, .max = 3, .fixed = true}, now);
    assert_int_equal(l.now, 5);
}

static void a_fixed_limit_is_its_maximum_whatever_is_measured(void **state)
{
    (void)state;
    struct limit_conf fixed = conf;
    fixed.fixed = true;
    limit_init(&l, fixed, now);
    assert_int_equal(l.now, 8);
    for (unsigned i = 1; i < 50; i++)
        sample(i * 1000);
    assert_int_equal(l.now, 8);
}

static void it_grows_by_one_while_nothing_waits_up_to_its_maximum(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 6; i++) {
        sample(1000);
        assert_int_equal(l.now, 2 + i);
    }
    sample(1000);
    assert_int_equal(l.now, 8);
}

static void it_shrinks_by_one_while_too_many_wait_down_to_its_minimum(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++)
        sample(1000);
    sample(10000); // 8 * (1 - 1/10) = 7.2 wait
    assert_int_equal(l.now, 7);
    for (unsigned i = 0; i < 20; i++)
        sample(100000);
    assert_int_equal(l.now, 3); // 3 * (1 - 1/100) = 2.97: not more than beta
}

static void its_minimum_holds(void **state)
{
    (void)state;
    struct limit_conf low = conf;
    low.beta = 1;
    limit_init(&l, low, now);
    sample(1000);
    for (unsigned i = 0; i < 20; i++)
        sample(1000000);
    assert_int_equal(l.now, 2);
}

static void between_alpha_and_beta_it_stays(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        sample(1000);
    assert_int_equal(l.now, 4);
    for (unsigned i = 0; i < 10; i++)
        sample(2000); // 4 * (1 - 1/2) = 2 wait
    assert_int_equal(l.now, 4);
}

static void the_limit_changes_at_most_once_per_interval(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 99; i++)
        limit_sample(&l, 1000, now += 1000);
    assert_int_equal(l.now, 2);
    limit_sample(&l, 1000, now += 1000);
    assert_int_equal(l.now, 3);
    limit_sample(&l, 1000, now += 1000);
    assert_int_equal(l.now, 3);
}

static void an_old_minimum_is_forgotten(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        sample(1000);
    unsigned before = l.now;
    now += 31ull * 1000000;
    sample(50000); // the database is slower now for everybody: nothing waits
    assert_int_equal(l.shortest_us, 50000);
    assert_int_equal(l.now, before + 1);
}

static void a_single_outlier_is_averaged_away(void **state)
{
    (void)state;
    struct limit_conf slow = conf;
    slow.window_samples = 99;
    limit_init(&l, slow, now);
    for (unsigned i = 0; i < 10; i++)
        sample(1000);
    assert_int_equal(l.now, 8);
    sample(2000); // the mean moves by 2 %
    assert_int_equal(l.now, 8);
    assert_true(l.mean_us > 1019 && l.mean_us < 1021);
}

static void a_round_trip_of_nothing_divides_by_nothing(void **state)
{
    (void)state;
    sample(0);
    sample(0);
    assert_in_range(l.now, 2, 8);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
    const struct CMUnitTest tests[] = {
        T(it_starts_at_its_minimum),
        T(a_nonsensical_range_is_mended),
        T(a_fixed_limit_is_its_maximum_whatever_is_measured),
        T(it_grows_by_one_while_nothing_waits_up_to_its_maximum),
        T(it_shrinks_by_one_while_too_many_wait_down_to_its_minimum),
        T(its_minimum_holds),
        T(between_alpha_and_beta_it_stays),
        T(the_limit_changes_at_most_once_per_interval),
        T(an_old_minimum_is_forgotten),
        T(a_single_outlier_is_averaged_away),
        T(a_round_trip_of_nothing_divides_by_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
