// compile.c, compile_leaf.c: the text is ours, the values are parameters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audience/compile.h"
#include "pg/params.h"

static struct compiled c;
static struct arena arena;

static int tear_down(void **state)
{
    (void)state;
    compile_deinit(&c);
    arena_deinit(&arena);
    return 0;
}

static void compile_as(const char *text, enum sql_dialect dialect, enum audience_path path)
{
    struct filter_facts facts;
    struct filter *f;
    struct fault why;

    compile_deinit(&c);
    c = (struct compiled){.dialect = dialect, .path = path};
    assert_int_equal(
        filter_read(span_of(text), &arena, &filter_default_limits, &f, &facts, &why), 0);
    compile_count(&c, f, &facts);
    assert_int_equal(c.rc, 0);
    buf_putc(&c.text, '\0');
}

static void assert_sql(const char *text, enum audience_path path, const char *sql)
{
    compile_as(text, SQL_PG, path);
    assert_string_equal(c.text.ptr, sql);
}

#define SUBSCRIBER "{\"attribute\":\"is_active_subscriber\",\"operator\":\"eq\",\"value\":true}"
#define RICH       "{\"attribute\":\"wallet_balance\",\"operator\":\"gt\",\"value\":50}"
#define BUSY \
    "{\"attribute\":\"transaction_count\",\"operator\":\"gte\",\"value\":3,\"withinDays\":30}"

static void a_filter_of_one_model_reads_only_that_model(void **state)
{
    (void)state;
    assert_sql(
        SUBSCRIBER, PATH_LIVE,
        "select count(*) from crm.customer_attributes_live a where a.is_active_subscriber");
    assert_sql("{\"and\":[" SUBSCRIBER "," RICH "]}", PATH_VIEWS,
               "select count(*) from crm.customer_attributes_mv a where "
               "(a.is_active_subscriber and a.wallet_balance > cast($1 as numeric))");
    assert_sql(BUSY, PATH_LIVE,
               "select count(*) from crm.customer_transactions_live t where "
               "(t.third_last_transaction_on > (now() at time zone 'UTC')::date - $1::int)");
    assert_int_equal(c.params[0].number, 30);
    assert_sql("{\"attribute\":\"visit_count\",\"operator\":\"gt\",\"value\":3,"
               "\"withinDays\":30}",
               PATH_LIVE,
               "select count(*) from crm.customer_transactions_live t where "
               "(t.last_visit_days[$1::int] > (now() at time zone 'UTC')::date - $2::int)");
    assert_int_equal(c.params[0].number, 4);
}

static void two_models_are_joined(void **state)
{
    (void)state;
    assert_sql("{\"or\":[" SUBSCRIBER ",{\"attribute\":\"visit_count\",\"operator\":\"lt\","
               "\"value\":2}]}",
               PATH_LIVE,
               "select count(*) from crm.customer_attributes_live a join "
               "crm.customer_transactions_live t on t.id = a.id where "
               "(a.is_active_subscriber or t.visit_count < $1)");
}

#define HERE "{\"attribute\":\"location_codes\",\"operator\":\"any\",\"value\":[\"A\",\"B\"]}"
#define JOINED                                                                                 \
    "select count(*) from crm.customer_attributes_live a join crm.customer_transactions_live " \
    "t on t.id = a.id where "
#define OFTEN "(t.third_last_transaction_on > (now() at time zone 'UTC')::date - "

static void frequent_subscribers_are_found_with_one_index(void **state)
{
    (void)state;
    assert_sql("{\"and\":[" HERE "," SUBSCRIBER "," BUSY "]}", PATH_LIVE,
               JOINED "((a.location_codes && $1 and (t.few_location_codes && $1 or "
                      "t.few_location_codes is null)) and "
                      "(a.is_active_subscriber and t.is_active_subscriber) and " OFTEN
                      "$2::int))");
    assert_int_equal(c.n_params, 2);
}

static void conditions_outside_that_index_are_not_repeated(void **state)
{
    (void)state;
    assert_sql("{\"and\":[" HERE "," BUSY "]}", PATH_LIVE,
               JOINED "(a.location_codes && $1 and " OFTEN "$2::int))");
    assert_sql("{\"or\":[" SUBSCRIBER "," BUSY "]}", PATH_LIVE,
               JOINED "(a.is_active_subscriber or " OFTEN "$1::int))");
    assert_sql("{\"and\":[{\"not\":" SUBSCRIBER "}," BUSY "]}", PATH_LIVE,
               JOINED "(((a.is_active_subscriber) is not true) and " OFTEN "$1::int))");
    assert_sql("{\"and\":[" SUBSCRIBER ",{\"attribute\":\"transaction_count\",\"operator\":"
               "\"gte\",\"value\":4,\"withinDays\":30}]}",
               PATH_LIVE,
               JOINED "(a.is_active_subscriber and (t.last_transaction_days[$1::int] > "
                      "(now() at time zone 'UTC')::date - $2::int))");
}

static void the_fallback_is_one_sub_select_per_filter(void **state)
{
    (void)state;
    assert_sql("{\"and\":[" SUBSCRIBER ",{\"attribute\":\"package_ids\",\"operator\":\"all\","
               "\"value\":[7,9,7]}]}",
               PATH_FALLBACK,
               "select count(*) from crm.customer c where (c.customer_uuid in (select "
               "r.customer_id from crm.subscription_account r where r.status = 1) and "
               "c.customer_uuid in (select r.customer_id from crm.subscription_account r where "
               "r.package_id = any($1) group by r.customer_id having "
               "count(distinct r.package_id) = $2))");
    assert_int_equal(c.params[1].number, 2);
}

static void the_fallback_includes_customers_without_rows(void **state)
{
    (void)state;
    assert_sql("{\"attribute\":\"wallet_balance\",\"operator\":\"lt\",\"value\":10.5}",
               PATH_FALLBACK,
               "select count(*) from crm.customer c where not exists (select 1 from (select "
               "r.customer_id from crm.wallet_account r group by r.customer_id having "
               "(sum(r.balance) < cast($1 as numeric)) is not true) x where x.customer_id = "
               "c.customer_uuid)");
    assert_sql("{\"attribute\":\"wallet_balance\",\"operator\":\"between\",\"value\":[0.01,5]}",
               PATH_FALLBACK,
               "select count(*) from crm.customer c where c.customer_uuid in (select "
               "r.customer_id from crm.wallet_account r group by r.customer_id having "
               "sum(r.balance) between cast($1 as numeric) and cast($2 as numeric))");
    assert_int_equal(c.n_params, 2);
}

static void negations_are_true_for_unknown_values(void **state)
{
    (void)state;
    assert_sql("{\"attribute\":\"city\",\"operator\":\"ne\",\"value\":\"Bonn\"}", PATH_LIVE,
               "select count(*) from crm.customer_attributes_live a where "
               "((a.city = $1) is not true)");
    assert_sql("{\"not\":{\"or\":[" RICH "]}}", PATH_LIVE,
               "select count(*) from crm.customer_attributes_live a where "
               "(((a.wallet_balance > cast($1 as numeric))) is not true)");
}

static void sets_are_compared_with_the_operators_of_arrays(void **state)
{
    (void)state;
    struct pg_params p = {0};

    assert_sql(
        "{\"and\":[{\"attribute\":\"package_ids\",\"operator\":\"any\",\"value\":[123,456]},"
        "{\"attribute\":\"location_codes\",\"operator\":\"all\",\"value\":[\"A\",\"B\"]},"
        "{\"attribute\":\"tags\",\"operator\":\"is_set\"}]}",
        PATH_LIVE,
        "select count(*) from crm.customer_attributes_live a where (a.package_ids && $1 "
        "and a.location_codes @> $2 and cardinality(a.tags) > 0)");
    compile_bind(&c, &p);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.param[0].oid, 1007);
    assert_int_equal(p.param[1].oid, 1009);
    pg_params_free(&p);
}

static void in_mysql_lists_are_more_parameters(void **state)
{
    (void)state;
    compile_as(
        "{\"and\":[{\"attribute\":\"city\",\"operator\":\"in\",\"value\":[\"A\",\"B\"]},"
        "{\"attribute\":\"visit_count\",\"operator\":\"lt\",\"value\":2,\"withinDays\":7}]}",
        SQL_MYSQL, PATH_FALLBACK);
    assert_string_equal(
        c.text.ptr,
        "select count(*) from customer c where (cast(convert(c.city using utf8mb4) as binary) "
        "in "
        "(?, ?) and not exists (select 1 from "
        "(select r.customer_id from visit_log r where r.visited_at >= date_sub(utc_date(), "
        "interval ? day) group by r.customer_id having (count(*) < ?) is not true) x where "
        "x.customer_id = c.customer_uuid))");
    assert_int_equal(c.n_params, 4);
    assert_int_equal(c.params[2].number, 6);
    assert_int_equal(c.params[3].number, 2);
}

static void too_many_values_are_refused_and_not_cut_off(void **state)
{
    (void)state;
    struct filter_facts facts;
    struct filter *f;
    struct fault why;
    struct buf b = {0};

    buf_put_lit(&b, "{\"or\":[");
    for (unsigned i = 0; i < 30; i++)
        buf_printf(&b,
                   "%s{\"attribute\":\"visit_count\",\"operator\":\"between\",\"value\":[1,2]}",
                   i > 0 ? "," : "");
    buf_put_lit(&b, "]}");
    assert_int_equal(
        filter_read(buf_span(&b), &arena, &filter_default_limits, &f, &facts, &why), 0);
    compile_deinit(&c);
    c = (struct compiled){.path = PATH_LIVE};
    compile_count(&c, f, &facts);
    assert_int_equal(c.rc, QE_TOO_LARGE);
    buf_free(&b);
}

static void an_explanation_names_each_filter_once_more_without_new_parameters(void **state)
{
    (void)state;
    static const uint8_t id[16] = {1};
    struct filter_facts facts;
    struct filter *f;
    struct fault why;

    assert_int_equal(filter_read(SPAN("{\"and\":[" SUBSCRIBER "," RICH "]}"), &arena,
                                 &filter_default_limits, &f, &facts, &why),
                     0);
    compile_deinit(&c);
    c = (struct compiled){.path = PATH_LIVE};
    compile_explain(&c, f, &facts, id);
    buf_putc(&c.text, '\0');
    assert_string_equal(
        c.text.ptr,
        "select (((a.is_active_subscriber and a.wallet_balance > cast($1 as numeric))) is "
        "true), "
        "((a.is_active_subscriber) is true), to_jsonb(a.is_active_subscriber)::text, "
        "((a.wallet_balance > cast($1 as numeric)) is true), to_jsonb(a.wallet_balance)::text "
        "from crm.customer c join crm.customer_attributes_live a on a.id = c.id where "
        "c.customer_uuid = $2");
    assert_ptr_equal(c.params[1].uuid, id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_of_one_model_reads_only_that_model),
        cmocka_unit_test(two_models_are_joined),
        cmocka_unit_test(frequent_subscribers_are_found_with_one_index),
        cmocka_unit_test(conditions_outside_that_index_are_not_repeated),
        cmocka_unit_test(the_fallback_is_one_sub_select_per_filter),
        cmocka_unit_test(the_fallback_includes_customers_without_rows),
        cmocka_unit_test(negations_are_true_for_unknown_values),
        cmocka_unit_test(sets_are_compared_with_the_operators_of_arrays),
        cmocka_unit_test(in_mysql_lists_are_more_parameters),
        cmocka_unit_test(too_many_values_are_refused_and_not_cut_off),
        cmocka_unit_test(an_explanation_names_each_filter_once_more_without_new_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
