// pop.c, claim.c, lease.c: pops that are given up, and pops whose database goes away.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

// ---- cancelling ----

static void a_parked_pop_is_cancelled_at_once(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_first(&p, "q", 5000, 0);
    broker_pop_cancel(broker, &p.op);
    turn();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, UV_ECANCELED);
    push_to("p1", &m); // wakes nobody
    answer_number(101);
    assert_int_equal(fake_n_calls(), 0);
}

static void a_pop_cancelled_in_flight_gives_its_lease_back(void **state)
{
    (void)state;
    static struct pop p, next;
    uint8_t lease[16];
    rig_open();
    pop_first(&p, "q", 5000, 1);
    memcpy(lease, lease_of(fake_call("claim"), 0), 16);
    broker_pop_cancel(broker, &p.op);
    turn();
    assert_int_equal(p.times, 0); // the claim is out: its outcome must be known first
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.status, UV_ECANCELED);
    assert_int_equal(p.rendered, 0);
    struct pg_call *c = fake_call("release");
    assert_int_equal(fake_len(c->params, PG_UUID, 0), 1);
    assert_memory_equal(lease_of(c, 0), lease, 16);
    fake_row("consumer:l lane:l queue_name:t", (int64_t)101, (int64_t)1, "q");
    fake_answer(c, 0);
    turn();
    pop_start(&next, "q", 0); // the lane is free again
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(next.rendered, 1);
}

static void a_pop_cancelled_in_flight_that_found_nothing_gives_nothing_back(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 5000, 1);
    broker_pop_cancel(broker, &p.op);
    row_status(1, EMPTY, 0);
    answer_claim();
    assert_int_equal(p.status, UV_ECANCELED);
    assert_null(fake_find("release"));
}

static void a_pop_cancelled_during_a_claim_ends_after_it(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_start(&p, "q", 5000);
    broker_pop_cancel(broker, &p.op);
    turn();
    assert_int_equal(p.times, 0);
    answer_changes();
    assert_int_equal(p.status, UV_ECANCELED);
    assert_int_equal(p.times, 1);
}

static void an_answer_that_could_not_be_written_gives_its_lease_back(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 1);
    claim_of_lane(1, false, MINUTE_US);
    broker_give_back(broker, p.op.lease);
    turn();
    assert_memory_equal(lease_of(fake_call("release"), 0), p.op.lease, 16);
}

// ---- outages ----

static void a_lost_claim_gives_its_lease_back_and_the_pop_waits_on(void **state)
{
    (void)state;
    static struct pop p;
    uint8_t lease[16];
    rig_open();
    pop_first(&p, "q", 5000, 1);
    memcpy(lease, lease_of(fake_call("claim"), 0), 16);
    fake_answer(fake_call("claim"), QE_PG_GONE);
    turn();
    assert_int_equal(p.times, 0);
    assert_memory_equal(lease_of(fake_call("release"), 0), lease, 16);
    fake_answer(fake_call("release"), 0);
    wait_ms(100); // the lane is tried again
    assert_non_null(fake_find("claim"));
    assert_memory_not_equal(lease_of(fake_find("claim"), 0), lease, 16);
}

static void a_lost_claim_fails_a_pop_that_does_not_wait(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 1);
    fake_answer(fake_call("claim"), QE_PG_AWAY);
    turn();
    assert_int_equal(p.status, QE_PG_AWAY);
    assert_null(fake_find("release")); // never sent: nothing was leased
}

// Also to one that waits: it must not go on as if nothing had happened.
static void a_lost_claim_with_auto_ack_fails_the_pop(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 5000, 1);
    p.op.auto_ack = true;
    fake_answer(fake_call("claim"), QE_PG_GONE);
    turn();
    assert_int_equal(p.status, QE_PG_GONE);
    assert_true(p.op.op.unknown);
    assert_null(fake_find("release")); // there is no lease
}

static void leases_wait_for_the_database_to_come_back(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 1);
    fake_set_up(false);
    fake_answer(fake_call("claim"), QE_PG_GONE);
    turn();
    assert_int_equal(p.status, QE_PG_GONE);
    assert_int_equal(fake_n_calls(), 0);
    fake_set_up(true);
    turn();
    assert_non_null(fake_find("release"));
}

static void too_many_pops_at_once_are_refused(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_conf.max_pending = 1;
    rig_open();
    pop_start(&a, "q", 5000);
    pop_start(&b, "q", 5000);
    assert_int_equal(b.status, QE_BUSY);
    assert_int_equal(a.times, 0);
}

static void a_pop_parked_in_an_outage_looks_when_the_database_is_back(void **state)
{
    (void)state;
    static struct pop any, one;
    rig_open();
    pop_start(&any, "q", 30000);
    pop_fill(&one, "r", 30000);
    one.op.partition = SPAN("p1");
    pop_give(&one);
    fake_answer(fake_call("changes"), QE_PG_AWAY);
    turn();
    fake_answer(fake_call("changes"), QE_PG_AWAY);
    turn();
    assert_int_equal(any.times + one.times, 0);
    wait_ms(100);
    answer_changes();
    assert_non_null(fake_find("discover"));
    fake_answer(fake_call("discover"), 0);
    assert_non_null(fake_find("discover")); // of the other
}

static void any_number_may_be_parked_without_keeping_others_out(void **state)
{
    (void)state;
    static struct pop a, b;
    static struct push m;
    rig_conf.max_pending = 1;
    rig_open();
    pop_first(&a, "q", 5000, 0);
    pop_start(&b, "q", 5000);
    answer_look();
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 2);
    assert_int_equal(atomic_load(&broker_stats(broker)->pending), 0);
    push_to("p1", &m);
    assert_int_equal(m.status, 0);
    wait_ms(5000);
    assert_int_equal(a.times, 1);
}

// ---- answers that are too long ----

static void after_an_answer_that_is_too_long_a_claim_takes_fewer(void **state)
{
    (void)state;
    static struct pop p[5];
    static const int64_t batches[] = {10, 1, 2, 4, 8};
    rig_open();
    for (unsigned i = 0; i < countof(p); i++) {
        pop_fill(&p[i], "q", 0);
        p[i].op.out.failed = i == 0; // as if its buffer could not grow
        pop_give(&p[i]);
        if (i == 0) {
            answer_changes();
            answer_discover(1);
        }
        assert_int_equal(fake_int(fake_call("claim")->params, PG_INT4, 0, 0), batches[i]);
        claim_of_lane(1, true, 0);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_parked_pop_is_cancelled_at_once),
        T(a_pop_cancelled_in_flight_gives_its_lease_back),
        T(a_pop_cancelled_in_flight_that_found_nothing_gives_nothing_back),
        T(a_pop_cancelled_during_a_claim_ends_after_it),
        T(an_answer_that_could_not_be_written_gives_its_lease_back),
        T(a_lost_claim_gives_its_lease_back_and_the_pop_waits_on),
        T(a_lost_claim_fails_a_pop_that_does_not_wait),
        T(a_lost_claim_with_auto_ack_fails_the_pop),
        T(leases_wait_for_the_database_to_come_back),
        T(too_many_pops_at_once_are_refused),
        T(a_pop_parked_in_an_outage_looks_when_the_database_is_back),
        T(any_number_may_be_parked_without_keeping_others_out),
        T(after_an_answer_that_is_too_long_a_claim_takes_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
