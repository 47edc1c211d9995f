// Tests of the pauses between attempts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/lanes.h"

static void pauses_grow_like_fibonaccis_numbers(void **state)
{
    static const unsigned expected[] = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55};

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(lanes_pause_ms(i + 1, 1000, 3600000), expected[i] * 1000);
}

static void they_have_a_ceiling(void **state)
{
    (void)state;
    assert_int_equal(lanes_pause_ms(12, 1000, 60000), 60000);
    assert_int_equal(lanes_pause_ms(1000000, 1000, 60000), 60000);
    assert_int_equal(lanes_pause_ms(0, 1000, 60000), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_like_fibonaccis_numbers),
        cmocka_unit_test(they_have_a_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
