// clock.c: real clocks run, frozen ones are set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

static void real_clocks_run_forward(void **state)
{
    (void)state;
    uint64_t before = clock_mono_us();
    uint64_t deadline = before + 5000000;
    while (clock_mono_us() == before)
        assert_true(clock_mono_us() < deadline);
    assert_true(clock_mono_us() > before);
    assert_true(clock_wall_us() > 1700000000000000); // later than 2023
}

static void frozen_clocks_move_only_by_request(void **state)
{
    (void)state;
    clock_freeze(10, 20);
    assert_int_equal(clock_mono_us(), 10);
    assert_int_equal(clock_wall_us(), 20);
    clock_advance_us(5);
    assert_int_equal(clock_mono_us(), 15);
    assert_int_equal(clock_wall_us(), 25);
    clock_release();
    assert_true(clock_wall_us() > 1700000000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_clocks_run_forward),
        cmocka_unit_test(frozen_clocks_move_only_by_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
