// write.c and text.c: what goes out comes back in.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "json/scan.h"
#include "json/write.h"

static void text_is_escaped_and_comes_back(void **state)
{
    (void)state;
    struct buf b = {0};
    struct arena a;
    span text = SPAN("\"q\" \\ / \b\f\n\r\t \x01\x1f \x7f h\xc3\xa9 \xf0\x9f\x98\x80");
    arena_init(&a);
    js_put_text(&b, text);
    assert_true(span_eq(buf_span(&b), SPAN("\"\\\"q\\\" \\\\ / \\b\\f\\n\\r\\t \\u0001\\u001f "
                                           "\x7f h\xc3\xa9 \xf0\x9f\x98\x80\"")));
    struct js j = js_read(buf_span(&b));
    span raw = js_skip(&j);
    assert_int_equal(js_finish(&j), 0);
    assert_true(span_eq(js_text(raw, &a), text));
    arena_deinit(&a);
    buf_free(&b);
}

static void escapes_become_utf8_of_every_length(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    assert_true(span_eq(js_text(SPAN("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\\/z\""), &a),
                        SPAN("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/z")));
    span plain = SPAN("\"abc\"");
    assert_ptr_equal(js_text(plain, &a).ptr, plain.ptr + 1); // borrowed
    assert_int_equal(js_text(SPAN("\"\""), &a).len, 0);
    assert_null(js_text(SPAN("12"), &a).ptr);
    arena_deinit(&a);
}

static void a_key_is_equal_by_meaning(void **state)
{
    (void)state;
    assert_true(js_key_is(SPAN("queue"), SPAN("queue")));
    assert_true(js_key_is(SPAN("\\u0071ueue"), SPAN("queue")));
    assert_true(js_key_is(SPAN("q\\u0075\\u0065\\u0075\\u0065"), SPAN("queue")));
    assert_false(js_key_is(SPAN("\\u0071ueues"), SPAN("queue")));
    assert_false(js_key_is(SPAN("\\u0071ueu"), SPAN("queue")));
    assert_false(js_key_is(SPAN(""), SPAN("queue")));
}

static void null_stands_for_no_text_at_all(void **state)
{
    (void)state;
    struct buf b = {0};
    js_put_text_or_null(&b, SPAN_NONE);
    js_put_text_or_null(&b, SPAN(""));
    js_put_bool(&b, true);
    js_put_bool(&b, false);
    js_put_escaped(&b, SPAN_NONE);
    assert_true(span_eq(buf_span(&b), SPAN("null\"\"truefalse")));
    buf_free(&b);
}

static void numbers_are_short_and_exact(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "0"},     {-3, "-3"},        {0.1, "0.1"},   {1e15, "1000000000000000"},
        {2.5, "2.5"}, {1e300, "1e+300"}, {-0.5, "-0.5"}, {1.0 / 3, "0.33333333333333331"}};
    for (size_t i = 0; i < countof(cases); i++) {
        struct buf b = {0};
        js_put_number(&b, cases[i].v);
        buf_putc(&b, '\0');
        assert_string_equal(b.ptr, cases[i].text);
        assert_true(strtod(b.ptr, NULL) == cases[i].v);
        buf_free(&b);
    }
}

static void integers_are_read_from_numbers_and_strings(void **state)
{
    (void)state;
    int64_t v;
    assert_true(js_int(SPAN("-7"), &v) && v == -7);
    assert_true(js_int(SPAN("\"30\""), &v) && v == 30);
    assert_true(js_int(SPAN("30.0"), &v) && v == 30);
    assert_false(js_int(SPAN("30.5"), &v));
    assert_false(js_int(SPAN("\"30s\""), &v));
    assert_false(js_int(SPAN("\"\""), &v));
    assert_false(js_int(SPAN("9223372036854775808"), &v));
    assert_false(js_int(SPAN("true"), &v));
    assert_false(js_int(SPAN_NONE, &v));
}

static void types_and_booleans_are_recognised_by_the_text(void **state)
{
    (void)state;
    bool v;
    assert_true(js_bool(SPAN("true"), &v) && v);
    assert_true(js_bool(SPAN("false"), &v) && !v);
    assert_false(js_bool(SPAN("1"), &v));
    assert_int_equal(js_type_of(SPAN("[1]")), JS_ARRAY);
    assert_int_equal(js_type_of(SPAN("-1")), JS_NUMBER);
    assert_int_equal(js_type_of(SPAN("null")), JS_NULL);
    assert_int_equal(js_type_of(SPAN_NONE), JS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped_and_comes_back),
        cmocka_unit_test(escapes_become_utf8_of_every_length),
        cmocka_unit_test(a_key_is_equal_by_meaning),
        cmocka_unit_test(null_stands_for_no_text_at_all),
        cmocka_unit_test(numbers_are_short_and_exact),
        cmocka_unit_test(integers_are_read_from_numbers_and_strings),
        cmocka_unit_test(types_and_booleans_are_recognised_by_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
