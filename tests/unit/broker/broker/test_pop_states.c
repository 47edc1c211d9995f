// pop_states.c, group_states.c: every pair of a state and an event.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

static struct pop p, other;

static void answer(const char *name, int status)
{
    struct pg_call *call = fake_find(name);

    assert_non_null(call);
    fake_answer(call, status);
    turn();
}

static void answer_feed(void)
{
    fake_row("snapshot:t", "1:1:");
    answer("changes", 0);
}

static struct group *group(void)
{
    return group_get(broker, queue_find(broker, SPAN("q")), SPAN("g"));
}

// Out of its list, as while other pops of the list are being placed.
static void unseat(enum pop_event why, struct pop_list *unplaced)
{
    TAILQ_INIT(unplaced);
    pops_unseat(broker, &group()->seats, why, unplaced);
    assert_ptr_equal(TAILQ_FIRST(unplaced), &p.op);
    assert_int_equal(p.op.state, POP_UNPLACED);
}

#define STATE(name) assert_int_equal(p.op.state, name)

static void assert_ended(int status)
{
    STATE(POP_DONE);
    turn();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, status);
    assert_int_equal(broker->n_parked, 0);
}

// The database is away.  If the pop fails later, that is for another reason.
static void assert_waits_on(void)
{
    assert_int_equal(p.times, 0);
    assert_true(broker->feed_missed);
    assert_string_equal(p.op.op.why.text, "");
}

// ---- the way into each state ----

static void make_looking(unsigned timeout_ms)
{
    rig_open();
    pop_start(&p, "q", timeout_ms);
    STATE(POP_LOOKING);
}

static void make_discovering(unsigned timeout_ms)
{
    make_looking(timeout_ms);
    answer_feed();
    STATE(POP_DISCOVERING);
    assert_false(p.op.looked); // partitions are still to be found
}

// It waits for the discovery of another pop, which finds nothing.
static void make_seated(void)
{
    rig_open();
    pop_start(&other, "q", 0);
    answer_feed();
    pop_start(&p, "q", 0);
    STATE(POP_SEATED);
    assert_int_equal(broker->n_parked, 0);
}

static void make_parked(void)
{
    rig_open();
    pop_first(&p, "q", 5000, 0);
    STATE(POP_PARKED);
    assert_int_equal(broker->n_parked, 1);
    assert_true(p.op.looked);
}

static void make_claiming(unsigned timeout_ms, unsigned n_lanes)
{
    rig_open();
    pop_first(&p, "q", timeout_ms, n_lanes);
    STATE(POP_CLAIMING);
    assert_true(p.op.looked);
}

static void start_on_lane(unsigned timeout_ms)
{
    rig_open();
    pop_fill(&p, "q", timeout_ms);
    p.op.partition = SPAN("p1");
    pop_give(&p);
    answer_feed();
    STATE(POP_DISCOVERING);
}

static void make_claiming_on_lane(unsigned timeout_ms)
{
    start_on_lane(timeout_ms);
    answer_discover(1);
    STATE(POP_CLAIMING);
    assert_true(p.op.looked);
}

// A pop of partition p1 flies to the retries of it.
static void make_claiming_retries(unsigned timeout_ms)
{
    make_claiming_on_lane(timeout_ms);
    row_status(1, EMPTY, 0);
    answer("claim", 0);
    STATE(POP_PARKED);
    struct lane *lane =
        lane_get_retry(broker, queue_find(broker, SPAN("q")), uuid(9), SPAN("p1"), SPAN("g"));
    lane_set_num(broker, lane, 9, uuid(9));
    struct consumer *c = consumer_get(broker, group(), lane);
    consumer_set_num(broker, c, 109);
    consumer_ready(broker, c, false);
    turn();
    STATE(POP_CLAIMING);
    assert_int_equal(target_of(fake_find("claim_careful"), 0), 109);
}

static void make_noting(void)
{
    rig_open();
    pop_first(&other, "q", 0, 0);
    wait_ms(31000);
    pop_start(&p, "q", 0);
    answer_feed();
    STATE(POP_NOTING);
}

static void cancel(void)
{
    broker_pop_cancel(broker, &p.op);
    turn();
    STATE(POP_LEAVING);
    assert_int_equal(p.times, 0);
}

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

static bool aborts(void (*act)(unsigned state, unsigned event), unsigned state, unsigned event)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGABRT, SIG_DFL); // cmocka handles it
        close(STDERR_FILENO);
        close(STDOUT_FILENO);
        act(state, event);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

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

// ---- groups ----

static void handle_group(unsigned state, unsigned event)
{
    struct group g = {.state = (uint8_t)state};

    group_handle(&g, event);
}

static void states_of_a_group(void **state)
{
    (void)state;
    enum { NEVER = GROUP_STATES };
    static const uint8_t expected[GROUP_STATES][GROUP_EVENTS] = {
        // asked, learnt, failed, missed, changed
        [GROUP_UNKNOWN] = {GROUP_DISCOVERING, NEVER, NEVER, GROUP_UNKNOWN, GROUP_UNKNOWN},
        [GROUP_KNOWN] = {GROUP_REDISCOVERING, NEVER, NEVER, GROUP_UNKNOWN, GROUP_UNKNOWN},
        [GROUP_DISCOVERING] = {NEVER, GROUP_KNOWN, GROUP_UNKNOWN, GROUP_DISCOVERING,
                               GROUP_STALE},
        [GROUP_REDISCOVERING] = {NEVER, GROUP_KNOWN, GROUP_KNOWN, GROUP_DISCOVERING,
                                 GROUP_STALE},
        [GROUP_STALE] = {NEVER, GROUP_UNKNOWN, GROUP_UNKNOWN, GROUP_STALE, GROUP_STALE},
    };
    for (unsigned s = 0; s < GROUP_STATES; s++)
        for (unsigned e = 0; e < GROUP_EVENTS; e++) {
            struct group g = {.state = (uint8_t)s};
            if (expected[s][e] == NEVER) {
                assert_true(aborts(handle_group, s, e));
                continue;
            }
            group_handle(&g, e);
            assert_int_equal(g.state, expected[s][e]);
        }
}

// The rows of a discovery that a change has overtaken do not count as complete.
static void a_change_during_a_discovery_causes_another(void **state)
{
    (void)state;
    make_discovering(5000);
    group_changed(broker, group());
    assert_int_equal(group()->state, GROUP_STALE);
    answer_discover(0);
    STATE(POP_DISCOVERING);
    assert_int_equal(group()->state, GROUP_DISCOVERING);
    answer_discover(0);
    STATE(POP_PARKED);
    assert_int_equal(group()->state, GROUP_KNOWN);
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
        T(all_other_pairs_are_mistakes),
        T(states_of_a_group),
        T(a_change_during_a_discovery_causes_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
