// Tests of amounts: exact, or refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ingest/money.h"

static void numbers_become_hundredths(void **state)
{
    static const struct {
        const char *text;
        int64_t hundredths;
    } cases[] = {
        {"0", 0},
        {"-0.00", 0},
        {"12", 1200},
        {"12.5", 1250},
        {"-0.01", -1},
        {"0.070", 7},
        {"1e2", 10000},
        {"1.25E+1", 1250},
        {"125e-2", 125},
        {"100e-4", 1},
        {"0e99999", 0},
        {"9999999999.99", 999999999999},
        {"1000000", 100000000},
        {"10.00000000000000000000000000", 1000},
        {"0.00000000000000000000001e21", 1},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t v = -77;
        assert_true(money_parse(span_of(cases[i].text), &v));
        assert_int_equal(v, cases[i].hundredths);
    }
}

static void amounts_with_more_decimals_or_too_large_are_refused(void **state)
{
    static const char *const cases[] = {"0.001",
                                        "1.005",
                                        "1e-3",
                                        "1e400",
                                        "123456789012345678901",
                                        "1.23456e2",
                                        "99999999999999999.5"};

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t v;
        assert_false(money_parse(span_of(cases[i]), &v));
    }
}

static void hundredths_become_text(void **state)
{
    struct buf b = {0};

    (void)state;
    money_put(&b, -5);
    buf_putc(&b, ' ');
    money_put(&b, 123456);
    buf_putc(&b, ' ');
    money_put(&b, -100);
    assert_true(span_eq(buf_span(&b), SPAN("-0.05 1234.56 -1.00")));
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_become_hundredths),
        cmocka_unit_test(amounts_with_more_decimals_or_too_large_are_refused),
        cmocka_unit_test(hundredths_become_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
