// Tests of the bearer token.
#include "token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void write_file(const char *path, const char *text)
{
    char fresh[64];

    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *f = fopen(fresh, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(rename(fresh, path), 0);
}

static void a_given_token_is_trimmed(void **state)
{
    (void)state;
    struct token t;
    struct queen_error err;

    assert_int_equal(token_init(&t, " abc\n", NULL, &err), 0);
    assert_true(span_eq(token_now(&t), SPAN("abc")));
    token_deinit(&t);
    assert_int_equal(token_init(&t, NULL, NULL, &err), 0);
    assert_null(token_now(&t).ptr);
    token_deinit(&t);
}

static void a_file_is_read_again_when_it_changes(void **state)
{
    (void)state;
    char path[] = "/tmp/queen-token-XXXXXX";
    struct token t;
    struct queen_error err;

    close(mkstemp(path));
    write_file(path, "first\n");
    assert_int_equal(token_init(&t, NULL, path, &err), 0);
    assert_true(span_eq(token_now(&t), SPAN("first")));
    write_file(path, "second one is bad");
    assert_true(span_eq(token_now(&t), SPAN("first")));
    write_file(path, "third");
    assert_true(span_eq(token_now(&t), SPAN("third")));
    unlink(path);
    assert_true(span_eq(token_now(&t), SPAN("third")));
    token_deinit(&t);
}

// A part of a token is not a token.
static void a_file_that_is_too_large_is_refused(void **state)
{
    (void)state;
    char path[] = "/tmp/queen-token-XXXXXX", *text = calloc(1, (64 << 10) + 2);
    struct token t;
    struct queen_error err;

    memset(text, 'a', (64 << 10) + 1);
    close(mkstemp(path));
    write_file(path, text);
    assert_int_equal(token_init(&t, NULL, path, &err), QUEEN_E_ARGUMENT);
    unlink(path);
    free(text);
}

static void bad_tokens_are_refused(void **state)
{
    (void)state;
    struct token t;
    struct queen_error err;

    assert_int_equal(token_init(&t, "a\r\nX: y", NULL, &err), QUEEN_E_ARGUMENT);
    assert_int_equal(token_init(&t, "", NULL, &err), QUEEN_E_ARGUMENT);
    assert_int_equal(token_init(&t, "a", "b", &err), QUEEN_E_ARGUMENT);
    assert_int_equal(token_init(&t, NULL, "/nowhere/token", &err), QUEEN_E_ARGUMENT);
    assert_non_null(strstr(err.text, "/nowhere/token"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_given_token_is_trimmed),
        cmocka_unit_test(a_file_is_read_again_when_it_changes),
        cmocka_unit_test(a_file_that_is_too_large_is_refused),
        cmocka_unit_test(bad_tokens_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
