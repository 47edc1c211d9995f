// scan.c: exactly what jsonb takes, and a cursor that never runs away.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/scan.h"

// In memory of exactly its length, so that ASan sees a read past the end.
static int scan(const char *text, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);
    memcpy(copy, text, len);
    struct js j = js_read((span){copy, len});
    js_skip(&j);
    int rc = js_finish(&j);
    free(copy);
    return rc;
}

static void assert_accepted(const char *text)
{
    if (scan(text, strlen(text)) != 0)
        fail_msg("refused: %s", text);
}

static void assert_refused(const char *text)
{
    if (scan(text, strlen(text)) != QE_BAD_JSON)
        fail_msg("accepted: %s", text);
}

static void valid_json_is_accepted(void **state)
{
    (void)state;
    static const char *const good[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "12",
        "-1.5e+10",
        "1E5",
        "0.001",
        "\"\"",
        "[]",
        "{}",
        " [ ] ",
        "\t{\r\n}\n",
        "[1,2]",
        "[[],{}]",
        "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"\"}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "\"\\uD83D\\uDE00\"",
        "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"",
        "{\"a\":1,\"a\":2}",
        "\"\x7f\"",
        "\"a string that is longer than one vector of sixteen bytes, by far\"",
    };
    for (size_t i = 0; i < countof(good); i++)
        assert_accepted(good[i]);
}

static void invalid_json_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        " ",
        "nul",
        "nulll",
        "tru",
        "True",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "}",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "{1:1}",
        "{\"a\":1 \"b\":2}",
        "[}",
        "{]",
        "[1}",
        "{\"a\":1]",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "\"\t\"",
        "1 2",
        "[] []",
        "'a'",
        "// x\n1",
        "\xef\xbb\xbf[]",
        "\"\\",
        "\"\\u",
        "\"\\ud83d\\u",
    };
    for (size_t i = 0; i < countof(wrong); i++)
        assert_refused(wrong[i]);
    assert_int_equal(scan("\"a\0b\"", 5), QE_BAD_JSON);
    assert_int_equal(scan("1\0", 2), QE_BAD_JSON);
    assert_int_equal(scan("\"\\\0\"", 4), QE_BAD_JSON);
}

static void text_that_only_jsonb_refuses_is_refused_too(void **state)
{
    (void)state;
    assert_refused("\"\\u0000\"");
    assert_refused("\"\\ud83d\"");
    assert_refused("\"\\ud83dx\"");
    assert_refused("\"\\ud83d\\n\"");
    assert_refused("\"\\ud83d\\ud83d\"");
    assert_refused("\"\\ude00\"");
    assert_refused("{\"\\u0000\":1}");
    assert_accepted("1e131071");
    assert_refused("1e131072");
    assert_refused("10e131071");
    assert_accepted("0.1e131072");
    assert_refused("-1e999999999999999999999");
    assert_accepted("1e-16383");
    assert_refused("1e-16384");
    assert_refused("1.0e-16383");
    assert_refused("1e-999999999999999999999");
    assert_accepted("1e00000000000000000000000000005");
}

static void strings_must_be_utf8_at_every_place(void **state)
{
    (void)state;
    static const char *const wrong[] = {"\xc0\x80",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xf8\x88\x80\x80",
                                        "\x80",
                                        "\xe2\x82",
                                        "\xc3(",
                                        "\xff"};
    char text[80];
    for (size_t i = 0; i < countof(wrong); i++) {
        for (int pad = 0; pad < 40; pad++) {
            snprintf(text, sizeof text, "\"%.*s%s\"", pad,
                     "0123456789012345678901234567890123456789", wrong[i]);
            assert_refused(text);
        }
    }
}

static void every_byte_value_is_judged_the_same_at_every_place(void **state)
{
    (void)state;
    char text[50];
    for (int c = 0; c < 256; c++) {
        for (int at = 1; at < 49; at++) {
            memset(text, 'x', sizeof text);
            text[0] = text[49] = '"';
            text[at] = (char)c;
            bool plain = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
            assert_int_equal(scan(text, sizeof text), plain ? 0 : QE_BAD_JSON);
        }
    }
}

static int nested(size_t depth, const char *open, const char *close)
{
    struct buf b = {0};
    for (size_t i = 0; i < depth; i++)
        buf_put(&b, span_of(open));
    buf_put_lit(&b, "1");
    for (size_t i = 0; i < depth; i++)
        buf_put(&b, span_of(close));
    int rc = scan(b.ptr, b.len);
    buf_free(&b);
    return rc;
}

static void nesting_ends_at_256(void **state)
{
    (void)state;
    assert_int_equal(nested(256, "[", "]"), 0);
    assert_int_equal(nested(257, "[", "]"), QE_BAD_JSON);
    assert_int_equal(nested(256, "{\"a\":", "}"), 0);
    assert_int_equal(nested(257, "{\"a\":", "}"), QE_BAD_JSON);
    assert_int_equal(nested(128, "[{\"a\":", "}]"), 0);
    assert_int_equal(nested(64, "[{\"a\":", "]}"), QE_BAD_JSON);
    assert_int_equal(nested(100000, "[", "]"), QE_BAD_JSON);
}

static void the_cursor_walks_and_gives_raw_spans(void **state)
{
    (void)state;
    struct js j =
        js_read(SPAN(" {\"n\" : 1 , \"list\":[ {\"x\" : \"y\"} , 2 ],\"e\":{}, \"a\":[]} "));
    span key;
    unsigned items = 0;
    js_enter_object(&j);
    assert_true(js_next_key(&j, &key) && span_eq(key, SPAN("n")));
    assert_int_equal(js_peek(&j), JS_NUMBER);
    assert_true(span_eq(js_skip(&j), SPAN("1")));
    assert_true(js_next_key(&j, &key) && span_eq(key, SPAN("list")));
    js_enter_array(&j);
    while (js_next_item(&j)) {
        span raw = js_skip(&j);
        assert_true(span_eq(raw, items == 0 ? SPAN("{\"x\" : \"y\"}") : SPAN("2")));
        items++;
    }
    assert_int_equal(items, 2);
    assert_true(js_next_key(&j, &key) && span_eq(key, SPAN("e")));
    js_enter_object(&j);
    assert_false(js_next_key(&j, &key));
    assert_true(js_next_key(&j, &key) && span_eq(key, SPAN("a")));
    js_enter_array(&j);
    assert_false(js_next_item(&j));
    assert_false(js_next_key(&j, &key));
    assert_int_equal(js_finish(&j), 0);
}

static void the_first_mistake_sticks_and_is_explained(void **state)
{
    (void)state;
    struct js j = js_read(SPAN("[1, x, \"\\u0000\"]"));
    unsigned items = 0;
    js_enter_array(&j);
    while (js_next_item(&j)) {
        js_skip(&j);
        items++;
    }
    assert_int_equal(items, 2);
    assert_int_equal(js_offset(&j), 4);
    assert_string_equal(j.why, "a value was expected");
    js_fail(&j, QE_BAD_PARAM, "later");
    assert_int_equal(js_finish(&j), QE_BAD_JSON);
    assert_int_equal(js_peek(&j), JS_NONE);
    assert_null(js_skip(&j).ptr);
}

static void a_caller_can_object_and_unread_text_is_a_mistake(void **state)
{
    (void)state;
    struct js j = js_read(SPAN("[]"));
    js_skip(&j);
    js_fail(&j, QE_BAD_PARAM, "no items");
    assert_int_equal(js_finish(&j), QE_BAD_PARAM);

    j = js_read(SPAN("[1,2]"));
    js_enter_array(&j);
    assert_true(js_next_item(&j));
    assert_int_equal(js_finish(&j), QE_BAD_JSON);
    j = js_read(SPAN("[1"));
    js_enter_array(&j);
    assert_true(js_next_item(&j));
    js_skip(&j);
    assert_int_equal(js_finish(&j), QE_BAD_JSON);
    j = js_read(SPAN("{}"));
    js_enter_array(&j);
    assert_int_equal(js_finish(&j), QE_BAD_JSON);
    j = js_read(SPAN_NONE);
    assert_int_equal(js_finish(&j), QE_BAD_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_json_is_accepted),
        cmocka_unit_test(invalid_json_is_refused),
        cmocka_unit_test(text_that_only_jsonb_refuses_is_refused_too),
        cmocka_unit_test(strings_must_be_utf8_at_every_place),
        cmocka_unit_test(every_byte_value_is_judged_the_same_at_every_place),
        cmocka_unit_test(nesting_ends_at_256),
        cmocka_unit_test(the_cursor_walks_and_gives_raw_spans),
        cmocka_unit_test(the_first_mistake_sticks_and_is_explained),
        cmocka_unit_test(a_caller_can_object_and_unread_text_is_a_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
