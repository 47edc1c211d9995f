// pop_ways.c: the way into each state of a pop.
#include "pop_ways.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct pop p, other;

void answer(const char *name, int status)
{
    struct pg_call *call = fake_find(name);

    assert_non_null(call);
    fake_answer(call, status);
    turn();
}

void answer_feed(void)
{
    fake_row("snapshot:t", "1:1:");
    answer("changes", 0);
}

struct group *group(void)
{
    return group_get(broker, queue_find(broker, SPAN("q")), SPAN("g"));
}

// Out of its list, as while other pops of the list are being placed.
void unseat(enum pop_event why, struct pop_list *unplaced)
{
    TAILQ_INIT(unplaced);
    pops_unseat(broker, &group()->seats, why, unplaced);
    assert_ptr_equal(TAILQ_FIRST(unplaced), &p.op);
    assert_int_equal(p.op.state, POP_UNPLACED);
}

void assert_ended(int status)
{
    STATE(POP_DONE);
    turn();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, status);
    assert_int_equal(broker->n_parked, 0);
}

// The database is away.  If the pop fails later, that is for another reason.
void assert_waits_on(void)
{
    assert_int_equal(p.times, 0);
    assert_true(broker->feed_missed);
    assert_string_equal(p.op.op.why.text, "");
}

// ---- the way into each state ----

void make_looking(unsigned timeout_ms)
{
    rig_open();
    pop_start(&p, "q", timeout_ms);
    STATE(POP_LOOKING);
}

void make_discovering(unsigned timeout_ms)
{
    make_looking(timeout_ms);
    answer_feed();
    STATE(POP_DISCOVERING);
    assert_false(p.op.looked); // partitions are still to be found
}

// It waits for the discovery of another pop, which finds nothing.
void make_seated(void)
{
    rig_open();
    pop_start(&other, "q", 0);
    answer_feed();
    pop_start(&p, "q", 0);
    STATE(POP_SEATED);
    assert_int_equal(broker->n_parked, 0);
}

void make_parked(void)
{
    rig_open();
    pop_first(&p, "q", 5000, 0);
    STATE(POP_PARKED);
    assert_int_equal(broker->n_parked, 1);
    assert_true(p.op.looked);
}

void make_claiming(unsigned timeout_ms, unsigned n_lanes)
{
    rig_open();
    pop_first(&p, "q", timeout_ms, n_lanes);
    STATE(POP_CLAIMING);
    assert_true(p.op.looked);
}

void start_on_lane(unsigned timeout_ms)
{
    rig_open();
    pop_fill(&p, "q", timeout_ms);
    p.op.partition = SPAN("p1");
    pop_give(&p);
    answer_feed();
    STATE(POP_DISCOVERING);
}

void make_claiming_on_lane(unsigned timeout_ms)
{
    start_on_lane(timeout_ms);
    answer_discover(1);
    STATE(POP_CLAIMING);
    assert_true(p.op.looked);
}

// A pop of partition p1 flies to the retries of it.
void make_claiming_retries(unsigned timeout_ms)
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

void make_noting(void)
{
    rig_open();
    pop_first(&other, "q", 0, 0);
    wait_ms(31000);
    pop_start(&p, "q", 0);
    answer_feed();
    STATE(POP_NOTING);
}

void cancel(void)
{
    broker_pop_cancel(broker, &p.op);
    turn();
    STATE(POP_LEAVING);
    assert_int_equal(p.times, 0);
}

// ---- mistakes ----

bool aborts(void (*act)(unsigned state, unsigned event), unsigned state, unsigned event)
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
