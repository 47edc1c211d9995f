// breaker.c: when it opens, when it probes, when it closes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tenant/breaker.h"

static const struct breaker_conf conf = {.failures = 3, .pause_us = 100, .max_pause_us = 300};

static void it_opens_after_failures_in_a_row(void **state)
{
    (void)state;
    struct breaker b = {0};
    assert_false(breaker_bad(&b, &conf, false, 0));
    assert_false(breaker_bad(&b, &conf, false, 1));
    breaker_good(&b); // not in a row any more
    assert_false(breaker_bad(&b, &conf, false, 2));
    assert_false(breaker_bad(&b, &conf, false, 3));
    assert_true(breaker_is_closed(&b));
    assert_true(breaker_bad(&b, &conf, false, 4));
    assert_false(breaker_is_closed(&b));
    assert_false(breaker_bad(&b, &conf, false, 5)); // reported once
    assert_int_equal(b.n_opened, 1);
}

static void nothing_reached_at_all_is_proof_enough(void **state)
{
    (void)state;
    struct breaker b = {0};
    assert_true(breaker_bad(&b, &conf, true, 0));
}

static void probes_come_at_growing_pauses_until_one_succeeds(void **state)
{
    (void)state;
    struct breaker b = {0};
    breaker_bad(&b, &conf, true, 1000);
    assert_false(breaker_is_due(&b, 1099));
    assert_true(breaker_is_due(&b, 1100));
    assert_false(breaker_is_due(&b, 1101)); // one at a time
    breaker_probed(&b, &conf, false, 1110);
    assert_false(breaker_is_due(&b, 1309));
    assert_true(breaker_is_due(&b, 1310)); // twice as long
    breaker_probed(&b, &conf, false, 1310);
    assert_false(breaker_is_due(&b, 1609));
    assert_true(breaker_is_due(&b, 1610)); // at most 300
    breaker_good(&b);                      // a call in progress: no proof
    assert_false(breaker_is_closed(&b));
    breaker_probed(&b, &conf, true, 1620);
    assert_true(breaker_is_closed(&b));
    breaker_bad(&b, &conf, true, 2000);
    assert_true(breaker_is_due(&b, 2100)); // the first pause again
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_after_failures_in_a_row),
        cmocka_unit_test(nothing_reached_at_all_is_proof_enough),
        cmocka_unit_test(probes_come_at_growing_pauses_until_one_succeeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
