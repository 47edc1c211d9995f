// notes.c: what is told to the control database, and figures.c: one record per tenant and
// model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "readmodel/figures.h"
#include "readmodel/notes.h"

static void a_tenant_is_noted_once(void **state)
{
    (void)state;
    struct notes n = {0}, again = {0};
    struct pg_params one = {0}, other = {0};

    notes_add(&n, SPAN("acme"));
    notes_add(&n, SPAN("globex"));
    notes_add(&n, SPAN("acme"));
    assert_int_equal(n.n, 2);
    notes_put(&n, &one);
    assert_int_equal(one.n, 1);

    notes_add(&again, SPAN("acme"));
    notes_add(&again, SPAN("globex"));
    notes_put(&again, &other);
    assert_true(span_eq(buf_span(&one.data), buf_span(&other.data)));

    notes_move(&again, &n); // what could not be told comes back to what is new
    assert_int_equal(n.n, 0);
    assert_int_equal(again.n, 2);
    pg_params_free(&one);
    pg_params_free(&other);
    notes_deinit(&n);
    notes_deinit(&again);
}

static void figures_are_kept_by_tenant_and_model(void **state)
{
    (void)state;
    struct figures f = {0};
    struct figure *a = figures_of(&f, SPAN("acme"), MODEL_ATTRIBUTES);
    struct figure *t = figures_of(&f, SPAN("acme"), MODEL_TRANSACTIONS);

    assert_ptr_not_equal(a, t);
    assert_ptr_equal(a, figures_of(&f, SPAN("acme"), MODEL_ATTRIBUTES));
    assert_ptr_not_equal(a, figures_of(&f, SPAN("acm"), MODEL_ATTRIBUTES));
    assert_int_equal(a->rows, -1);
    figures_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tenant_is_noted_once),
        cmocka_unit_test(figures_are_kept_by_tenant_and_model),
    };
    return cmocka_run_group_tests_name("readmodel/notes", tests, NULL, NULL);
}
