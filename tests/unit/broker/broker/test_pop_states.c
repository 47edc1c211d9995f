// pop_states.c: a pop that waits, and the pairs of a state and an event that cannot occur.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pop_ways.h"

// ---- unplaced ----

static void unplaced_place(void **state)
{
    (void)state;
    struct pop_list unplaced;
    make_parked();
    unseat(POP_ON_UNSEAT, &unplaced);
    pops_place(broker, &unplaced);
    STATE(POP_PARKED);
}

static void unplaced_take(void **state)
{
    (void)state;
    struct pop_list unplaced;
    make_parked();
    unseat(POP_ON_UNSEAT, &unplaced);
    struct lane *lane = lane_get(broker, queue_find(broker, SPAN("q")), SPAN("p1"));
    lane_set_num(broker, lane, 1, uuid(1));
    struct consumer *c = consumer_get(broker, group(), lane);
    consumer_set_num(broker, c, 101);
    pop_fly_to(broker, &p.op, c);
    STATE(POP_CLAIMING);
    turn();
    claim_of_lane(1, false, MINUTE_US);
    assert_ended(0);
}

static void unplaced_cancel_then_place(void **state)
{
    (void)state;
    struct pop_list unplaced;
    make_parked();
    unseat(POP_ON_UNSEAT, &unplaced);
    pop_handle(broker, &p.op, POP_ON_CANCEL, UV_ECANCELED);
    STATE(POP_LEAVING);
    pops_place(broker, &unplaced);
    assert_ended(UV_ECANCELED);
}

// ---- looking ----

static void looking_changes(void **state)
{
    (void)state;
    make_parked();
    struct pop_list unplaced;
    unseat(POP_ON_FORGET, &unplaced);
    wait_ms(30); // another look was long ago
    pops_place(broker, &unplaced);
    turn();
    STATE(POP_LOOKING);
    assert_false(p.op.looked);
    answer_feed();
    STATE(POP_PARKED); // placed, and nothing was there
    assert_true(p.op.looked);
}

static void looking_changes_lost(void **state)
{
    (void)state;
    make_looking(5000);
    answer("changes", QE_PG_AWAY);
    STATE(POP_PARKED);
    assert_true(p.op.looked);
    assert_waits_on();
}

static void looking_changes_lost_does_not_wait(void **state)
{
    (void)state;
    make_looking(0);
    answer("changes", QE_PG_AWAY);
    assert_ended(QE_PG_AWAY);
    assert_false(broker->feed_missed);
}

static void looking_cancel(void **state)
{
    (void)state;
    make_looking(5000);
    cancel();
    answer_feed(); // leaving, changes
    assert_ended(UV_ECANCELED);
}

// ---- discovering ----

static void discovering_discovered(void **state)
{
    (void)state;
    make_discovering(5000);
    answer_discover(0);
    STATE(POP_PARKED);
    assert_true(p.op.looked);
}

static void discovering_discovery_lost(void **state)
{
    (void)state;
    start_on_lane(5000);
    p.op.looked = true;
    answer("discover", QE_PG_AWAY);
    STATE(POP_PARKED);
    assert_true(p.op.looked); // as it was
    assert_waits_on();
}

static void discovering_discovery_lost_does_not_wait(void **state)
{
    (void)state;
    make_discovering(0);
    answer("discover", QE_PG_AWAY);
    assert_ended(QE_PG_AWAY);
}

static void discovering_failed(void **state)
{
    (void)state;
    make_discovering(5000);
    answer("discover", QE_PG_DATA);
    assert_ended(QE_BAD_PARAM);
}

static void discovering_cancel(void **state)
{
    (void)state;
    make_discovering(5000);
    cancel();
    answer_discover(1); // leaving, discovered
    assert_ended(UV_ECANCELED);
}

// ---- seated ----

static void seated_unseat(void **state)
{
    (void)state;
    struct pop_list unplaced;
    make_seated();
    p.op.looked = true;
    unseat(POP_ON_UNSEAT, &unplaced);
    assert_true(p.op.looked);
    pops_place(broker, &unplaced);
    STATE(POP_SEATED);
    p.op.looked = false;
    unseat(POP_ON_UNSEAT, &unplaced);
    assert_false(p.op.looked);
    pops_place(broker, &unplaced);
}

static void seated_forget(void **state)
{
    (void)state;
    struct pop_list unplaced;
    make_seated();
    p.op.looked = true;
    unseat(POP_ON_FORGET, &unplaced);
    assert_false(p.op.looked);
    pops_place(broker, &unplaced);
}

static void seated_take(void **state)
{
    (void)state;
    make_seated();
    answer_discover(2); // one for each of both
    STATE(POP_CLAIMING);
    assert_false(p.op.looked); // it has not asked
    assert_true(TAILQ_EMPTY(&group()->seats));
}

// A consumer whose number is being queried may have messages.
static void make_seated_for_an_answer(void)
{
    static struct push m;
    rig_open();
    pop_first(&other, "q", 0, 0);
    push_to("p1", &m);
    pop_start(&p, "q", 0);
    if (fake_find("changes"))
        answer_feed();
    STATE(POP_SEATED);
}

static void seated_answered(void **state)
{
    (void)state;
    make_seated_for_an_answer();
    answer("ensure_consumers", QE_PG_AWAY);
    assert_ended(0);
}

// A pop of one partition waits for the end of another claim of it.
static void seated_answered_waits(void **state)
{
    (void)state;
    rig_open();
    pop_first(&other, "q", 0, 1);
    pop_fill(&p, "q", 5000);
    p.op.partition = SPAN("p1");
    pop_give(&p);
    STATE(POP_SEATED);
    assert_false(p.op.looked);
    claim_of_lane(1, false, MINUTE_US);
    STATE(POP_PARKED);
    assert_false(p.op.looked);
    struct pop_list *seats = &p.op.only->seats;
    p.op.looked = true;
    pops_handle(broker, seats, POP_ON_ANSWERED);
    assert_true(p.op.looked);
}

static void seated_page(void **state)
{
    (void)state;
    make_discovering(0);
    for (unsigned pages = 0; pages <= 5; pages++) {
        assert_int_equal(p.times, 0);
        fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)0, uuid(0), "p",
                 (int64_t)0, 0);
        answer("discover", 0);
        if (pages < 5)
            STATE(POP_SEATED);
        if (pages < 5)
            assert_true(p.op.looked);
        if (pages == 4)
            p.op.looked = false;
    }
    assert_false(p.op.looked);
    assert_ended(0);
}

static void seated_cancel(void **state)
{
    (void)state;
    make_seated();
    broker_pop_cancel(broker, &p.op);
    assert_ended(UV_ECANCELED);
    assert_true(TAILQ_EMPTY(&group()->seats));
}

static void seated_drain(void **state)
{
    (void)state;
    make_seated();
    broker_drain(broker);
    assert_ended(0);
}

// ---- parked ----

static void parked_unseat(void **state)
{
    (void)state;
    struct pop_list unplaced;
    make_parked();
    unseat(POP_ON_UNSEAT, &unplaced);
    assert_int_equal(broker->n_parked, 0);
    assert_true(p.op.looked);
    pops_place(broker, &unplaced);
    STATE(POP_PARKED);
}

static void parked_forget(void **state)
{
    (void)state;
    struct pop_list unplaced;
    make_parked();
    unseat(POP_ON_FORGET, &unplaced);
    assert_false(p.op.looked);
    pops_place(broker, &unplaced);
}

static void parked_take(void **state)
{
    (void)state;
    static struct push m;
    make_parked();
    push_to("p1", &m);
    answer_number(101);
    STATE(POP_CLAIMING);
    assert_int_equal(broker->n_parked, 0);
    claim_of_lane(1, false, MINUTE_US);
    assert_ended(0);
}

static void parked_answered_or_page(void **state)
{
    (void)state;
    make_parked();
    p.op.looked = false;
    wait_ms(30); // it would look into the feed
    pops_handle(broker, &group()->seats, POP_ON_ANSWERED);
    STATE(POP_PARKED);
    assert_false(p.op.looked);
    for (unsigned pages = 0; pages < 10; pages++)
        pops_handle(broker, &group()->seats, POP_ON_PAGE);
    STATE(POP_PARKED);
    assert_int_equal(broker->n_parked, 1);
    assert_false(p.op.looked);
}

static void parked_deadline(void **state)
{
    (void)state;
    make_parked();
    wait_ms(4999);
    STATE(POP_PARKED);
    wait_ms(2);
    assert_ended(0);
}

static void parked_cancel(void **state)
{
    (void)state;
    make_parked();
    broker_pop_cancel(broker, &p.op);
    assert_ended(UV_ECANCELED);
}

static void parked_drain(void **state)
{
    (void)state;
    make_parked();
    broker_drain(broker);
    assert_ended(0);
}

// ---- pairs that cannot occur ----

#define ON(event) (1u << POP_ON_##event)
#define ENDS_OF_CLAIMS                                                      \
    (ON(TARGET_GONE) | ON(TARGET_LOST) | ON(CLAIM_EMPTY) | ON(CLAIM_OVER) | \
     ON(CLAIM_REFUSED) | ON(CLAIM_LOST) | ON(RETRIES_LOST) | ON(FAILED))
#define OF_SEATS (ON(UNSEAT) | ON(FORGET) | ON(TAKE) | ON(ANSWERED) | ON(PAGE) | ON(DRAIN))

static const uint32_t possible[POP_STATES] = {
    [POP_UNPLACED] = ON(PLACE) | ON(TAKE) | ON(CANCEL),
    [POP_LOOKING] = ON(CHANGES) | ON(CHANGES_LOST) | ON(CANCEL),
    [POP_DISCOVERING] = ON(DISCOVERED) | ON(DISCOVERY_LOST) | ON(FAILED) | ON(CANCEL),
    [POP_SEATED] = OF_SEATS | ON(CANCEL),
    [POP_PARKED] = OF_SEATS | ON(DEADLINE) | ON(CANCEL),
    [POP_CLAIMING] = ENDS_OF_CLAIMS | ON(RENDER) | ON(CANCEL),
    [POP_SERVED] = ON(TARGET_GONE) | ON(CLAIM_EMPTY) | ON(CLAIM_OVER),
    [POP_NOTING] = ON(NOTED) | ON(CANCEL),
    [POP_LEAVING] = ENDS_OF_CLAIMS | ON(PLACE) | ON(CHANGES) | ON(CHANGES_LOST) |
                    ON(DISCOVERED) | ON(DISCOVERY_LOST) | ON(NOTED),
    [POP_DONE] = ON(CANCEL),
};

static void handle_pop(unsigned state, unsigned event)
{
    struct pop_op op = {.state = (uint8_t)state};

    pop_handle(broker, &op, event, 0);
}

static void all_other_pairs_are_mistakes(void **state)
{
    (void)state;
    rig_open();
    for (unsigned s = 0; s < POP_STATES; s++)
        for (unsigned e = 0; e < POP_EVENTS; e++)
            if (!(possible[s] & 1u << e) && !aborts(handle_pop, s, e))
                fail_msg("event %u in state %u", e, s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(unplaced_place),
        T(unplaced_take),
        T(unplaced_cancel_then_place),
        T(looking_changes),
        T(looking_changes_lost),
        T(looking_changes_lost_does_not_wait),
        T(looking_cancel),
        T(discovering_discovered),
        T(discovering_discovery_lost),
        T(discovering_discovery_lost_does_not_wait),
        T(discovering_failed),
        T(discovering_cancel),
        T(seated_unseat),
        T(seated_forget),
        T(seated_take),
        T(seated_answered),
        T(seated_answered_waits),
        T(seated_page),
        T(seated_cancel),
        T(seated_drain),
        T(parked_unseat),
        T(parked_forget),
        T(parked_take),
        T(parked_answered_or_page),
        T(parked_deadline),
        T(parked_cancel),
        T(parked_drain),
        T(all_other_pairs_are_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
