// due.c against a plain array, and callbacks that change the heap under its feet.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "batch/due.h"

enum { N = 200 };

static struct due_heap heap;
static struct due things[N];
static bool model_set[N];
static uint64_t model_at[N];
static unsigned n_fired, fired[4 * N];

static void on_fire(struct due *d)
{
    assert_false(due_is_set(d)); // it has been taken out
    fired[n_fired++] = (unsigned)(d - things);
}

static void set(unsigned i, uint64_t at_us) { due_set(&heap, &things[i], at_us, on_fire); }

static int setup(void **state)
{
    (void)state;
    memset(things, 0, sizeof things);
    memset(model_set, 0, sizeof model_set);
    n_fired = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    due_deinit(&heap);
    return 0;
}

// ---- the model ----

static uint64_t model_next(void)
{
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < N; i++)
        if (model_set[i] && model_at[i] < next)
            next = model_at[i];
    return next;
}

static void assert_is_model(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(due_is_set(&things[i]), model_set[i]);
        if (model_set[i])
            assert_int_equal(things[i].at_us, model_at[i]);
        n += model_set[i];
    }
    assert_int_equal(heap.n, n);
    assert_int_equal(due_next_us(&heap), model_next());
}

static void run_both(uint64_t now_us)
{
    n_fired = 0;
    due_run(&heap, now_us);
    uint64_t last = 0;
    for (unsigned k = 0; k < n_fired; k++) {
        unsigned i = fired[k];
        assert_true(model_set[i]); // exactly once: unset below
        assert_true(model_at[i] <= now_us);
        assert_true(model_at[i] >= last); // in order of time
        last = model_at[i];
        model_set[i] = false;
    }
    assert_true(model_next() > now_us); // all of them
}

static void a_hundred_thousand_random_steps_agree_with_a_plain_array(void **state)
{
    (void)state;
    uint64_t now = 1000;

    srand(7);
    for (unsigned step = 0; step < 100000; step++) {
        unsigned i = (unsigned)rand() % N;
        switch (rand() % 8) {
        case 0:
            due_cancel(&heap, &things[i]);
            model_set[i] = false;
            break;
        case 1:
            now += (uint64_t)rand() % 60;
            run_both(now);
            break;
        default: // new, or moved: earlier, later, the same
            model_at[i] = now + (uint64_t)rand() % 500;
            model_set[i] = true;
            set(i, model_at[i]);
        }
        if (step % 16 == 0)
            assert_is_model();
    }
    run_both(UINT64_MAX - 1);
    assert_is_model();
    assert_int_equal(heap.n, 0);
}

// ---- single steps ----

static void an_empty_heap_has_nothing_due(void **state)
{
    (void)state;
    assert_int_equal(due_next_us(&heap), UINT64_MAX);
    due_run(&heap, UINT64_MAX);
    due_cancel(&heap, &things[0]); // not there: nothing
    assert_int_equal(heap.n, 0);
}

static void due_exactly_now_fires_and_a_microsecond_later_does_not(void **state)
{
    (void)state;
    set(0, 100), set(1, 101);
    due_run(&heap, 100);
    assert_int_equal(n_fired, 1);
    assert_int_equal(fired[0], 0);
    assert_int_equal(due_next_us(&heap), 101);
}

static void moving_changes_the_callback_too(void **state)
{
    (void)state;
    due_set(&heap, &things[0], 100, NULL);
    set(0, 100);
    due_run(&heap, 100);
    assert_int_equal(n_fired, 1);
}

static void on_fire_set_past(struct due *d)
{
    on_fire(d);
    set(5, 1); // long due
}

static void an_entry_added_during_a_run_waits_for_the_next_run(void **state)
{
    (void)state;
    due_set(&heap, &things[0], 10, on_fire_set_past);
    due_run(&heap, 100);
    assert_int_equal(n_fired, 1);
    assert_true(due_is_set(&things[5]));
    due_run(&heap, 100);
    assert_int_equal(n_fired, 2);
    assert_int_equal(fired[1], 5);
}

static void on_fire_again(struct due *d)
{
    on_fire(d);
    due_set(&heap, d, d->at_us + 10, on_fire_again); // a period, far behind the clock
}

static void a_thing_that_sets_itself_again_cannot_trap_the_loop(void **state)
{
    (void)state;
    due_set(&heap, &things[0], 10, on_fire_again);
    due_run(&heap, 1000000);
    assert_int_equal(n_fired, 1);
    assert_int_equal(due_next_us(&heap), 20);
}

static void on_fire_cancel_next(struct due *d)
{
    on_fire(d);
    due_cancel(&heap, d + 1);
}

static void a_callback_may_cancel_one_that_is_due_too(void **state)
{
    (void)state;
    due_set(&heap, &things[0], 10, on_fire_cancel_next);
    set(1, 11), set(2, 12);
    due_run(&heap, 100);
    assert_int_equal(n_fired, 2);
    assert_int_equal(fired[1], 2);
    assert_int_equal(heap.n, 0);
}

static void on_fire_put_off(struct due *d)
{
    on_fire(d);
    set(1, 200);
}

static void a_callback_may_put_off_one_that_is_due_too(void **state)
{
    (void)state;
    due_set(&heap, &things[0], 10, on_fire_put_off);
    set(1, 11), set(2, 12);
    due_run(&heap, 100);
    assert_int_equal(n_fired, 2);
    assert_int_equal(fired[1], 2);
    assert_int_equal(due_next_us(&heap), 200);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_empty_heap_has_nothing_due),
        T(due_exactly_now_fires_and_a_microsecond_later_does_not),
        T(moving_changes_the_callback_too),
        T(a_hundred_thousand_random_steps_agree_with_a_plain_array),
        T(an_entry_added_during_a_run_waits_for_the_next_run),
        T(a_thing_that_sets_itself_again_cannot_trap_the_loop),
        T(a_callback_may_cancel_one_that_is_due_too),
        T(a_callback_may_put_off_one_that_is_due_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
