// Tests of addresses of servers.
#include "address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(const char *url, bool tls, const char *host, const char *port,
                   const char *authority, const char *prefix)
{
    struct address a;
    struct queen_error err;

    assert_int_equal(address_parse(&a, span_of(url), &err), 0);
    assert_int_equal(a.tls, tls);
    assert_string_equal(a.host, host);
    assert_string_equal(a.port, port);
    assert_string_equal(a.authority, authority);
    assert_string_equal(a.prefix, prefix);
    address_deinit(&a);
}

static void the_forms_of_an_address_are_understood(void **state)
{
    (void)state;
    expect("http://localhost:7001", false, "localhost", "7001", "localhost:7001", "");
    expect("http://queen", false, "queen", "6632", "queen", "");
    expect("https://queen.example/", true, "queen.example", "443", "queen.example", "");
    expect("https://h:1/base/path//", true, "h", "1", "h:1", "/base/path");
    expect("http://[::1]:80", false, "::1", "80", "[::1]:80", "");
    expect("http://[fe80::2]", false, "fe80::2", "6632", "[fe80::2]", "");
}

static void an_invalid_address_is_refused_with_its_text(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           "queen:6632",     "ftp://a",           "http://",   "http://:1",
        "http://a:0", "http://a:65536", "http://a:x",        "http://[a", "http://a/?q=1",
        "http://a b", "http://[::1]80", "http://a:1\r\nX: y"};
    struct address a;
    struct queen_error err;

    for (size_t i = 0; i < countof(bad); i++) {
        assert_int_equal(address_parse(&a, span_of(bad[i]), &err), QUEEN_E_ARGUMENT);
        assert_non_null(strstr(err.text, bad[i]));
        assert_false(err.retryable);
    }
}

static void a_password_is_refused_and_not_shown(void **state)
{
    (void)state;
    struct address a;
    struct queen_error err;

    assert_int_equal(address_parse(&a, SPAN("http://user:secret@h"), &err), QUEEN_E_ARGUMENT);
    assert_non_null(strstr(err.text, "user or password"));
    assert_null(strstr(err.text, "secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forms_of_an_address_are_understood),
        cmocka_unit_test(an_invalid_address_is_refused_with_its_text),
        cmocka_unit_test(a_password_is_refused_and_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
