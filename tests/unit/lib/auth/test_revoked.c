// revoked.c: the list of revoked tokens, and how a change of its file takes effect.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "auth/jwt.h"
#include "auth/revoked.h"

static char path[] = "/tmp/queen-revoked-XXXXXX";

static int setup(void **state)
{
    (void)state;
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    return fd >= 0 ? close(fd) : -1;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void put(const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    fclose(f);
}
#define PUT(text) put(text, sizeof text - 1)

static void ids_are_found_and_others_are_not(void **state)
{
    (void)state;
    struct revoked *r;
    struct fault f;

    PUT("# leaked on Monday\nzeta\n  b7 # of ci\r\n\n\nalpha\nalpha2\n#nothing\nlast");
    assert_int_equal(revoked_new(&r, path, &f), 0);
    static const char *const in[] = {"zeta", "b7", "alpha", "alpha2", "last"};
    static const char *const out[] = {"",         "alph", "alpha3", "b",   "nothing",
                                      "#nothing", " ",    "of ci",  "ZETA"};
    for (size_t i = 0; i < countof(in); i++)
        assert_true(revoked_has(r, span_of(in[i])));
    for (size_t i = 0; i < countof(out); i++)
        assert_false(revoked_has(r, span_of(out[i])));
    revoked_free(r);
}

static void any_bytes_are_accepted(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "#", "\n\n\n", "\xff\xfe", "a#b#c\n"};
    struct revoked *r;
    struct fault f;

    for (size_t i = 0; i < countof(texts); i++) {
        put(texts[i], strlen(texts[i]));
        assert_int_equal(revoked_new(&r, path, &f), 0);
        (void)revoked_has(r, SPAN("x"));
        revoked_free(r);
    }
    PUT("a\0b\nc\n");
    assert_int_equal(revoked_new(&r, path, &f), 0);
    assert_true(revoked_has(r, (span){"a\0b", 3}));
    assert_false(revoked_has(r, SPAN("a")));
    revoked_free(r);
}

static void a_changed_file_takes_effect(void **state)
{
    (void)state;
    struct revoked *r;
    struct fault f;

    PUT("one\n");
    assert_int_equal(revoked_new(&r, path, &f), 0);
    assert_false(revoked_has(r, SPAN("two")));
    PUT("one\ntwo\n");
    revoked_reload(r);
    assert_true(revoked_has(r, SPAN("two")));
    PUT("three\n");
    while (!revoked_has(r, SPAN("three"))) // without a signal: within a second
        usleep(20000);
    assert_false(revoked_has(r, SPAN("one")));
    revoked_free(r);
}

static void without_its_file_the_last_list_stays_in_force(void **state)
{
    (void)state;
    struct revoked *r;
    struct fault f;

    PUT("one\n");
    assert_int_equal(revoked_new(&r, path, &f), 0);
    unlink(path);
    revoked_reload(r);
    assert_true(revoked_has(r, SPAN("one")));
    mkdir(path, 0700);
    revoked_reload(r);
    assert_true(revoked_has(r, SPAN("one")));
    rmdir(path);
    PUT("two\n");
    revoked_reload(r);
    assert_false(revoked_has(r, SPAN("one")));
    assert_true(revoked_has(r, SPAN("two")));
    revoked_free(r);
}

static void a_file_that_cannot_be_read_prevents_the_start(void **state)
{
    (void)state;
    struct revoked *r;
    struct fault f;

    assert_int_equal(revoked_new(&r, "/no/such/file", &f), QE_CONF);
    assert_non_null(strstr(f.text, "JWT_REVOKED_FILE"));
    assert_int_equal(revoked_new(&r, "/tmp", &f), QE_CONF);
}

static void claims_are_checked_against_the_list(void **state)
{
    (void)state;
    struct jwt_rules rules = {.skew_s = 30};
    struct jwt_claims claims;
    struct arena a;
    struct fault f;

    arena_init(&a);
    PUT("gone\n");
    assert_int_equal(revoked_new(&rules.revoked, path, &f), 0);
    struct jwt t = {.claims = SPAN("{\"jti\":\"here\",\"exp\":5000}")};
    assert_int_equal(jwt_check(&t, &rules, 1000, &a, &claims, &f), 0);
    assert_int_equal(claims.until_s, 1000 + REVOKED_KEEP_S);
    t.claims = SPAN("{\"jti\":\"g\\u006fne\",\"exp\":5000}");
    assert_int_equal(jwt_check(&t, &rules, 1000, &a, &claims, &f), QE_UNAUTHORIZED);
    assert_non_null(strstr(f.text, "revoked"));
    t.claims = SPAN("{\"exp\":5000}");
    assert_int_equal(jwt_check(&t, &rules, 1000, &a, &claims, &f), QE_UNAUTHORIZED);
    t.claims = SPAN("{\"jti\":7}");
    assert_int_equal(jwt_check(&t, &rules, 1000, &a, &claims, &f), QE_UNAUTHORIZED);
    revoked_free(rules.revoked);
    rules.revoked = NULL;
    t.claims = SPAN("{\"jti\":\"gone\",\"exp\":5000}");
    assert_int_equal(jwt_check(&t, &rules, 1000, &a, &claims, &f), 0);
    assert_int_equal(claims.until_s, 5030);
    arena_deinit(&a);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(ids_are_found_and_others_are_not),
        T(any_bytes_are_accepted),
        T(a_changed_file_takes_effect),
        T(without_its_file_the_last_list_stays_in_force),
        T(a_file_that_cannot_be_read_prevents_the_start),
        T(claims_are_checked_against_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
