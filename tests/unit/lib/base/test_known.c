// known.c: a name is known, ignored or refused, and the refusal helps.
#include "base/known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attrs.h"

static const char *const texts[] = {"queue", "timezone", "delaySeconds", "to", NULL};
static const struct known_names known = {.texts = texts};

static int check(const char *name, enum known_rule rule, struct fault *f)
{
    return known_check(span_of(name), &known, rule, "member", f);
}

static void near_names_are_one_edit_away(void **state)
{
    static const struct {
        const char *a, *b;
        bool near_;
    } cases[] = {
        {"timeZone", "timezone", true},
        {"TIMEZONE", "timezone", true},
        {"delaySecond", "delaySeconds", true},
        {"dlaySeconds", "delaySeconds", true},
        {"delaySecondss", "delaySeconds", true},
        {"delaySeconbs", "delaySeconds", true},
        {"qeueu", "queue", false},
        {"queeu", "queue", true},
        {"uqeue", "queue", true},
        {"ueueq", "queue", false},
        {"xqueue", "queue", true},
        {"que", "queue", false},
        {"time_zone", "timezone", true},
        {"t", "to", false},
        {"too", "to", false},
        {"", "queue", false},
        {"filtre", "filter", true},
        {"namespace", "task", false},
    };
    (void)state;
    for (unsigned i = 0; i < countof(cases); i++)
        if (known_is_near(span_of(cases[i].a), span_of(cases[i].b)) != cases[i].near_)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
}

static void known_names_pass(void **state)
{
    struct fault f;
    (void)state;
    assert_int_equal(check("queue", KNOWN_ONLY, &f), 0);
    assert_int_equal(check("to", KNOWN_OR_FAR, &f), 0);
}

static void names_that_differ_much_are_ignored_as_in_the_contract(void **state)
{
    struct fault f;
    (void)state;
    assert_int_equal(check("bufferMs", KNOWN_OR_FAR, &f), 0);
    assert_int_equal(check("delaySecond", KNOWN_OR_FAR, &f), QE_BAD_PARAM);
    assert_string_equal(f.text,
                        "unknown member \"delaySecond\"; did you mean \"delaySeconds\"?");
}

static void a_refusal_names_the_nearest_or_all(void **state)
{
    struct fault f;
    (void)state;
    assert_int_equal(check("delay_second", KNOWN_ONLY, &f), QE_BAD_PARAM);
    assert_string_equal(f.text,
                        "unknown member \"delay_second\"; did you mean \"delaySeconds\"?");
    assert_int_equal(check("bufferMs", KNOWN_ONLY, &f), QE_BAD_PARAM);
    assert_string_equal(f.text, "unknown member \"bufferMs\"; known: queue, timezone, "
                                "delaySeconds, to");
    const struct known_names none = {0};
    assert_int_equal(known_check(SPAN("x"), &none, KNOWN_ONLY, "query parameter", &f),
                     QE_BAD_PARAM);
    assert_string_equal(f.text, "unknown query parameter \"x\": none is taken here");
}

static void long_and_broken_names_are_cut(void **state)
{
    char name[5000];
    struct fault f;
    (void)state;
    memset(name, 'q', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    name[3] = (char)0xff;
    assert_int_equal(check(name, KNOWN_ONLY, &f), QE_BAD_PARAM);
    assert_true(strlen(f.text) < 200);
    assert_non_null(strstr(f.text, "\"qqq?qqq"));
    assert_int_equal(check(name, KNOWN_OR_FAR, &f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_names_are_one_edit_away),
        cmocka_unit_test(known_names_pass),
        cmocka_unit_test(names_that_differ_much_are_ignored_as_in_the_contract),
        cmocka_unit_test(a_refusal_names_the_nearest_or_all),
        cmocka_unit_test(long_and_broken_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
