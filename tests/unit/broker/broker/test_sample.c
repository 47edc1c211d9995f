// sample.c: gauges, their tree, and shares of the processor.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "broker/stats/sample.h"

static void assert_put(const struct gauge *g, const char *const *names, unsigned n,
                       const char *expected)
{
    struct buf out = {0};

    gauges_put(&out, g, names, n);
    buf_putc(&out, '\0');
    assert_string_equal(out.ptr, expected);
    buf_free(&out);
}

static void a_gauge_has_average_extremes_and_last_value(void **state)
{
    struct gauge g = {0};

    (void)state;
    assert_true(gauge_avg(&g) == 0);
    gauge_add(&g, 4);
    gauge_add(&g, -1);
    gauge_add(&g, 3);
    assert_true(gauge_avg(&g) == 2 && g.min == -1 && g.max == 4 && g.last == 3);
}

static void dotted_names_become_a_tree(void **state)
{
    static const char *const names[] = {"a.b.x", "a.b.y", "a.c", "d"};
    struct gauge g[4] = {{0}};

    (void)state;
    assert_put(g, names, 4, "{}");
    gauge_add(&g[1], 1);
    gauge_add(&g[2], 2);
    gauge_add(&g[3], 3);
#define LEAF(v) "{\"avg\":" v ",\"min\":" v ",\"max\":" v ",\"last\":" v "}"
    assert_put(g, names, 4,
               "{\"a\":{\"b\":{\"y\":" LEAF("1.00") "},\"c\":" LEAF("2.00") "},\"d\":" LEAF(
                   "3.00") "}");
    assert_put(g, names, 2, "{\"a\":{\"b\":{\"y\":" LEAF("1.00") "}}}");
}

static void a_share_of_all_of_one_processor_is_ten_thousand(void **state)
{
    (void)state;
    assert_true(usage_share(0, 1000, 1000) == 10000);
    assert_true(usage_share(1000, 1500, 1000) == 5000);
    assert_true(usage_share(5, 5, 1000) == 0 && usage_share(5, 9, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gauge_has_average_extremes_and_last_value),
        cmocka_unit_test(dotted_names_become_a_tree),
        cmocka_unit_test(a_share_of_all_of_one_processor_is_ten_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
