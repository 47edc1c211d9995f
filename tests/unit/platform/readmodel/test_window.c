// policy.c: the bulk window as people write it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "readmodel/policy.h"

static struct bulk_window parse(const char *text)
{
    struct bulk_window w;
    assert_true(bulk_window_parse(span_of(text), &w));
    return w;
}

static void a_window_has_its_minutes(void **state)
{
    (void)state;
    struct bulk_window w = parse("13:00-14:00");
    assert_string_equal(w.zone, "UTC");
    assert_false(bulk_window_has(&w, 12 * 60 + 59));
    assert_true(bulk_window_has(&w, 13 * 60));
    assert_true(bulk_window_has(&w, 13 * 60 + 59));
    assert_false(bulk_window_has(&w, 14 * 60));
}

static void a_window_may_go_over_midnight(void **state)
{
    (void)state;
    struct bulk_window w = parse("22:30-01:00 Europe/Rome");
    assert_string_equal(w.zone, "Europe/Rome");
    assert_true(bulk_window_has(&w, 22 * 60 + 30));
    assert_true(bulk_window_has(&w, 0));
    assert_false(bulk_window_has(&w, 60));
    assert_false(bulk_window_has(&w, 12 * 60));
    w = parse("00:00-24:00"); // all day
    assert_true(bulk_window_has(&w, 0));
    assert_true(bulk_window_has(&w, 24 * 60 - 1));
}

static void no_window_has_no_minutes(void **state)
{
    (void)state;
    struct bulk_window w = parse("");
    for (int minute = 0; minute < 24 * 60; minute++)
        assert_false(bulk_window_has(&w, minute));
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "13:00",       "13:00-",      "13-14",       "13:00-14:60",
        "25:00-26:00", "1:00-2:00",   "13:00-13:00", "13:00-14:00-15:00",
        "aa:bb-cc:dd", "13:00 14:00", "13:00-24:01"};
    struct bulk_window w;
    for (unsigned i = 0; i < countof(bad); i++)
        assert_false(bulk_window_parse(span_of(bad[i]), &w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_has_its_minutes),
        cmocka_unit_test(a_window_may_go_over_midnight),
        cmocka_unit_test(no_window_has_no_minutes),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests_name("readmodel/window", tests, NULL, NULL);
}
