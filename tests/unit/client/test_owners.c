// owners.c: answers about owners, and what is not one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "owners.h"

static struct queen_error err;
static struct arena arena;

static struct queen_response answer(const char *body)
{
    return (struct queen_response){.status = 200, .body = body, .body_len = strlen(body)};
}

static int open_arena(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void records_are_read_and_unknown_members_are_skipped(void **state)
{
    (void)state;
    struct queen_response r = answer(
        "{\"x\":[1],\"owners\":[{\"partition\":\"0\",\"owner\":\"a\",\"epoch\":7,\"lag\":41,"
        "\"expired\":true,\"freeMs\":12,\"wantedBy\":\"b\",\"y\":{}},{\"partition\":\"1\","
        "\"owner\":null,"
        "\"epoch\":0,\"lag\":null}]}");
    struct owner_list list;

    assert_int_equal(owners_read(&r, &arena, &list, &err), 0);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.records[0].owner, "a");
    assert_string_equal(list.records[0].wanted_by, "b");
    assert_int_equal(list.records[0].epoch, 7);
    assert_int_equal(list.records[0].lag, 41);
    assert_true(list.records[0].expired);
    assert_int_equal(list.records[0].free_ms, 12);
    assert_int_equal(list.records[1].free_ms, -1);
    assert_string_equal(list.records[1].partition, "1");
    assert_null(list.records[1].owner);
}

static void a_result_that_is_no_success_has_an_error(void **state)
{
    (void)state;
    struct queen_response r = answer(
        "{\"results\":[{\"partition\":\"0\",\"success\":true,\"epoch\":3},"
        "{\"partition\":\"1\",\"success\":false,\"error\":\"owned\"},{\"partition\":\"2\"}]}");
    struct owner_result *results;
    unsigned n;

    assert_int_equal(owners_read_results(&r, &arena, &results, &n, &err), 0);
    assert_int_equal(n, 3);
    assert_null(results[0].error);
    assert_int_equal(results[0].epoch, 3);
    assert_string_equal(results[1].error, "owned");
    assert_string_equal(results[2].error, "refused");
}

static void long_lists_are_read_whole(void **state)
{
    (void)state;
    struct buf body = {0};
    const char **names;
    unsigned n;

    buf_put_lit(&body, "{\"lost\":[");
    for (unsigned i = 0; i < 100; i++)
        buf_printf(&body, "%s\"p%u\"", i > 0 ? "," : "", i);
    buf_put_lit(&body, "]}");
    struct queen_response r = {.status = 200, .body = body.ptr, .body_len = body.len};
    assert_int_equal(owners_read_lost(&r, &arena, &names, &n, &err), 0);
    assert_int_equal(n, 100);
    assert_string_equal(names[99], "p99");
    buf_free(&body);
}

static void a_wrong_type_is_a_protocol_error_with_a_text(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text;
    } bad[] = {
        {"{\"owners\":[{\"partition\":\"0\",\"epoch\":\"x\"}]}",
         "epoch must be a whole number"},
        {"{\"owners\":[{\"partition\":\"0\",\"epoch\":1.5}]}", "epoch must be a whole number"},
        {"{\"owners\":[{\"partition\":\"0\",\"lag\":true}]}", "lag must be a whole number"},
        {"{\"owners\":[{\"partition\":\"0\",\"expired\":\"no\"}]}",
         "expired must be true or false"},
        {"{\"owners\":[{\"partition\":\"0\",\"owner\":7}]}", "owner must be a string"},
        {"{\"owners\":[{\"partition\":7}]}", "partition must be a string"},
        {"{\"owners\":[{\"owner\":\"a\"}]}", "without partition"},
        {"{\"owners\":[7]}", ""},
        {"{\"owners\":{}}", ""},
        {"{\"owners\":[", ""},
    };
    struct owner_list list;

    for (unsigned i = 0; i < countof(bad); i++) {
        struct queen_response r = answer(bad[i].body);
        err = (struct queen_error){0};
        assert_int_equal(owners_read(&r, &arena, &list, &err), QUEEN_E_PROTOCOL);
        assert_int_equal(err.code, QUEEN_E_PROTOCOL);
        assert_non_null(strstr(err.text, bad[i].text));
    }
    struct queen_response r = answer("{\"lost\":[\"a\",7]}");
    const char **names;
    unsigned n;
    assert_int_equal(owners_read_lost(&r, &arena, &names, &n, &err), QUEEN_E_PROTOCOL);
    r = answer("{\"results\":[{\"partition\":\"0\",\"success\":\"yes\"}]}");
    struct owner_result *results;
    assert_int_equal(owners_read_results(&r, &arena, &results, &n, &err), QUEEN_E_PROTOCOL);
    assert_non_null(strstr(err.text, "success must be true or false"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_and_unknown_members_are_skipped),
        cmocka_unit_test(a_result_that_is_no_success_has_an_error),
        cmocka_unit_test(long_lists_are_read_whole),
        cmocka_unit_test(a_wrong_type_is_a_protocol_error_with_a_text),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
