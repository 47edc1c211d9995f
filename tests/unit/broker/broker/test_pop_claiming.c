// pop_states.c: a pop that claims, notes or leaves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pop_ways.h"

// ---- claiming, and served ----

static uint8_t state_at_render;
static void on_render(struct pop_op *op, const struct pop_result *result)
{
    (void)result;
    state_at_render = op->state;
}

static void claiming_render_then_over(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    p.op.render = on_render;
    state_at_render = POP_STATES;
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(state_at_render, POP_SERVED);
    assert_ended(0);
}

// Its consumer is leased then, but the pop has its messages.
static void served_claim_empty(void **state)
{
    (void)state;
    make_claiming_on_lane(5000);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
    assert_ended(0);
}

static void served_target_gone(void **state)
{
    (void)state;
    rig_open();
    pop_fill(&p, "q", 5000);
    p.op.partitions = 2;
    pop_give(&p);
    answer_feed();
    answer_discover(2);
    row_claimed(1, 1, false, MINUTE_US), row_status(2, GONE, 0);
    answer_careful_claim();
    assert_int_equal(p.rendered, 1);
    assert_ended(0);
}

static void claiming_target_gone(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    row_status(1, GONE, 0);
    answer_claim();
    STATE(POP_DISCOVERING); // it looks for the partitions again
    assert_false(p.op.looked);
}

static void claiming_target_lost(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    p.op.looked = false;
    answer("claim", QE_PG_AWAY);
    STATE(POP_PARKED); // claiming, claim lost
    assert_true(p.op.looked);
    assert_waits_on();
}

static void claiming_claim_lost_keeps_what_it_knows(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    broker_forget(broker); // its consumer is gone
    answer("claim", QE_PG_AWAY);
    STATE(POP_PARKED);
    assert_false(p.op.looked);
}

static void claiming_claim_lost_does_not_wait(void **state)
{
    (void)state;
    make_claiming(0, 1);
    answer("claim", QE_PG_AWAY);
    assert_ended(QE_PG_AWAY);
}

static void claiming_claim_empty(void **state)
{
    (void)state;
    make_claiming_on_lane(5000);
    p.op.looked = false;
    row_status(1, EMPTY, 0);
    answer_claim();
    STATE(POP_PARKED);
    assert_true(p.op.looked);
}

static void claiming_claim_over(void **state)
{
    (void)state;
    make_claiming(5000, 2);
    row_status(1, EMPTY, 0);
    answer_claim();
    STATE(POP_CLAIMING); // of the other lane
    assert_true(p.op.looked);
    assert_int_equal(target_of(fake_call("claim"), 0), 102);
    p.op.looked = false;
    row_status(1, EMPTY, 0);
    answer_claim();
    STATE(POP_PARKED);
    assert_false(p.op.looked);
}

static void claiming_claim_refused(void **state)
{
    (void)state;
    make_claiming(0, 1);
    answer("claim", QE_PG_RETRY); // never sent
    STATE(POP_LOOKING);
    assert_false(p.op.looked);
    assert_string_equal(p.op.op.why.text, "");
}

static void claiming_claim_refused_is_placed(void **state)
{
    (void)state;
    make_claiming(5000, 2);
    answer("claim", QE_PG_RETRY);
    STATE(POP_CLAIMING);
    assert_int_equal(target_of(fake_find("claim"), 0), 102);
}

static void claiming_claim_lost_on_lane(void **state)
{
    (void)state;
    make_claiming_on_lane(5000);
    answer("claim", QE_PG_AWAY);
    STATE(POP_PARKED);
    assert_true(p.op.looked);
}

static void claiming_retries_lost_and_gone(void **state)
{
    (void)state;
    make_claiming_retries(5000);
    broker_forget(broker);
    answer("claim_careful", QE_PG_AWAY);
    STATE(POP_LOOKING);
    assert_false(p.op.looked);
}

static void claiming_retries_lost(void **state)
{
    (void)state;
    make_claiming_retries(5000);
    answer("claim_careful", QE_PG_AWAY);
    STATE(POP_CLAIMING); // the partition itself
    assert_int_equal(target_of(fake_find("claim"), 0), 101);
    assert_waits_on();
    assert_true(p.op.looked);
}

static void claiming_failed(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    p.op.auto_ack = true;
    answer("claim", QE_PG_GONE);
    assert_ended(QE_PG_GONE);
}

// ---- noting ----

static void noting_noted(void **state)
{
    (void)state;
    static struct push m;
    make_noting();
    m = (struct push){0};
    push_item(&m, "q", "p1", NULL);
    push_start(&m);
    turn();
    fake_row("idx:i lane:l lane_id:u", 0, (int64_t)1, uuid(1));
    answer("ensure_lanes", 0);
    row_stored(1);
    answer("push", 0);
    fake_row("idx:i lane:l consumer:l", 0, (int64_t)1, (int64_t)101);
    answer("ensure_consumers", 0); // it was empty before
    answer("note_empty", 0);
    assert_ended(0);
    assert_int_equal(p.rendered, 0);
}

static void noting_cancel(void **state)
{
    (void)state;
    make_noting();
    cancel();
    answer("note_empty", 0); // leaving, noted
    assert_ended(UV_ECANCELED);
}

// ---- leaving: claiming, cancel ----

static void leaving_lost_or_failed(void **state)
{
    (void)state;
    make_looking(0);
    cancel();
    answer("changes", QE_PG_AWAY); // changes lost
    assert_ended(UV_ECANCELED);
}

static void leaving_discovery_lost(void **state)
{
    (void)state;
    make_discovering(0);
    cancel();
    answer("discover", QE_PG_AWAY);
    assert_ended(UV_ECANCELED);
}

static void leaving_failed(void **state)
{
    (void)state;
    make_discovering(0);
    cancel();
    answer("discover", QE_PG_DATA);
    assert_ended(UV_ECANCELED);
}

static void leaving_claim_over(void **state)
{
    (void)state;
    make_claiming(5000, 2);
    cancel();
    claim_of_lane(1, false, MINUTE_US);
    assert_ended(UV_ECANCELED);
    assert_int_equal(p.rendered, 0);
    assert_non_null(fake_find("release"));
}

static void leaving_claim_empty(void **state)
{
    (void)state;
    make_claiming_on_lane(5000);
    cancel();
    row_status(1, EMPTY, 0);
    answer_claim();
    assert_ended(UV_ECANCELED);
}

static void leaving_target_gone(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    cancel();
    row_status(1, GONE, 0);
    answer_claim();
    assert_ended(UV_ECANCELED);
}

static void leaving_target_and_claim_lost(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    cancel();
    answer("claim", QE_PG_AWAY);
    assert_ended(UV_ECANCELED);
}

static void leaving_claim_refused(void **state)
{
    (void)state;
    make_claiming(5000, 1);
    cancel();
    answer("claim", QE_PG_RETRY);
    assert_ended(UV_ECANCELED);
}

static void leaving_retries_lost(void **state)
{
    (void)state;
    make_claiming_retries(5000);
    cancel();
    answer("claim_careful", QE_PG_AWAY);
    assert_ended(UV_ECANCELED);
}

// ---- done ----

static void done_cancel(void **state)
{
    (void)state;
    make_parked();
    pops_handle(broker, &group()->seats, POP_ON_DRAIN);
    STATE(POP_DONE);
    broker_pop_cancel(broker, &p.op); // its answer is on its way
    assert_ended(0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(claiming_render_then_over),
        T(served_claim_empty),
        T(served_target_gone),
        T(claiming_target_gone),
        T(claiming_target_lost),
        T(claiming_claim_lost_keeps_what_it_knows),
        T(claiming_claim_lost_does_not_wait),
        T(claiming_claim_empty),
        T(claiming_claim_over),
        T(claiming_claim_refused),
        T(claiming_claim_refused_is_placed),
        T(claiming_claim_lost_on_lane),
        T(claiming_retries_lost_and_gone),
        T(claiming_retries_lost),
        T(claiming_failed),
        T(noting_noted),
        T(noting_cancel),
        T(leaving_lost_or_failed),
        T(leaving_discovery_lost),
        T(leaving_failed),
        T(leaving_claim_over),
        T(leaving_claim_empty),
        T(leaving_target_gone),
        T(leaving_target_and_claim_lost),
        T(leaving_claim_refused),
        T(leaving_retries_lost),
        T(done_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
