// selector.c: pops by namespace and task.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

static void select_start(struct pop *p, unsigned timeout_ms)
{
    pop_fill(p, NULL, timeout_ms);
    p->op.namespace_ = SPAN("n");
    pop_give(p);
}

static void answer_queues(const char *first, const char *second)
{
    if (first)
        fake_row("name:t", first);
    if (second)
        fake_row("name:t", second);
    fake_answer(fake_call("select_queues"), 0);
    turn();
}

static void the_first_pop_requests_its_queues(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 0);
    answer_changes();
    answer_queues("q", NULL);
    answer_discover(1);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void no_queue_is_answered_empty(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 0);
    answer_changes();
    answer_queues(NULL, NULL);
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, 0);
    assert_int_equal(p.rendered, 0);
}

static void the_list_is_read_for_every_pop_and_its_order_counts(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    select_start(&a, 0);
    answer_changes();
    answer_queues("q", "urgent");
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)1, uuid(1), "p1",
             (int64_t)101, 1);
    fake_answer(fake_call("discover"), 0);
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)2, uuid(2), "p2",
             (int64_t)102, 1);
    fake_answer(fake_call("discover"), 0);
    turn();
    claim_of_lane(1, true, 0); // more of it is there
    assert_string_equal(a.partitions, "p1");
    select_start(&b, 0);
    answer_queues("urgent", "q"); // the priority was changed
    claim_of_lane(2, false, 0);
    assert_string_equal(b.partitions, "p2");
}

static void a_parked_pop_is_woken_by_a_push_to_one_of_its_queues(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    select_start(&p, 5000);
    answer_changes();
    answer_queues("q", NULL);
    answer_discover(0);
    assert_int_equal(p.times, 0);
    push_to("p1", &m);
    answer_number(101);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void a_queue_that_comes_later_is_found_within_a_second(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 5000);
    answer_changes();
    answer_queues(NULL, NULL);
    assert_int_equal(p.times, 0);
    wait_ms(1000);
    answer_look();
    answer_queues("q", NULL);
    answer_discover(1);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void a_parked_pop_can_be_cancelled(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 5000);
    answer_changes();
    answer_queues(NULL, NULL);
    broker_pop_cancel(broker, &p.op);
    turn();
    assert_int_equal(p.status, UV_ECANCELED);
}

static void draining_answers_it(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 5000);
    answer_changes();
    answer_queues(NULL, NULL);
    broker_drain(broker);
    turn();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, 0);
}

static void an_unreadable_list_fails_pops_that_do_not_wait(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 0);
    answer_changes();
    fake_answer(fake_call("select_queues"), QE_PG_AWAY);
    turn();
    assert_int_equal(p.status, QE_PG_AWAY);
}

static void a_broker_can_be_closed_while_its_list_is_due_to_be_read_again(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    select_start(&a, 0);
    answer_changes();
    answer_queues("q", NULL);
    answer_discover(2);
    claim_of_lane(1, false, MINUTE_US); // leases are due as well: they share a heap
    select_start(&b, 5000);
    answer_queues("q", NULL);
    row_status(1, TAKEN, MINUTE_US);
    answer_claim();
    assert_int_equal(b.times, 0); // parked; the rest is teardown's
}

// ---- outages ----

static void it_waits_for_better_times_when_the_feed_fails(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 5000);
    fake_answer(fake_call("changes"), QE_PG_AWAY);
    turn();
    assert_int_equal(p.times, 0);
    wait_ms(1000);
    answer_look();
    answer_queues("q", NULL);
    answer_discover(1);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void it_waits_on_when_its_claim_is_lost(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    select_start(&p, 5000);
    answer_changes();
    answer_queues("q", NULL);
    answer_discover(1);
    fake_answer(fake_call("claim"), QE_PG_GONE);
    turn();
    assert_int_equal(p.times, 0);
    fake_answer(fake_call("release"), 0);
    wait_ms(100);
    assert_non_null(fake_find("claim"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(the_first_pop_requests_its_queues),
        T(no_queue_is_answered_empty),
        T(the_list_is_read_for_every_pop_and_its_order_counts),
        T(a_parked_pop_is_woken_by_a_push_to_one_of_its_queues),
        T(a_queue_that_comes_later_is_found_within_a_second),
        T(a_parked_pop_can_be_cancelled),
        T(draining_answers_it),
        T(an_unreadable_list_fails_pops_that_do_not_wait),
        T(a_broker_can_be_closed_while_its_list_is_due_to_be_read_again),
        T(it_waits_for_better_times_when_the_feed_fails),
        T(it_waits_on_when_its_claim_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
