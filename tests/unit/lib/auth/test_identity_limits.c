// Limits of an identity, with a clock of the test.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "auth/identity_limits.h"

enum { SECOND = 1000 * 1000 };

static void texts(void **state)
{
    static const char *const bad[] = {"requests",
                                      "requests=",
                                      "requests=0",
                                      "requests=-1",
                                      "requests=1.5",
                                      "pushes=1",
                                      "requests=1,",
                                      "=1",
                                      "requests=2000000000",
                                      "bytes=1,bytes=2",
                                      ",",
                                      "requests=1;bytes=2",
                                      "connections=1 000",
                                      "requests==1",
                                      "stored=1000000000000001",
                                      "stored=1,stored=1"};
    struct limits l;
    struct fault f;

    (void)state;
    assert_int_equal(
        limits_parse(SPAN("requests=100, bytes=1000000,connections=5,stored=5000000000"), &l,
                     &f),
        0);
    assert_int_equal(l.requests, 100);
    assert_int_equal(l.bytes, 1000000);
    assert_int_equal(l.connections, 5);
    assert_int_equal(l.stored, 5000000000);
    assert_int_equal(limits_parse(SPAN(""), &l, &f), 0);
    assert_true(limits_are_none(&l));
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_not_equal(limits_parse(span_of(bad[i]), &l, &f), 0);
}

static void requests_per_second(void **state)
{
    struct limit_table *t = limits_new();
    struct limit_state *s = limits_find(t, SPAN("a"), 0);
    struct limits l = {.requests = 10};
    uint64_t now = 1000 * (uint64_t)SECOND;
    unsigned wait = 0, n = 0;

    (void)state;
    while (n < 100 && limits_admit(s, &l, now, &wait) == LIMIT_NONE)
        n++;
    assert_int_equal(n, 10);
    assert_int_equal(wait, 1);
    assert_int_equal(limits_admit(s, &l, now + SECOND / 10 - 1, &wait), LIMIT_REQUESTS);
    assert_int_equal(limits_admit(s, &l, now + SECOND / 10 + 1, &wait), LIMIT_NONE);
    // Ten seconds at 100 attempts a second: ten are admitted in each.
    n = 0;
    for (unsigned i = 0; i < 1000; i++)
        n += limits_admit(s, &l, now + SECOND + i * (SECOND / 100), &wait) == LIMIT_NONE;
    assert_in_range(n, 105, 111);
    limits_drop(s);
    limits_free(t);
}

static void bytes_are_a_debt(void **state)
{
    struct limit_table *t = limits_new();
    struct limit_state *s = limits_find(t, SPAN("a"), 0);
    struct limits l = {.bytes = 1000};
    uint64_t now = 1000 * (uint64_t)SECOND;
    unsigned wait = 0;

    (void)state;
    assert_int_equal(limits_admit(s, &l, now, &wait), LIMIT_NONE);
    limits_spend(s, &l, 10000, now);
    assert_int_equal(limits_admit(s, &l, now, &wait), LIMIT_BYTES);
    assert_in_range(wait, 9, 10);
    assert_int_equal(limits_look(s, &l, now + 8 * (uint64_t)SECOND, &wait), LIMIT_BYTES);
    assert_int_equal(limits_admit(s, &l, now + 10 * (uint64_t)SECOND, &wait), LIMIT_NONE);
    limits_spend(s, &l, UINT64_MAX, now);
    assert_int_equal(limits_admit(s, &l, now, &wait), LIMIT_BYTES);
    assert_in_range(wait, 590, 600);
    assert_int_equal(limits_admit(s, &l, now + 601 * (uint64_t)SECOND, &wait), LIMIT_NONE);
    limits_drop(s);
    limits_free(t);
}

static void subjects_do_not_disturb_each_other(void **state)
{
    struct limit_table *t = limits_new();
    struct limit_state *a = limits_find(t, SPAN("a"), 0), *b = limits_find(t, SPAN("b"), 0);
    struct limits l = {.requests = 1};
    uint64_t now = 1000 * (uint64_t)SECOND;
    unsigned wait;

    (void)state;
    assert_int_equal(limits_admit(a, &l, now, &wait), LIMIT_NONE);
    assert_int_equal(limits_admit(a, &l, now, &wait), LIMIT_REQUESTS);
    assert_int_equal(limits_admit(b, &l, now, &wait), LIMIT_NONE);
    // A second token of the same subject shares its state.
    struct limit_state *again = limits_find(t, SPAN("a"), 0);
    assert_ptr_equal(again, a);
    limits_drop(again);
    limits_drop(a);
    limits_drop(b);
    limits_free(t);
}

static void an_empty_bucket_is_not_forgotten(void **state)
{
    struct limit_table *t = limits_new();
    struct limits l = {.requests = 1};
    uint64_t now = 1000 * (uint64_t)SECOND;
    unsigned wait;
    char name[16];

    (void)state;
    struct limit_state *s = limits_find(t, SPAN("greedy"), now);
    assert_int_equal(limits_admit(s, &l, now, &wait), LIMIT_NONE);
    limits_drop(s);
    for (unsigned i = 0; i < 30000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        limits_drop(limits_find(t, span_of(name), now));
    }
    s = limits_find(t, SPAN("greedy"), now);
    assert_int_equal(limits_admit(s, &l, now, &wait), LIMIT_REQUESTS);
    limits_drop(s);
    limits_free(t);
}

static void count_subject(void *ctx, span subject)
{
    unsigned *n = ctx;

    assert_true(span_eq(subject, SPAN("a")));
    (*n)++;
}

static void stored_bytes(void **state)
{
    struct limit_table *t = limits_new();
    struct limit_state *a = limits_find(t, SPAN("a"), 0), *b = limits_find(t, SPAN("b"), 0);
    struct limits l = {.stored = 1000}, none = {0};
    unsigned n = 0;

    (void)state;
    assert_false(limits_stored_any(t));
    assert_false(limits_stored_add(t, SPAN("a"), 5000));
    limits_stored_count(a);
    assert_true(limits_stored_any(t));
    limits_stored_each(t, count_subject, &n);
    assert_int_equal(n, 1);
    assert_false(limits_stored_add(t, SPAN("b"), 5000));
    assert_false(limits_stored_add(t, SPAN("unknown"), 5000));
    // What is not reported yet counts, and moves to the sum of the database.
    assert_true(limits_stored_add(t, SPAN("a"), 999));
    assert_false(limits_stored_is_full(a, &l));
    assert_true(limits_stored_add(t, SPAN("a"), 1));
    assert_true(limits_stored_is_full(a, &l));
    assert_false(limits_stored_is_full(a, &none));
    assert_false(limits_stored_is_full(b, &l));
    limits_stored_reported(t, SPAN("a"), 1000);
    assert_true(limits_stored_is_full(a, &l));
    assert_true(limits_stored_add(t, SPAN("a"), 10));
    limits_stored_set(t, SPAN("a"), 980);
    assert_false(limits_stored_is_full(a, &l));
    limits_stored_set(t, SPAN("a"), 990);
    assert_true(limits_stored_is_full(a, &l));
    limits_drop(a);
    limits_drop(b);
    limits_free(t);
}

struct race {
    struct limit_state *s;
    unsigned admitted;
};

static void *take_all(void *arg)
{
    struct race *r = arg;
    struct limits l = {.requests = 1000};
    unsigned wait;

    for (unsigned i = 0; i < 5000; i++)
        r->admitted += limits_admit(r->s, &l, 1000 * (uint64_t)SECOND, &wait) == LIMIT_NONE;
    return NULL;
}

static void threads_share_a_bucket(void **state)
{
    struct limit_table *t = limits_new();
    struct race race[4] = {0};
    pthread_t thread[4];
    unsigned n = 0;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        race[i].s = limits_find(t, SPAN("a"), 0);
        assert_int_equal(pthread_create(&thread[i], NULL, take_all, &race[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        n += race[i].admitted;
        limits_drop(race[i].s);
    }
    assert_in_range(n, 1000, 1001);
    limits_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(requests_per_second),
        cmocka_unit_test(stored_bytes),
        cmocka_unit_test(bytes_are_a_debt),
        cmocka_unit_test(subjects_do_not_disturb_each_other),
        cmocka_unit_test(an_empty_bucket_is_not_forgotten),
        cmocka_unit_test(threads_share_a_bucket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
