// Tests of the choice of a server: affinity, turns, health; and of the pauses between attempts.
#include "servers.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "backoff.h"

enum { SECOND = 1000000 };

static struct servers three(enum queen_strategy strategy)
{
    struct servers s;
    struct queen_error err;

    assert_int_equal(
        servers_init(&s, "http://a:1, http://b:2,http://c:3", strategy, 5000, &err), 0);
    assert_int_equal(s.n, 3);
    return s;
}

static void calls_without_a_key_go_round(void **state)
{
    (void)state;
    struct servers s = three(QUEEN_AFFINITY);

    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(servers_choose(&s, SPAN_NONE, 0, 0), i % 3);
    servers_deinit(&s);
}

static void a_key_stays_with_its_server(void **state)
{
    (void)state;
    struct servers s = three(QUEEN_AFFINITY);
    unsigned home = servers_choose(&s, SPAN("orders:*:g"), 0, 0);

    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(servers_choose(&s, SPAN("orders:*:g"), 0, 0), home);
    servers_deinit(&s);
}

static void in_round_robin_keys_do_not_count(void **state)
{
    (void)state;
    struct servers s = three(QUEEN_ROUND_ROBIN);

    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(servers_choose(&s, SPAN("orders:*:g"), 0, 0), i % 3);
    servers_deinit(&s);
}

static void a_sick_server_is_left_alone_for_a_while(void **state)
{
    (void)state;
    struct servers s = three(QUEEN_AFFINITY);
    unsigned home = servers_choose(&s, SPAN("k"), 0, SECOND);

    servers_note(&s, home, false, SECOND);
    assert_int_not_equal(servers_choose(&s, SPAN("k"), 0, 2 * SECOND), home);
    assert_int_not_equal(servers_choose(&s, SPAN("k"), 0, 6 * SECOND - 1), home);
    assert_int_equal(servers_choose(&s, SPAN("k"), 0, 6 * SECOND), home);

    servers_note(&s, home, false, 7 * SECOND);
    servers_note(&s, home, true, 8 * SECOND);
    assert_int_equal(servers_choose(&s, SPAN("k"), 0, 8 * SECOND), home);
    servers_deinit(&s);
}

static void when_all_are_sick_they_are_tried_all_the_same(void **state)
{
    (void)state;
    struct servers s = three(QUEEN_ROUND_ROBIN);
    uint64_t tried = 0;

    for (unsigned i = 0; i < 3; i++)
        servers_note(&s, i, false, SECOND);
    for (unsigned i = 0; i < 3; i++) {
        unsigned server = servers_choose(&s, SPAN_NONE, tried, SECOND);
        assert_false(tried >> server & 1);
        tried |= (uint64_t)1 << server;
    }
    assert_int_equal(tried, 7);
    assert_in_range(servers_choose(&s, SPAN_NONE, tried, SECOND), 0, 2);
    servers_deinit(&s);
}

static void a_bad_address_in_the_list_is_named(void **state)
{
    (void)state;
    struct servers s;
    struct queen_error err;

    assert_int_equal(servers_init(&s, "http://a:1,b", QUEEN_AFFINITY, 1, &err),
                     QUEEN_E_ARGUMENT);
    assert_non_null(strstr(err.text, "\"b\""));
    assert_int_equal(servers_init(&s, "", QUEEN_AFFINITY, 1, &err), QUEEN_E_ARGUMENT);
}

static void pauses_double_up_to_a_minute(void **state)
{
    (void)state;
    assert_int_equal(backoff_ms(1000, 1), 1000);
    assert_int_equal(backoff_ms(1000, 2), 2000);
    assert_int_equal(backoff_ms(1000, 3), 4000);
    assert_int_equal(backoff_ms(1000, 7), BACKOFF_MAX_MS);
    assert_int_equal(backoff_ms(1, 200), BACKOFF_MAX_MS);
    assert_int_equal(backoff_ms(4000000000u, 16), BACKOFF_MAX_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_without_a_key_go_round),
        cmocka_unit_test(a_key_stays_with_its_server),
        cmocka_unit_test(in_round_robin_keys_do_not_count),
        cmocka_unit_test(a_sick_server_is_left_alone_for_a_while),
        cmocka_unit_test(when_all_are_sick_they_are_tried_all_the_same),
        cmocka_unit_test(a_bad_address_in_the_list_is_named),
        cmocka_unit_test(pauses_double_up_to_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
