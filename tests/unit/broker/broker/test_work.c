// work/claim_work.c: pops of work queues that share a claim.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

// Lane 1 of queue "q" is a partition of a work queue, as an earlier claim has found.
static void open_work_queue(void)
{
    rig_open();
    lane_get(broker, queue_get(broker, SPAN("q")), SPAN("p1"))->work = true;
}

static void pop_of_group(struct pop *p, const char *group, unsigned timeout_ms)
{
    pop_fill(p, "q", timeout_ms);
    p->op.partition = SPAN("p1");
    p->op.group = span_of(group);
    pop_give(p);
}

// Two groups find their consumers 101 and 102 in one turn, and their claims leave together.
static struct pg_call *claim_of_two_groups(struct pop *a, struct pop *b, unsigned timeout_ms)
{
    pop_of_group(a, "a", timeout_ms);
    answer_changes();
    pop_of_group(b, "b", timeout_ms);
    for (int i = 0; i < 2; i++) {
        fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)1, uuid(1), "p1",
                 (int64_t)(101 + i), 1);
        fake_answer(fake_call("discover"), 0);
    }
    turn();
    struct pg_call *c = fake_call("claim_work");
    assert_int_equal(fake_len(c->params, PG_INT8, 0), 2);
    assert_int_equal(target_of(c, 0), 101);
    assert_int_equal(target_of(c, 1), 102);
    return c;
}

// One group is deleted during the claim.  With it the broker forgets the consumers of its
// partitions, also those of the other group, whose pop has no end yet.
static void a_deleted_group_leaves_the_pops_of_another_group(void **state)
{
    (void)state;
    static struct pop a, b;
    open_work_queue();
    struct pg_call *c = claim_of_two_groups(&a, &b, 60000);
    row_status(1, EMPTY, 0);
    row_status(2, GONE, 0);
    fake_answer(c, 0);
    turn();
    assert_int_equal(a.times, 0);
    assert_int_equal(b.times, 0);
}

// It could not share the claim that was under way, which finds nothing.
static void pop_during_an_empty_claim(struct pop *second, unsigned timeout_ms)
{
    static struct pop first;
    open_work_queue();
    pop_of_group(&first, "a", 0);
    answer_changes();
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)1, uuid(1), "p1",
             (int64_t)101, 1);
    fake_answer(fake_call("discover"), 0);
    turn();
    struct pg_call *c = fake_call("claim_work");
    pop_of_group(second, "a", timeout_ms);
    row_status(1, EMPTY, 0);
    fake_answer(c, 0);
    turn();
    assert_int_equal(first.times, 1);
}

static void a_pop_during_an_empty_claim_is_answered(void **state)
{
    (void)state;
    static struct pop second;
    pop_during_an_empty_claim(&second, 0);
    assert_int_equal(second.times, 1);
    assert_int_equal(second.status, 0);
}

static void a_pop_during_an_empty_claim_waits_for_its_timeout(void **state)
{
    (void)state;
    static struct pop second;
    pop_during_an_empty_claim(&second, 5000);
    assert_int_equal(second.times, 0);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
    wait_ms(5001);
    assert_int_equal(second.times, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_deleted_group_leaves_the_pops_of_another_group),
        T(a_pop_during_an_empty_claim_is_answered),
        T(a_pop_during_an_empty_claim_waits_for_its_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
