// changed_tenants.c: reports to the control database; model_stats.c: one record per
// tenant and model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "readmodel/changed_tenants.h"
#include "readmodel/model_stats.h"

static void a_tenant_is_recorded_once(void **state)
{
    (void)state;
    struct changed_tenants n = {0}, again = {0};
    struct pg_params one = {0}, other = {0};

    changed_tenants_add(&n, SPAN("acme"));
    changed_tenants_add(&n, SPAN("globex"));
    changed_tenants_add(&n, SPAN("acme"));
    assert_int_equal(n.n, 2);
    changed_tenants_put(&n, &one);
    assert_int_equal(one.n, 1);

    changed_tenants_add(&again, SPAN("acme"));
    changed_tenants_add(&again, SPAN("globex"));
    changed_tenants_put(&again, &other);
    assert_true(span_eq(buf_span(&one.data), buf_span(&other.data)));

    changed_tenants_move(&again, &n); // unreported changes return to pending
    assert_int_equal(n.n, 0);
    assert_int_equal(again.n, 2);
    pg_params_free(&one);
    pg_params_free(&other);
    changed_tenants_deinit(&n);
    changed_tenants_deinit(&again);
}

static void stats_are_kept_by_tenant_and_model(void **state)
{
    (void)state;
    struct model_stats f = {0};
    struct model_stat *a = model_stats_get(&f, SPAN("acme"), MODEL_ATTRIBUTES);
    struct model_stat *t = model_stats_get(&f, SPAN("acme"), MODEL_TRANSACTIONS);

    assert_ptr_not_equal(a, t);
    assert_ptr_equal(a, model_stats_get(&f, SPAN("acme"), MODEL_ATTRIBUTES));
    assert_ptr_not_equal(a, model_stats_get(&f, SPAN("acm"), MODEL_ATTRIBUTES));
    assert_int_equal(a->rows, -1);
    model_stats_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_is_recorded_once),
        cmocka_unit_test(stats_are_kept_by_tenant_and_model),
    };
    return cmocka_run_group_tests_name("readmodel/changed_tenants", tests, NULL, NULL);
}
