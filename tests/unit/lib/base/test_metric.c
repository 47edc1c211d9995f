// metric.c: quantiles within 6 %, sums, cumulative counts; and the hash map's seed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/metric.h"

static struct histogram h, other;

static int fresh(void **state)
{
    (void)state;
    memset(&h, 0, sizeof h);
    memset(&other, 0, sizeof other);
    return 0;
}

static void a_quantile_is_never_below_and_at_most_6_percent_above(void **state)
{
    (void)state;
    for (uint64_t v = 1; v <= 100000; v++)
        histogram_add(&h, v);
    for (int percent = 1; percent <= 100; percent++) {
        uint64_t exact = (uint64_t)percent * 1000;
        uint64_t got = histogram_quantile(&h, percent / 100.0);
        assert_in_range(got, exact, exact + exact / 16);
    }
    assert_int_equal(h.n, 100000);
}

static void an_empty_histogram_has_only_zeroes(void **state)
{
    (void)state;
    assert_int_equal(histogram_quantile(&h, 0.99), 0);
    assert_int_equal(histogram_count_le(&h, UINT64_MAX), 0);
}

static void values_off_the_scale_land_in_the_last_step(void **state)
{
    (void)state;
    histogram_add(&h, UINT64_MAX);
    histogram_add(&h, 0);
    assert_int_equal(histogram_quantile(&h, 0), 0);
    assert_true(histogram_quantile(&h, 1) > (uint64_t)1 << 38);
    assert_int_equal(histogram_count_le(&h, UINT64_MAX), 2);
}

static void sets_of_workers_add_up(void **state)
{
    (void)state;
    histogram_add(&h, 10);
    histogram_add(&other, 10);
    histogram_add(&other, 2000);
    histogram_sum(&h, &other);
    assert_int_equal(h.n, 3);
    assert_int_equal(h.sum, 2020);
    assert_int_equal(histogram_count_le(&h, 9), 0);
    assert_int_equal(histogram_count_le(&h, 10), 2);
    assert_int_equal(histogram_count_le(&h, 5000), 3);
}

static void a_counter_counts(void **state)
{
    (void)state;
    struct counter c = {0};
    counter_add(&c, 2);
    counter_add(&c, 3);
    assert_int_equal(counter_get(&c), 5);
}

struct entry {
    int key;
    UT_hash_handle hh;
};

static void a_map_finds_its_entries_with_any_seed(void **state)
{
    (void)state;
    struct entry *map = NULL, entries[100], *e;
    map_setup();
    assert_true(map_seed != 0);
    for (int i = 0; i < 100; i++) {
        entries[i].key = i;
        HASH_ADD_INT(map, key, &entries[i]);
    }
    for (int i = 0; i < 100; i++) {
        HASH_FIND_INT(map, &i, e);
        assert_ptr_equal(e, &entries[i]);
    }
    HASH_CLEAR(hh, map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_quantile_is_never_below_and_at_most_6_percent_above, fresh),
        cmocka_unit_test_setup(an_empty_histogram_has_only_zeroes, fresh),
        cmocka_unit_test_setup(values_off_the_scale_land_in_the_last_step, fresh),
        cmocka_unit_test_setup(sets_of_workers_add_up, fresh),
        cmocka_unit_test(a_counter_counts),
        cmocka_unit_test(a_map_finds_its_entries_with_any_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
