// Quantiles must be right within 0.8 % over the whole range.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/load/hist.h"

static struct bench_hist h, other;

static int setup(void **state)
{
    (void)state;
    h = other = (struct bench_hist){0};
    return 0;
}

static void an_empty_histogram_is_zero(void **state)
{
    (void)state;
    assert_true(bench_hist_ms(&h, 0.5) == 0);
    assert_true(bench_hist_mean_ms(&h) == 0);
}

static void one_value_is_found_again_within_its_step(void **state)
{
    (void)state;
    for (uint64_t us = 1; us < (uint64_t)1 << 34; us = us * 9 / 8 + 1) {
        setup(NULL);
        bench_hist_add(&h, us - 1); // so that the maximum does not hide the step
        bench_hist_add(&h, us);
        bench_hist_add(&h, us * 4);
        double found = bench_hist_ms(&h, 0.6) * 1000;
        assert_true(fabs(found - (double)us) <= (double)us * 0.008 + 0.5);
    }
}

static void quantiles_of_a_line_are_on_the_line(void **state)
{
    (void)state;
    for (uint64_t us = 1; us <= 100000; us++)
        bench_hist_add(&h, us);
    assert_true(fabs(bench_hist_ms(&h, 0.5) - 50) < 0.4);
    assert_true(fabs(bench_hist_ms(&h, 0.99) - 99) < 0.8);
    assert_true(bench_hist_ms(&h, 1) <= 100);
    assert_true(fabs(bench_hist_mean_ms(&h) - 50) < 0.01);
}

static void values_beyond_the_last_step_are_not_lost(void **state)
{
    (void)state;
    bench_hist_add(&h, UINT64_MAX / 4);
    assert_int_equal(h.n, 1);
    assert_true(bench_hist_ms(&h, 0.5) > 1e6);
}

static void merging_is_the_same_as_adding(void **state)
{
    (void)state;
    static struct bench_hist both;

    for (uint64_t us = 1; us < 5000; us += 7) {
        bench_hist_add(us % 2 ? &h : &other, us);
        bench_hist_add(&both, us);
    }
    bench_hist_merge(&h, &other);
    assert_memory_equal(&h, &both, sizeof h);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
    const struct CMUnitTest tests[] = {
        T(an_empty_histogram_is_zero),          T(one_value_is_found_again_within_its_step),
        T(quantiles_of_a_line_are_on_the_line), T(values_beyond_the_last_step_are_not_lost),
        T(merging_is_the_same_as_adding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
