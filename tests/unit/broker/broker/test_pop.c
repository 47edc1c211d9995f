// pop.c, claim.c, group.c, feed.c: who is served from which lane, who waits, and who is woken.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

// ---- the ready list ----

static void a_pop_is_served_from_discovered_lanes(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 1);
    struct pg_call *c = fake_call("claim");
    assert_int_equal(fake_int(c->params, PG_INT4, 0, 0), 10);
    assert_int_equal(fake_int(c->params, PG_BOOL, 0, 0), 0);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.status, 0);
    assert_int_equal(p.rendered, 1);
    assert_true(p.has_lease);
    assert_string_equal(p.partitions, "p1");
}

static void a_known_group_is_served_without_discovery(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_first(&a, "q", 0, 2);
    claim_of_lane(1, false, MINUTE_US);
    pop_start(&b, "q", 0);
    claim_of_lane(2, false, MINUTE_US);
    assert_string_equal(b.partitions, "p2");
}

static void the_least_recently_served_lane_comes_first(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    for (int i = 0; i < 9; i++) {
        pop_fill(&p, "q", 0);
        p.op.auto_ack = true;
        pop_give(&p);
        if (i == 0) {
            answer_changes();
            answer_discover(3);
        }
        claim_of_lane(1 + i % 3, true, 0);
        assert_int_equal(p.rendered, 1);
        assert_false(p.has_lease);
    }
}

static void a_leased_lane_is_not_offered_until_its_lease_ends(void **state)
{
    (void)state;
    static struct pop a, b, c;
    rig_open();
    pop_first(&a, "q", 0, 1);
    claim_of_lane(1, true, 2000 * 1000);
    pop_start(&b, "q", 0);
    answer_changes(); // queries once before it relies on it
    assert_int_equal(b.times, 1);
    assert_int_equal(b.rendered, 0);
    wait_ms(2000);
    pop_start(&c, "q", 0);
    claim_of_lane(1, true, MINUTE_US);
    assert_int_equal(c.rendered, 1);
}

static void several_partitions_are_claimed_in_one_careful_call(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_fill(&p, "q", 0);
    p.op.partitions = 2;
    pop_give(&p);
    answer_changes();
    answer_discover(3);
    struct pg_call *c = fake_call("claim_careful");
    assert_int_equal(fake_len(c->params, PG_UUID, 0), 2);
    assert_int_equal(target_of(c, 0), 101);
    assert_int_equal(target_of(c, 1), 102);
    assert_memory_equal(lease_of(c, 0), lease_of(c, 1), 16);
    row_claimed(1, 1, false, MINUTE_US), row_claimed(2, 2, false, MINUTE_US);
    answer_careful_claim();
    assert_int_equal(p.n_claims, 2);
    assert_string_equal(p.partitions, "p1 p2");
}

// Two pushes have made p1 and p2; only the number of the consumer of p1 is known.
static void make_new_lanes(struct pop *p, unsigned batch)
{
    static struct pop first;
    static struct push m[2];
    rig_open();
    pop_first(&first, "q", 0, 0);
    push_to("p1", &m[0]);
    answer_number(101);
    push_to("p2", &m[1]);
    pop_fill(p, "q", 0);
    p->op.partitions = 4;
    p->op.batch = batch;
    pop_give(p);
    struct pg_call *look = fake_find("changes"); // while the number of p2 is being queried
    if (look) {
        fake_row("snapshot:t", "1:1:");
        fake_answer(look, 0);
        turn();
    }
}

static void several_new_partitions_are_claimed_with_their_numbers(void **state)
{
    (void)state;
    static struct pop p;
    make_new_lanes(&p, 10);
    assert_null(fake_find("claim"));
    answer_number(102);
    struct pg_call *c = fake_call("claim_careful");
    assert_int_equal(target_of(c, 0), 101);
    assert_int_equal(target_of(c, 1), 102);
    row_claimed(1, 1, false, MINUTE_US), row_claimed(2, 2, false, MINUTE_US);
    answer_careful_claim();
    assert_int_equal(p.n_claims, 2);
}

static void numbers_that_do_not_come_hold_nothing_back(void **state)
{
    (void)state;
    static struct pop p;
    make_new_lanes(&p, 10);
    fake_answer(fake_call("ensure_consumers"), QE_PG_AWAY);
    turn();
    claim_of_lane(1, false, MINUTE_US);
    assert_string_equal(p.partitions, "p1");
}

static void a_pop_that_is_full_waits_for_no_number(void **state)
{
    (void)state;
    static struct pop p;
    make_new_lanes(&p, 1);
    assert_non_null(fake_find("claim"));
    answer_number(102);
    claim_of_lane(1, false, MINUTE_US);
    assert_string_equal(p.partitions, "p1");
}

static void pops_that_come_together_each_get_their_own_lane(void **state)
{
    (void)state;
    static struct pop p[4];
    rig_open();
    pop_first(&p[0], "q", 0, 4);
    for (unsigned i = 1; i < 4; i++)
        pop_start(&p[i], "q", 0);
    for (int lane = 1; lane <= 4; lane++)
        claim_of_lane(lane, false, MINUTE_US);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(p[i].rendered, 1);
    assert_string_equal(p[3].partitions, "p4");
}

static void pops_that_wait_for_a_discovery_leave_in_one_call(void **state)
{
    (void)state;
    static struct pop p[3];
    rig_open();
    pop_start(&p[0], "q", 0);
    answer_changes();
    pop_start(&p[1], "q", 0), pop_start(&p[2], "q", 0);
    answer_discover(3);
    struct pg_call *c = fake_call("claim");
    assert_int_equal(fake_n_calls(), 1);
    assert_int_equal(fake_len(c->params, PG_UUID, 0), 3);
    assert_memory_not_equal(lease_of(c, 0), lease_of(c, 1), 16);
    for (int t = 1; t <= 3; t++)
        row_claimed(t, t, false, MINUTE_US);
    answer_claim();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(p[i].rendered, 1);
}

static void a_lane_with_options_is_claimed_the_careful_way_from_then_on(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_first(&a, "q", 0, 1);
    row_status(1, WANTS_CARE, 0);
    answer_claim();
    assert_int_equal(target_of(fake_call("claim_careful"), 0), 101);
    row_claimed(1, 1, true, 0);
    answer_careful_claim();
    assert_int_equal(a.rendered, 1);
    pop_start(&b, "q", 0);
    row_claimed(1, 1, false, 0);
    answer_careful_claim();
    assert_int_equal(b.rendered, 1);
}

static void an_empty_lane_sends_the_pop_on_to_the_next(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 2);
    row_status(1, EMPTY, 0);
    answer_claim();
    claim_of_lane(2, false, MINUTE_US);
    assert_string_equal(p.partitions, "p2");
}

static void a_lane_that_was_not_needed_stays_first(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_fill(&a, "q", 0);
    a.op.partitions = 2;
    pop_give(&a);
    answer_changes();
    answer_discover(3);
    row_claimed(1, 1, false, MINUTE_US), row_status(2, NOT_NEEDED, 0);
    answer_careful_claim();
    assert_string_equal(a.partitions, "p1");
    pop_start(&b, "q", 0);
    claim_of_lane(2, false, MINUTE_US);
}

static void a_delayed_message_makes_the_lane_wait_for_its_time(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 5000, 1);
    row_status(1, NOT_YET, 400 * 1000);
    answer_claim();
    assert_int_equal(p.times, 0);
    wait_ms(399);
    assert_null(fake_find("claim"));
    wait_ms(2);
    assert_non_null(fake_find("claim"));
}

static void a_lane_that_others_lease_is_looked_at_again(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 30000, 1);
    row_status(1, TAKEN, MINUTE_US);
    answer_claim();
    assert_int_equal(p.times, 0);
    wait_ms(100); // not after a minute: they may give it back any moment
    assert_non_null(fake_find("claim"));
}

static void a_deleted_lane_is_forgotten(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 1);
    assert_int_equal(atomic_load(&broker_stats(broker)->consumers), 1);
    row_status(1, GONE, 0);
    answer_claim();
    assert_int_equal(atomic_load(&broker_stats(broker)->consumers), 0);
    answer_look();
    fake_fail_all(QE_PG_AWAY); // the watermark, at most
    turn();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.rendered, 0);
}

// ---- waiting ----

// Its partition still exists, and others wait for messages there.
static void a_deleted_group_takes_no_lanes_from_others(void **state)
{
    (void)state;
    static struct pop g, h;
    rig_open();
    pop_first(&g, "q", 60000, 1);
    row_status(1, NOT_YET, 5000 * 1000);
    answer_claim();
    answer_look();
    pop_fill(&h, "q", 0);
    h.op.group = SPAN("h");
    pop_give(&h);
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)1, uuid(1), "p1",
             (int64_t)201, 1);
    fake_answer(fake_call("discover"), 0);
    turn();
    assert_int_equal(target_of(fake_call("claim"), 0), 201);
    row_status(1, GONE, 0);
    answer_claim();
    fake_fail_all(QE_PG_AWAY);
    turn();
    assert_int_equal(h.times, 1);
    assert_int_equal(g.times, 0);
    wait_ms(6000);
    assert_int_equal(target_of(fake_find("claim"), 0), 101);
    row_claimed(1, 1, false, MINUTE_US);
    fake_answer(fake_find("claim"), 0);
    turn();
    assert_int_equal(g.rendered, 1);
}

static void a_pop_that_does_not_wait_is_answered_empty(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 0);
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, 0);
    assert_int_equal(p.op.n_messages, 0);
}

static void a_parked_pop_is_woken_by_a_push(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_first(&p, "q", 5000, 0);
    assert_int_equal(p.times, 0);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
    push_to("p1", &m);
    answer_number(101);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 0);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void the_pop_that_waits_longest_is_woken_first(void **state)
{
    (void)state;
    static struct pop a, b;
    static struct push m;
    rig_open();
    pop_first(&a, "q", 5000, 0);
    pop_start(&b, "q", 5000);
    answer_look();
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 2);
    push_to("p1", &m);
    answer_number(101);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(a.rendered, 1);
    assert_int_equal(b.times, 0);
}

static void a_push_to_another_queue_wakes_no_pop(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m = {0};
    rig_open();
    pop_first(&p, "q", 5000, 0);
    push_item(&m, "other", "p1", NULL);
    push_start(&m);
    answer_lanes();
    answer_stored();
    assert_int_equal(fake_n_calls(), 0);
    assert_int_equal(p.times, 0);
}

static void the_feed_finds_messages_pushed_by_other_servers(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 5000, 0);
    wait_ms(100);
    fake_row("lane:l lane_id:u lane_name:t queue_name:t", (int64_t)1, uuid(1), "p1", "q");
    fake_row("snapshot:t", "2:2:");
    fake_answer(fake_call("changes"), 0);
    turn();
    answer_number(101);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void a_parked_pop_is_answered_empty_at_its_deadline(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 5000, 0);
    wait_ms(4999);
    assert_int_equal(p.times, 0);
    wait_ms(1);
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, 0);
    assert_int_equal(p.op.n_messages, 0);
    assert_int_equal(counter_get(&broker_stats(broker)->pops_empty), 1);
}

static void a_woken_pop_that_gets_nothing_waits_on_until_its_deadline(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_first(&p, "q", 5000, 0);
    push_to("p1", &m);
    answer_number(101);
    row_status(1, EMPTY, 0); // somebody was faster
    answer_claim();
    assert_int_equal(p.times, 0);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
    wait_ms(5000);
    assert_int_equal(p.times, 1);
    assert_int_equal(p.rendered, 0);
}

static void draining_answers_parked_pops_and_parks_no_more(void **state)
{
    (void)state;
    static struct pop a, b, c;
    rig_open();
    pop_first(&a, "q", 5000, 0);
    pop_fill(&b, "q", 5000);
    b.op.partition = SPAN("p1");
    pop_give(&b);
    answer_discover(0);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 2);
    broker_drain(broker);
    turn();
    assert_int_equal(a.times, 1);
    assert_int_equal(a.status, 0);
    assert_int_equal(b.times, 1);
    pop_start(&c, "q", 5000);
    assert_int_equal(c.times, 1);
    assert_int_equal(c.status, 0);
}

static void draining_lets_a_claim_in_flight_come_home(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 5000, 1);
    broker_drain(broker);
    turn();
    assert_int_equal(p.times, 0);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

// ---- one partition ----

static void a_pop_of_one_partition_always_queries_the_database(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_first(&a, "q", 0, 1);
    claim_of_lane(1, false, MINUTE_US);
    pop_fill(&b, "q", 0);
    b.op.partition = SPAN("p1");
    pop_give(&b); // leased, according to our state
    assert_int_equal(target_of(fake_call("claim"), 0), 101);
    row_status(1, TAKEN, MINUTE_US);
    answer_claim();
    assert_int_equal(b.times, 1);
    assert_int_equal(b.rendered, 0);
}

static void a_pop_of_a_partition_that_comes_later_is_woken(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_fill(&p, "q", 5000);
    p.op.partition = SPAN("p1");
    pop_give(&p);
    answer_changes();
    answer_discover(0);
    push_to("p2", &m);
    assert_int_equal(fake_n_calls(), 0);
    push_to("p1", &m);
    answer_number(101);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void a_push_during_the_claim_of_one_partition_is_not_lost(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_fill(&p, "q", 5000);
    p.op.partition = SPAN("p1");
    pop_give(&p);
    answer_changes();
    answer_discover(1);
    struct pg_call *claim = fake_call("claim");
    push_item(&m, "q", "p1", NULL);
    push_start(&m);
    turn();
    row_stored(1);
    fake_answer(fake_find("push"), 0);
    turn();
    row_status(1, EMPTY, 0); // its snapshot was older than the push
    fake_answer(claim, 0);
    turn();
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

static void one_partition_with_options_is_claimed_the_careful_way_too(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_fill(&p, "q", 0);
    p.op.partition = SPAN("p1");
    pop_give(&p);
    answer_changes();
    answer_discover(1);
    row_status(1, WANTS_CARE, 0);
    answer_claim();
    row_claimed(1, 1, false, MINUTE_US);
    answer_careful_claim();
    assert_int_equal(p.rendered, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_pop_is_served_from_discovered_lanes),
        T(a_known_group_is_served_without_discovery),
        T(the_least_recently_served_lane_comes_first),
        T(a_leased_lane_is_not_offered_until_its_lease_ends),
        T(several_partitions_are_claimed_in_one_careful_call),
        T(several_new_partitions_are_claimed_with_their_numbers),
        T(numbers_that_do_not_come_hold_nothing_back),
        T(a_pop_that_is_full_waits_for_no_number),
        T(pops_that_come_together_each_get_their_own_lane),
        T(pops_that_wait_for_a_discovery_leave_in_one_call),
        T(a_lane_with_options_is_claimed_the_careful_way_from_then_on),
        T(an_empty_lane_sends_the_pop_on_to_the_next),
        T(a_lane_that_was_not_needed_stays_first),
        T(a_delayed_message_makes_the_lane_wait_for_its_time),
        T(a_lane_that_others_lease_is_looked_at_again),
        T(a_deleted_lane_is_forgotten),
        T(a_deleted_group_takes_no_lanes_from_others),
        T(a_pop_that_does_not_wait_is_answered_empty),
        T(a_parked_pop_is_woken_by_a_push),
        T(the_pop_that_waits_longest_is_woken_first),
        T(a_push_to_another_queue_wakes_no_pop),
        T(the_feed_finds_messages_pushed_by_other_servers),
        T(a_parked_pop_is_answered_empty_at_its_deadline),
        T(a_woken_pop_that_gets_nothing_waits_on_until_its_deadline),
        T(draining_answers_parked_pops_and_parks_no_more),
        T(draining_lets_a_claim_in_flight_come_home),
        T(a_pop_of_one_partition_always_queries_the_database),
        T(a_pop_of_a_partition_that_comes_later_is_woken),
        T(a_push_during_the_claim_of_one_partition_is_not_lost),
        T(one_partition_with_options_is_claimed_the_careful_way_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
