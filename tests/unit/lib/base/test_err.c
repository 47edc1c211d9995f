// err.c: every code has its name, sentence and status; faults read well.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <uv.h>

#include "base/err.h"

static void our_codes_carry_name_sentence_and_status(void **state)
{
    (void)state;
    assert_string_equal(err_name(QE_BAD_JSON), "bad_json");
    assert_string_equal(err_text(QE_QUEUE_FULL), "the queue is full");
    assert_int_equal(err_http_status(QE_QUEUE_FULL), 429);
    assert_int_equal(err_http_status(0), 200);
}

static void codes_of_libuv_keep_their_names_and_mean_503(void **state)
{
    (void)state;
    assert_string_equal(err_name(UV_ECONNRESET), "ECONNRESET");
    assert_string_equal(err_text(UV_ECONNRESET), uv_strerror(UV_ECONNRESET));
    assert_int_equal(err_http_status(UV_ECANCELED), 503);
}

static void an_undefined_code_is_a_500(void **state)
{
    (void)state;
    assert_int_equal(err_http_status(-31999), 500);
    assert_string_equal(err_name(-31999), "unknown");
}

static void a_fault_returns_its_code_and_takes_context_in_front(void **state)
{
    (void)state;
    struct fault f;
    assert_int_equal(fault_set(&f, QE_CONF, "PORT is %d", 0), QE_CONF);
    fault_prefix(&f, "start: ");
    assert_string_equal(f.text, "start: PORT is 0");
    assert_int_equal(fault_set(NULL, QE_CONF, "nobody listens"), QE_CONF);
}

static void a_long_fault_is_cut_not_overrun(void **state)
{
    (void)state;
    struct fault f;
    fault_set(&f, QE_CONF, "%0500d", 1);
    fault_prefix(&f, "%0500d", 2);
    assert_int_equal(strlen(f.text), sizeof f.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_codes_carry_name_sentence_and_status),
        cmocka_unit_test(codes_of_libuv_keep_their_names_and_mean_503),
        cmocka_unit_test(an_undefined_code_is_a_500),
        cmocka_unit_test(a_fault_returns_its_code_and_takes_context_in_front),
        cmocka_unit_test(a_long_fault_is_cut_not_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
