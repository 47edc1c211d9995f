// fnv.h: the published vectors; another program computes the same.
#include "base/fnv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_int_equal(fnv1a(SPAN("")), 0x811c9dc5);
    assert_int_equal(fnv1a(SPAN("a")), 0xe40c292c);
    assert_int_equal(fnv1a(SPAN("foobar")), 0xbf9cf968);
}

// Keys are tied to partitions for good: these numbers must never change.
static void keys_stay_where_they_are(void **state)
{
    (void)state;
    assert_int_equal(fnv_partition(SPAN("customer-7"), 32), 30);
    assert_int_equal(fnv_partition(SPAN("a"), 32), 0);
    assert_int_equal(fnv_partition(SPAN(""), 1), 0);
    assert_int_not_equal(fnv_partition(SPAN("A"), 32), fnv_partition(SPAN("a"), 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_fnv_1a),
        cmocka_unit_test(keys_stay_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
