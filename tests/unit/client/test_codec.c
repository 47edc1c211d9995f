// Tests of what requests are made of.
#include "codec.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"
#include "fail.h"

static void expect_item(const struct queen_message *m, const char *json)
{
    struct buf out = {0};
    struct queen_error err;

    assert_int_equal(put_message(&out, m, 0, &err), 0);
    buf_putc(&out, '\0');
    assert_string_equal(out.ptr, json);
    buf_free(&out);
}

static void a_message_is_written_with_the_fields_that_it_has(void **state)
{
    (void)state;
    expect_item(&(struct queen_message){.queue = "q", .transaction_id = "t"},
                "{\"queue\":\"q\",\"transactionId\":\"t\",\"payload\":null}");
    expect_item(&(struct queen_message){.queue = "a\"b",
                                        .partition = "p",
                                        .partition_key = "k",
                                        .concurrency_key = "c",
                                        .priority = 7,
                                        .transaction_id = "t",
                                        .trace_id = "u",
                                        .traceparent = "w",
                                        .payload = "{ \"a\" : 1.10 } trailing",
                                        .payload_len = 14},
                "{\"queue\":\"a\\\"b\",\"partition\":\"p\",\"partitionKey\":\"k\","
                "\"concurrencyKey\":\"c\",\"priority\":7,"
                "\"transactionId\":\"t\",\"traceId\":\"u\",\"traceparent\":\"w\","
                "\"payload\":{ \"a\" : 1.10 }}");
}

static void a_message_without_transaction_id_gets_one(void **state)
{
    (void)state;
    struct buf a = {0}, b = {0};
    struct queen_message m = {.queue = "q"};
    struct queen_error err;

    assert_int_equal(put_message(&a, &m, 0, &err), 0);
    assert_int_equal(put_message(&b, &m, 0, &err), 0);
    assert_int_equal(a.len, b.len);
    assert_int_not_equal(memcmp(a.ptr, b.ptr, a.len), 0);
    const char *id = memmem(a.ptr, a.len, "\"transactionId\":\"", 17);
    assert_non_null(id);
    assert_int_equal(id[17 + 14], '7'); // version
    buf_free(&a);
    buf_free(&b);
}

// A program may have set the locale of its user, in which a comma is the decimal point.
static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    struct queen_message m = {.queue = "q", .transaction_id = "t", .delay_ms = 1500};
    const char *json = "{\"queue\":\"q\",\"transactionId\":\"t\",\"delaySeconds\":1.500,"
                       "\"payload\":null}";
    char folder[] = "/tmp/queen-locale-XXXXXX", command[200];

    expect_item(&m, json);
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             folder, folder);
    bool made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    made = made && setlocale(LC_NUMERIC, "de_DE.UTF-8");
    if (made)
        expect_item(&m, json);
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_true(made); // tools/deps.sh test installs the package locales
}

static void an_error_text_is_cut_between_characters(void **state)
{
    (void)state;
    struct queen_error err;
    char text[401];

    for (int i = 0; i < 400; i += 2)
        memcpy(text + i, "\xd0\xb6", 2);
    text[400] = '\0';
    fail_set(&err, QUEEN_E_SERVER, "x%s", text);
    assert_true(str_is_utf8(span_of(err.text)));
    assert_int_equal(strlen(err.text), 239);
    fail_set(&err, QUEEN_E_SERVER, "%s", text);
    assert_true(str_is_utf8(span_of(err.text)));
    assert_int_equal(strlen(err.text), 238);
}

// Payloads are sent as they are: one that closes its object could add messages of its own.
static void a_payload_that_is_not_one_value_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "1},{\"queue\":\"x\"", "", " ", "{", "a", "1 2", "\"\x01\""};
    struct buf out = {0};
    struct queen_error err;

    for (size_t i = 0; i < countof(bad); i++) {
        struct queen_message m = {.queue = "q", .payload = bad[i]};
        assert_int_equal(put_message(&out, &m, 7, &err), QUEEN_E_ARGUMENT);
        assert_non_null(strstr(err.text, "message 7"));
    }
    assert_int_equal(put_message(&out, &(struct queen_message){0}, 0, &err), QUEEN_E_ARGUMENT);
    buf_free(&out);
}

static void parts_of_addresses_are_escaped(void **state)
{
    (void)state;
    char *text = queen_escape("a b/c?&=%ü-._~");
    struct buf out = {0};

    assert_string_equal(text, "a%20b%2Fc%3F%26%3D%25%C3%BC-._~");
    free(text);
    buf_put_lit(&out, "/p");
    put_query(&out, "x", "1&2");
    put_query(&out, "none", NULL);
    put_query_u64(&out, "y", 3);
    assert_true(span_eq(buf_span(&out), SPAN("/p?x=1%262&y=3")));
    buf_free(&out);
}

static void a_status_becomes_an_error_with_the_text_of_the_server(void **state)
{
    (void)state;
    static const struct {
        int status, code;
        bool retryable;
    } cases[] = {
        {400, QUEEN_E_REFUSED, false},  {401, QUEEN_E_AUTH, false},
        {403, QUEEN_E_AUTH, false},     {404, QUEEN_E_NOT_FOUND, false},
        {409, QUEEN_E_CONFLICT, false}, {429, QUEEN_E_FULL, true},
        {500, QUEEN_E_SERVER, true},    {503, QUEEN_E_SERVER, true},
    };
    struct queen_error err;

    for (size_t i = 0; i < countof(cases); i++) {
        assert_int_equal(
            fail_of_status(&err, cases[i].status, SPAN("{\"error\":\"b\\u00e4d\"}")),
            cases[i].code);
        assert_int_equal(err.retryable, cases[i].retryable);
        assert_int_equal(err.http_status, cases[i].status);
        assert_string_equal(err.text, "b\xc3\xa4"
                                      "d");
    }
    assert_int_equal(fail_of_status(&err, 204, SPAN_NONE), 0);
    assert_int_equal(fail_of_status(&err, 502, SPAN("<html>")), QUEEN_E_SERVER);
    assert_string_equal(err.text, "the server answered with status 502");
    assert_string_equal(queen_code_name(QUEEN_E_MEMORY), "memory");
    assert_string_equal(queen_code_name(-99), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_written_with_the_fields_that_it_has),
        cmocka_unit_test(a_message_without_transaction_id_gets_one),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(an_error_text_is_cut_between_characters),
        cmocka_unit_test(a_payload_that_is_not_one_value_is_refused),
        cmocka_unit_test(parts_of_addresses_are_escaped),
        cmocka_unit_test(a_status_becomes_an_error_with_the_text_of_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
