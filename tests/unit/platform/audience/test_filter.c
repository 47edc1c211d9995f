// filter.c, value.c: accepted filters, and the position in the error of the others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "audience/filter.h"
#include "base/buf.h"

static struct arena arena;
static struct filter *tree;
static struct filter_facts facts;
static struct fault why;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static int read_text(const char *text)
{
    return filter_read(span_of(text), &arena, &filter_default_limits, &tree, &facts, &why);
}

static void assert_wrong(const char *text, const char *sentence)
{
    assert_int_not_equal(read_text(text), 0);
    assert_string_equal(why.text, sentence);
}

static void the_catalogue_is_large_and_consistent(void **state)
{
    (void)state;
    bool has_table[7] = {false};
    static const char *const tables[] = {"customer",        "subscription_account",
                                         "wallet_account",  "package_account",
                                         "transaction_log", "visit_log",
                                         "purchase_log"};

    assert_true(attribute_count >= 65);
    for (size_t i = 0; i < attribute_count; i++) {
        const struct attribute *a = &attribute_catalogue[i];
        assert_ptr_equal(attribute_find(span_of(a->name)), a); // names are unique
        assert_true(a->label[0] != '\0');
        assert_true((a->model == MODEL_NONE) == (a->read == NULL));
        if (a->type == ATTR_BOOL && !attribute_of_customer(a))
            assert_true(a->zero && a->write == NULL);
        else
            assert_non_null(a->write);
        unsigned t = 0;
        while (strcmp(tables[t], a->table) != 0)
            assert_true(++t < 7);
        has_table[t] = true;
    }
    for (unsigned t = 0; t < 7; t++)
        assert_true(has_table[t]);
}

static void every_attribute_has_operators(void **state)
{
    (void)state;
    for (size_t i = 0; i < attribute_count; i++) {
        unsigned n = 0;
        for (size_t o = 0; o < operator_count; o++)
            n += operator_takes(&operator_catalogue[o], attribute_catalogue[i].type);
        assert_true(n >= 4);
    }
}

static void selecting_everybody_must_be_explicit(void **state)
{
    (void)state;
    assert_int_equal(read_text(" {\"all\":true} "), 0);
    assert_int_equal(tree->kind, FILTER_AND);
    assert_null(tree->first);
    assert_int_equal(facts.leaves, 0);
    assert_int_equal(read_text("{\"not\":{\"all\":true}}"), 0);
    assert_wrong("{}", "filter: must not be empty; {\"all\": true} matches every customer");
    assert_wrong("{\"and\":[{}]}",
                 "filter/and/0: must not be empty; {\"all\": true} matches every customer");
    assert_wrong("{\"and\":[]}", "filter/and: must contain at least one filter");
    assert_wrong("{\"all\":false}", "filter: all must be true");
    assert_wrong("{\"all\":1}", "filter: all must be true");
    assert_wrong("{\"all\":true,\"or\":[]}",
                 "filter: must be one of and, or, not, all, or a filter of an attribute");
}

static void a_tree_is_read_with_its_values(void **state)
{
    (void)state;
    assert_int_equal(
        read_text(
            "{\"and\":[{\"attribute\":\"is_active_subscriber\",\"operator\":\"eq\","
            "\"value\":true},{\"not\":{\"or\":[{\"attribute\":\"city\",\"operator\":\"in\","
            "\"value\":[\"K\\u00f6ln\",\"Bonn\"]},{\"attribute\":\"next_bill_date\","
            "\"operator\":\"between\",\"value\":[\"2000-01-02\",\"1999-12-31\"]}]}}]}"),
        0);
    assert_int_equal(facts.leaves, 3);
    assert_int_equal(facts.depth, 3);
    assert_true(facts.models[MODEL_ATTRIBUTES]);
    assert_false(facts.models[MODEL_TRANSACTIONS]);
    const struct filter * or = tree->first->next->first, *city = or->first, *bill = city->next;
    assert_true(tree->first->values[0].yes);
    assert_int_equal(or->kind, FILTER_OR);
    assert_memory_equal(city->values[0].text.ptr, "K\xc3\xb6ln", 5);
    assert_int_equal(city->number, 1);
    assert_int_equal(bill->values[0].number, 1);
    assert_int_equal(bill->values[1].number, -1);
    assert_memory_equal(bill->path.ptr, "/and/1/not/or/1", bill->path.len);
}

static void keys_may_be_written_with_escapes(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"attr\\u0069bute\":\"city\",\"operator\":\"is_set\"}"), 0);
    assert_int_equal(tree->kind, FILTER_LEAF);
}

static void attributes_of_the_fallback_only_are_recognised(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("{\"attribute\":\"note\",\"operator\":\"contains\",\"value\":\"allergy\"}"),
        0);
    assert_true(facts.fallback_only);
    // Read models remember when the last ten were.
    assert_int_equal(
        read_text("{\"attribute\":\"visit_count\",\"operator\":\"gte\",\"value\":9,"
                  "\"withinDays\":30}"),
        0);
    assert_false(facts.fallback_only);
    assert_true(facts.of_this_moment);
    assert_int_equal(
        read_text("{\"attribute\":\"visit_count\",\"operator\":\"gte\",\"value\":10,"
                  "\"withinDays\":30}"),
        0);
    assert_true(facts.fallback_only);
}

static void mistakes_are_named_with_their_place(void **state)
{
    (void)state;
    assert_wrong("[]",
                 "filter: must be an object: {\"and\": [...]}, {\"or\": [...]}, {\"not\": "
                 "{...}}, {\"attribute\": ..., \"operator\": ..., \"value\": ...} or "
                 "{\"all\": true}");
    assert_wrong("{\"and\":1}", "filter/and: must be an array of filters");
    assert_wrong("{\"or\":[]}", "filter/or: must contain at least one filter");
    assert_wrong("{\"xor\":[]}", "filter: unknown member \"xor\"; did you mean \"or\"?");
    assert_wrong("{\"and\":[],\"or\":[]}",
                 "filter: must be one of and, or, not, all, or a filter of an attribute");
    assert_wrong("{\"and\":[],\"and\":[]}", "filter: has \"and\" twice");
    assert_wrong(
        "{\"and\":[{\"attribute\":\"wallet_balanse\",\"operator\":\"gt\",\"value\":1}]}",
        "filter/and/0: unknown attribute \"wallet_balanse\"; did you mean "
        "wallet_balance?");
    assert_wrong("{\"not\":{\"attribute\":\"city\",\"operator\":\"like\",\"value\":\"x\"}}",
                 "filter/not: unknown operator \"like\"");
    assert_wrong("{\"attribute\":\"city\",\"operator\":\"gt\",\"value\":\"x\"}",
                 "filter: operator gt does not apply to city of type text");
    assert_wrong("{\"attribute\":\"city\"}", "filter: operator must be an operator name");
    assert_wrong("{\"attribute\":\"city\",\"operator\":\"is_set\",\"value\":1}",
                 "filter/value: operator is_set takes no value");
    assert_wrong("{\"attribute\":\"visit_count\",\"operator\":\"gt\",\"value\":\"3\"}",
                 "filter/value: must be a whole number of at most 2147483647");
    assert_wrong("{\"attribute\":\"wallet_balance\",\"operator\":\"gt\",\"value\":1e3}",
                 "filter/value: must be a number of at most 15 digits and 6 decimal places");
    assert_wrong("{\"attribute\":\"birth_date\",\"operator\":\"eq\",\"value\":\"2026-02-30\"}",
                 "filter/value: must be a date: \"2026-11-16\"");
    assert_wrong(
        "{\"attribute\":\"last_visit_at\",\"operator\":\"gt\",\"value\":\"2026-02-03\"}",
        "filter/value: must be a time: \"2026-11-16T08:00:00Z\"");
    assert_wrong("{\"attribute\":\"package_ids\",\"operator\":\"any\",\"value\":[1,\"a\"]}",
                 "filter/value: item 1 must be a whole number of at most 2147483647");
    assert_wrong("{\"attribute\":\"package_ids\",\"operator\":\"any\",\"value\":[]}",
                 "filter/value: must be an array of 1 to 1000 values");
    assert_wrong("{\"attribute\":\"last_visit_at\",\"operator\":\"in_last_days\",\"value\":0}",
                 "filter/value: must be a number of days from 1 to 36500");
    assert_wrong(
        "{\"attribute\":\"city\",\"operator\":\"eq\",\"value\":\"x\",\"withinDays\":3}",
        "filter: withinDays is for transaction_count, visit_count and purchase_count "
        "only");
    assert_wrong("{\"and\":[", "filter: Invalid JSON at byte 8: the text ends too early");
    assert_wrong("", "filter: Invalid JSON at byte 0: the text ends too early");
}

static void depth_number_and_cost_have_limits(void **state)
{
    (void)state;
    struct buf b = {0};

    for (unsigned i = 0; i < 9; i++)
        buf_put_lit(&b, "{\"not\":");
    buf_put_lit(&b, "{\"all\":true}");
    for (unsigned i = 0; i < 9; i++)
        buf_put_lit(&b, "}");
    buf_putc(&b, '\0');
    assert_wrong(b.ptr, "filter/not/not/not/not/not/not/not/not/not: is nested deeper than 8");

    buf_reset(&b);
    buf_put_lit(&b, "{\"or\":[{\"and\":[{\"attribute\":\"city\",\"operator\":\"is_set\"}]}");
    for (unsigned i = 0; i < 31; i++)
        buf_put_lit(&b, ",{\"attribute\":\"city\",\"operator\":\"contains\",\"value\":\"x\"}");
    buf_put_lit(&b, "]}");
    buf_putc(&b, '\0');
    assert_wrong(b.ptr, "filter: costs 156, more than 100: use fewer searches in text and "
                        "shorter lists");

    buf_reset(&b);
    buf_put_lit(&b, "{\"and\":[");
    for (unsigned i = 0; i < 2; i++) {
        buf_put_lit(&b, "{\"or\":[{\"all\":true}");
        for (unsigned k = 0; k < 17; k++)
            buf_put_lit(&b, ",{\"attribute\":\"city\",\"operator\":\"is_set\"}");
        buf_put_lit(&b, "]},");
    }
    buf_put_lit(&b, "{\"all\":true}]}");
    buf_putc(&b, '\0');
    assert_wrong(b.ptr, "filter/and/1/or/16: the segment has more than 32 filters");

    buf_reset(&b);
    buf_put_lit(&b, "{\"and\":[{\"all\":true}");
    for (unsigned i = 0; i < 31; i++) {
        buf_put_lit(&b, ",{\"or\":[{\"all\":true}");
        for (unsigned k = 0; k < 31; k++)
            buf_put_lit(&b, ",{\"all\":true}");
        buf_put_lit(&b, "]}");
    }
    buf_put_lit(&b, "]}");
    buf_putc(&b, '\0');
    assert_wrong(b.ptr, "filter/and/8/or/22: the segment has more than 256 parts");

    buf_reset(&b);
    buf_put_lit(&b, "{\"all\":true");
    for (unsigned i = 0; i < 1 << 20; i++)
        buf_putc(&b, ' ');
    buf_put_lit(&b, "}");
    buf_putc(&b, '\0');
    assert_wrong(b.ptr, "filter: must be at most 1048576 bytes long");
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_catalogue_is_large_and_consistent),
        cmocka_unit_test(every_attribute_has_operators),
        cmocka_unit_test(selecting_everybody_must_be_explicit),
        cmocka_unit_test(a_tree_is_read_with_its_values),
        cmocka_unit_test(keys_may_be_written_with_escapes),
        cmocka_unit_test(attributes_of_the_fallback_only_are_recognised),
        cmocka_unit_test(mistakes_are_named_with_their_place),
        cmocka_unit_test(depth_number_and_cost_have_limits),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
