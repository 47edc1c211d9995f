// moment.c: what is a point in time, and which.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/moment.h"
#include "base/str.h"

static int64_t us_of(const char *text)
{
    int64_t us = -1;

    assert_true(moment_parse(span_of(text), &us));
    return us;
}

static void times_with_a_zone_are_read(void **state)
{
    (void)state;
    assert_int_equal(us_of("1970-01-01T00:00:00Z"), 0);
    assert_int_equal(us_of("2026-11-16T04:05:06.789Z"), 1794801906789000);
    assert_int_equal(us_of("2026-11-16T04:05:06.7891239Z"), 1794801906789123);
    assert_int_equal(us_of("2026-11-16 05:05:06,789+01:00"), 1794801906789000);
    assert_int_equal(us_of("2026-11-15T22:35:06.789-0530"), 1794801906789000);
    assert_int_equal(us_of("2026-11-16T05:05+01"), 1794801900000000);
    assert_int_equal(us_of("2026-11-16t04:05:00z"), 1794801900000000);
    assert_int_equal(us_of("1969-12-31T23:59:59.5Z"), -500000);
}

static void anything_else_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "now",
                                      "2026-11-16",
                                      "2026-11-16T04:05:06",
                                      "2026-11-16T04:05:06 Z",
                                      "2026-02-29T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-04-31T00:00:00Z",
                                      "2026-11-16T24:00:00Z",
                                      "2026-11-16T04:60:00Z",
                                      "2026-11-16T04:05:60Z",
                                      "2026-11-16T04:05:06.Z",
                                      "2026-11-16T04:05:06+1",
                                      "2026-11-16T04:05:06+16:00",
                                      "2026-11-16T04:05:06Zx",
                                      "26-11-16T04:05:06Z",
                                      "0000-01-01T00:00:00Z",
                                      "1794801906"};
    int64_t us;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(moment_parse(span_of(bad[i]), &us));
}

static void every_day_matches_the_calendar(void **state)
{
    (void)state;
    for (int64_t day = -200000; day < 200000; day += 7) {
        char text[STR_TS_US];
        int64_t us = day * 86400000000 + 12345678;
        str_format_ts_us(us, text);
        int64_t read = 0;
        assert_true(moment_parse((span){text, sizeof text}, &read));
        assert_int_equal(read, us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_with_a_zone_are_read),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(every_day_matches_the_calendar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
