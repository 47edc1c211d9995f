// template.c: names become values, and the result is JSON whatever they are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audience/template.h"
#include "json/scan.h"

static void assert_put(const char *text, const char *expected)
{
    span values[TEMPLATE_NAMES] = {[NAME_CUSTOMER] = SPAN("c-1"),
                                   [NAME_FIRST_NAME] = SPAN("A \"B\" \\ \n"),
                                   [NAME_EMAIL] = SPAN("{{tenant}}"),
                                   [NAME_TENANT] = SPAN("acme")};
    struct fault why;
    struct buf out = {0};

    assert_int_equal(template_check(span_of(text), &why), 0);
    template_put(&out, span_of(text), values);
    struct js j = js_read(buf_span(&out));
    js_skip(&j);
    assert_int_equal(js_finish(&j), 0);
    buf_putc(&out, '\0');
    assert_string_equal(out.ptr, expected);
    buf_free(&out);
}

static void names_become_values(void **state)
{
    (void)state;
    assert_put("{\"to\":\"{{customer}} of {{tenant}}\",\"n\":{\"m\":{}}}",
               "{\"to\":\"c-1 of acme\",\"n\":{\"m\":{}}}");
}

static void a_value_cannot_leave_its_text(void **state)
{
    (void)state;
    assert_put("[\"{{first_name}}\"]", "[\"A \\\"B\\\" \\\\ \\n\"]");
}

static void a_value_is_no_template(void **state)
{
    (void)state;
    assert_put("\"{{email}}\"", "\"{{tenant}}\"");
}

static void missing_values_are_empty(void **state)
{
    (void)state;
    assert_put("\"<{{phone}}>\"", "\"<>\"");
}

static void braces_that_are_no_name_stay(void **state)
{
    (void)state;
    assert_put("[\"{{\",{\"a\":{\"b\":{}}},1]", "[\"{{\",{\"a\":{\"b\":{}}},1]");
}

static void an_unknown_name_is_refused(void **state)
{
    (void)state;
    struct fault why;

    assert_int_not_equal(template_check(SPAN("\"{{surname}}\""), &why), 0);
    assert_non_null(strstr(why.text, "unknown name {{surname}}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_values),
        cmocka_unit_test(a_value_cannot_leave_its_text),
        cmocka_unit_test(a_value_is_no_template),
        cmocka_unit_test(missing_values_are_empty),
        cmocka_unit_test(braces_that_are_no_name_stay),
        cmocka_unit_test(an_unknown_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
