// The set against the simplest model there is: a flag per number.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/load/set.h"

static void an_empty_set_has_nothing(void **state)
{
    (void)state;
    struct bench_set s = {0};

    assert_false(bench_set_has(&s, 0));
    assert_false(bench_set_take(&s, 0));
    bench_set_free(&s);
}

static void it_agrees_with_a_flag_per_number(void **state)
{
    (void)state;
    enum { RANGE = 3000, STEPS = 200000 };
    static bool model[RANGE];
    struct bench_set s = {0};
    size_t n = 0;

    srandom(7);
    for (int step = 0; step < STEPS; step++) {
        unsigned v = (unsigned)random() % RANGE;
        // Spread like the ledger's keys: the interesting bits are the upper ones.
        uint64_t key = (uint64_t)v << 32 | v % 3;
        switch (random() % 3) {
        case 0:
            bench_set_add(&s, key);
            n += !model[v];
            model[v] = true;
            break;
        case 1:
            assert_int_equal(bench_set_take(&s, key), model[v]);
            n -= model[v];
            model[v] = false;
            break;
        default:
            assert_int_equal(bench_set_has(&s, key), model[v]);
        }
        assert_int_equal(s.n, n);
    }
    bench_set_free(&s);
    assert_null(s.slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_set_has_nothing),
        cmocka_unit_test(it_agrees_with_a_flag_per_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
