// The grammar of rules, the matching of names, and what rules permit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "auth/rule_book.h"
#include "auth/rules.h"
#include "base/buf.h"
#include "base/map.h"

static struct access_rules *parse(const char *text)
{
    struct access_rules *r;
    struct fault f;

    if (access_rules_parse(span_of(text), &r, &f) != 0)
        fail_msg("\"%s\": %s", text, f.text);
    return r;
}

static bool permits(const char *rules, unsigned op, const char *queue, const char *group)
{
    struct access_rules *r = parse(rules);
    bool yes = access_rules_permit(r, op, span_of(queue), span_of(group));

    access_rules_unref(r);
    return yes;
}

static void names_match_by_stars(void **state)
{
    (void)state;
    assert_true(permits("push:orders", MAY_PUSH, "orders", NULL));
    assert_false(permits("push:orders", MAY_PUSH, "orders2", NULL));
    assert_false(permits("push:orders", MAY_PUSH, "Orders", NULL));
    assert_false(permits("push:orders", MAY_PUSH, "", NULL));
    assert_true(permits("push:orders.*", MAY_PUSH, "orders.", NULL));
    assert_true(permits("push:orders.*", MAY_PUSH, "orders.eu.de", NULL));
    assert_false(permits("push:orders.*", MAY_PUSH, "orders", NULL));
    assert_true(permits("push:*", MAY_PUSH, "", NULL));
    assert_true(permits("push:*.eu", MAY_PUSH, "orders.eu", NULL));
    assert_false(permits("push:*.eu", MAY_PUSH, "orders.eu.x", NULL));
    assert_true(permits("push:a*b*c", MAY_PUSH, "aXbYbZc", NULL));
    assert_true(permits("push:a*b*c", MAY_PUSH, "abc", NULL));
    assert_false(permits("push:a*b*c", MAY_PUSH, "ac", NULL));
    assert_false(permits("push:ab*ba", MAY_PUSH, "aba", NULL)); // the ends do not overlap
    assert_true(permits("push:**", MAY_PUSH, "x", NULL));
    assert_true(permits("push:a**b", MAY_PUSH, "ab", NULL));
}

static void special_characters_are_escaped(void **state)
{
    (void)state;
    assert_true(permits("push:a%2Ab", MAY_PUSH, "a*b", NULL));
    assert_false(permits("push:a%2Ab", MAY_PUSH, "aXb", NULL));
    assert_true(permits("push:a%2cb,pop:x", MAY_PUSH, "a,b", NULL));
    assert_true(permits("push:100%25", MAY_PUSH, "100%", NULL));
    assert_true(permits("push:a_b\\c[x]?.", MAY_PUSH, "a_b\\c[x]?.", NULL));
    assert_false(permits("push:a_b", MAY_PUSH, "aXb", NULL));
    assert_false(permits("push:a?b", MAY_PUSH, "aXb", NULL));
    assert_true(permits("push:caf\xc3\xa9*", MAY_PUSH, "caf\xc3\xa9.1", NULL));
}

static void conditions_must_all_hold(void **state)
{
    const char *r = "pop:queue=orders.*;group=billing-*,read:namespace=shop;task=eu*";

    (void)state;
    assert_true(permits(r, MAY_POP, "orders.1", "billing-1"));
    assert_false(permits(r, MAY_POP, "orders.1", "shipping"));
    assert_false(permits(r, MAY_POP, "other", "billing-1"));
    assert_true(permits(r, MAY_POP, "orders.1", NULL)); // no group is concerned
    assert_true(permits(r, MAY_READ, "shop.eu1.x", NULL));
    assert_false(permits(r, MAY_READ, "shop", NULL));
    assert_false(permits(r, MAY_READ, "shop.us", NULL));
    assert_false(permits(r, MAY_READ, "shopping.eu", NULL));
    assert_true(permits("read:namespace=shop", MAY_READ, "shop", NULL));
    assert_false(permits("read:namespace=shop", MAY_PUSH, "shop", NULL));
}

static void operations(void **state)
{
    (void)state;
    assert_true(permits("push+pop:x", MAY_POP, "x", NULL));
    assert_false(permits("push+pop:x", MAY_READ, "x", NULL));
    assert_true(permits("*:x", MAY_DELETE, "x", NULL));
    assert_false(permits("*:x", MAY_ADMIN, "x", NULL));
    assert_true(permits("admin", MAY_ADMIN, "x", NULL));
    assert_true(permits("admin", MAY_PUSH, "x", NULL));
    assert_false(permits("configure:x", MAY_CONFIGURE_STORAGE, "x", NULL));
    assert_false(permits("read:x", MAY_READ_ENCRYPTED, "x", NULL));

    struct access_rules *r = parse("push:*,read:a*,pop:queue=*;group=g");
    assert_true(access_rules_permit_all(r, MAY_PUSH));
    assert_false(access_rules_permit_all(r, MAY_READ));
    assert_false(access_rules_permit_all(r, MAY_POP));
    assert_true(access_rules_permit_some(r, MAY_READ));
    assert_false(access_rules_permit_some(r, MAY_DELETE));
    access_rules_unref(r);
}

static void tenants_are_no_queues(void **state)
{
    struct access_rules *r = parse("read+push:tenant=acme-*,pop:q");

    (void)state;
    assert_true(access_rules_permit_tenant(r, MAY_READ, SPAN("acme-1")));
    assert_false(access_rules_permit_tenant(r, MAY_READ, SPAN("other")));
    assert_false(access_rules_permit_tenant(r, MAY_CONFIGURE, SPAN("acme-1")));
    assert_false(access_rules_permit_tenant(r, MAY_POP, SPAN("q")));
    assert_false(access_rules_permit(r, MAY_READ, SPAN("acme-1"), SPAN_NONE));
    assert_false(access_rules_permit_all(r, MAY_PUSH));
    assert_false(access_rules_permit_some(r, MAY_READ));
    access_rules_unref(r);
}

static void bad_rules_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "push",
        "push:",
        ":x",
        "pull:x",
        "push:x,",
        ",push:x",
        "push:x:y",
        "PUSH:x",
        "push+:x",
        "+push:x",
        "push:queue=",
        "push:color=x",
        "push:a%2",
        "push:a%zz",
        "push:a%00",
        "push:a=b",
        "push:x;queue=y",
        "push:x;;group=y",
        "admin:x",
        "push:a+b",
        "push:\xc3*",
        "push:a%ff",
        "push:group=a;group=b",
        "push:a;tenant=b",
    };
    struct access_rules *r;
    struct fault f;

    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (access_rules_parse(span_of(bad[i]), &r, &f) == 0)
            fail_msg("\"%s\" was accepted", bad[i]);
}

// A backtracking matcher needs more than the age of the universe.
static void matching_takes_linear_time(void **state)
{
    char rule[4096] = "push:", name[256];
    size_t n = 5;

    (void)state;
    for (unsigned i = 0; i < 500; i++)
        n += (size_t)snprintf(rule + n, sizeof rule - n, "*a");
    snprintf(rule + n, sizeof rule - n, "*b");
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(permits(rule, MAY_PUSH, name, NULL));
}

static void patterns_for_sql(void **state)
{
    struct access_rules *r = parse("read:a_b%25*,push:x,read:namespace=shop");
    struct buf out = {0};

    (void)state;
    access_rules_put_patterns(r, MAY_READ, &out);
    buf_putc(&out, '\0');
    assert_string_equal(out.ptr, "[[\"a\\\\_b\\\\%%\",\"%\",\"%\",\"%\"],"
                                 "[\"%\",\"shop\",\"%\",\"%\"]]");
    buf_free(&out);
    access_rules_unref(r);
}

static void a_file_of_rules(void **state)
{
    char path[] = "/tmp/queen-test-rules-XXXXXX";
    int fd = mkstemp(path);
    struct rule_book *b;
    struct fault f;

    (void)state;
    dprintf(fd, "# comment\n\nci  push:orders.*\r\nkey:x\tread:*\nci pop:a\n");
    close(fd);
    assert_int_equal(rule_book_read(path, &b, &f), 0);
    assert_true(span_eq(rule_book_find(b, SPAN("ci")), SPAN("push:orders.*,pop:a")));
    assert_true(span_eq(rule_book_find(b, SPAN("key:x")), SPAN("read:*")));
    assert_null(rule_book_find(b, SPAN("nobody")).ptr);
    rule_book_unref(b);

    FILE *file = fopen(path, "w");
    fputs("ci push:a\nother nonsense\n", file);
    fclose(file);
    assert_int_equal(rule_book_read(path, &b, &f), QE_CONF);
    assert_non_null(strstr(f.text, "line 2"));
    unlink(path);
    assert_int_equal(rule_book_read(path, &b, &f), QE_CONF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_by_stars),
        cmocka_unit_test(special_characters_are_escaped),
        cmocka_unit_test(conditions_must_all_hold),
        cmocka_unit_test(operations),
        cmocka_unit_test(tenants_are_no_queues),
        cmocka_unit_test(bad_rules_are_refused),
        cmocka_unit_test(matching_takes_linear_time),
        cmocka_unit_test(patterns_for_sql),
        cmocka_unit_test(a_file_of_rules),
    };

    map_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
