// locked.c: requests for a lane that another transaction has locked wait, and no others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "rig.h"

#define LANES PG_INT8, 0

static void push_to_lanes(struct push *p, const char *first, const char *second)
{
    push_item(p, "q", first, NULL);
    if (second)
        push_item(p, "q", second, NULL);
    push_start(p);
    turn();
}

static void fail_locked(const char *statement)
{
    fake_answer_locked(fake_call(statement));
    turn();
}

// This one of the requested lanes is locked (0: none).
static void answer_probe(int64_t locked)
{
    wait_ms(1);
    if (locked != 0)
        fake_row("lane:l", locked);
    fake_answer(fake_call("locked_lanes"), 0);
    turn();
}

// Lanes 1 to 3 are known, and lane 1 is locked; a waits for it.
static void lock_first_lane(struct push *a)
{
    static struct push known;

    known = (struct push){0};
    rig_open();
    push_item(&known, "q", "p1", NULL), push_item(&known, "q", "p2", NULL);
    push_item(&known, "q", "p3", NULL);
    push_start(&known);
    answer_lanes();
    answer_stored();
    push_to_lanes(a, "p1", NULL);
    fail_locked("push");
    answer_probe(1);
    assert_int_equal(a->times, 0);
}

static void neighbours_in_the_batch_go_on_and_the_locked_lane_keeps_its_order(void **state)
{
    (void)state;
    static struct push known, first, a, b, c, d;
    known = first = a = b = c = d = (struct push){0};
    rig_open();
    push_item(&known, "q", "p1", NULL), push_item(&known, "q", "p2", NULL);
    push_start(&known);
    answer_lanes(); // while this is out the others gather
    push_to_lanes(&a, "p1", NULL), push_to_lanes(&b, "p2", NULL), push_to_lanes(&c, "p1", NULL);
    answer_stored();
    assert_int_equal(fake_len(fake_call("push")->params, LANES), 2);
    fail_locked("push");
    push_to_lanes(&d, "p1", NULL);
    assert_null(fake_find("push")); // both lanes are suspected
    answer_probe(1);
    answer_stored();
    assert_int_equal(b.times, 1);
    assert_int_equal(a.times + c.times + d.times, 0);
    wait_ms(50);
    answer_probe(0);
    struct pg_call *call = fake_call("push");
    assert_int_equal(fake_len(call->params, LANES), 1);
    span keys = fake_bytes(call->params, PG_BYTEA, 0, 0);
    assert_int_equal(keys.len, 48);
    assert_memory_equal(keys.ptr, a.items[0].key, 16);
    assert_memory_equal(keys.ptr + 16, c.items[0].key, 16);
    assert_memory_equal(keys.ptr + 32, d.items[0].key, 16);
    answer_stored();
    assert_int_equal(a.times + c.times + d.times, 3);
}

static void a_request_for_several_lanes_leaves_its_locked_part_behind(void **state)
{
    (void)state;
    static struct push a, b, c;
    a = b = c = (struct push){0};
    lock_first_lane(&a);
    push_to_lanes(&b, "p1", "p2");
    assert_int_equal(fake_int(fake_call("push")->params, LANES, 0), 2);
    answer_stored();
    assert_int_equal(b.times, 0);
    push_to_lanes(&c, "p2", NULL);
    answer_stored();
    assert_int_equal(c.times, 1);
    wait_ms(50);
    answer_probe(0);
    answer_stored();
    assert_int_equal(a.status + b.status, 0);
    assert_int_equal(a.times + b.times, 2);
    assert_int_equal(b.items[0].status, PUSH_QUEUED);
    assert_int_equal(b.items[1].status, PUSH_QUEUED);
}

static void the_part_left_behind_keeps_its_place(void **state)
{
    (void)state;
    static struct push a, b, c;
    a = b = c = (struct push){0};
    lock_first_lane(&a);
    wait_ms(1);
    push_to_lanes(&b, "p1", "p2");
    wait_ms(1);
    push_to_lanes(&c, "p1", NULL); // while the rest of b is out
    row_stored(2);
    fake_answer(fake_find("push"), 0);
    turn();
    wait_ms(50);
    answer_probe(0);
    span keys = fake_bytes(fake_find("push")->params, PG_BYTEA, 0, 0);
    assert_int_equal(keys.len, 48);
    assert_memory_equal(keys.ptr, a.items[0].key, 16);
    assert_memory_equal(keys.ptr + 16, b.items[0].key, 16);
    assert_memory_equal(keys.ptr + 32, c.items[0].key, 16);
    answer_stored();
    assert_int_equal(a.times + b.times + c.times, 3);
}

static void a_whole_request_waits_and_is_overtaken_in_its_other_lanes(void **state)
{
    (void)state;
    enum { LANE_LIMITED = 5 };
    static struct push a, b, c;
    a = b = c = (struct push){0};
    lock_first_lane(&a);
    push_to_lanes(&c, "p3", NULL);
    fake_row("seg:i status:i", 1, LANE_LIMITED); // so the next one goes whole
    fake_answer(fake_call("push"), 0);
    turn();
    answer_stored();
    push_to_lanes(&b, "p3", "p1");
    assert_null(fake_find("push"));
    c = (struct push){0};
    push_to_lanes(&c, "p3", NULL);
    answer_stored();
    assert_int_equal(c.times, 1);
    assert_int_equal(b.times, 0);
    wait_ms(50);
    answer_probe(0);
    answer_stored(); // a, then b by itself
    answer_stored();
    assert_int_equal(a.times + b.times, 2);
}

// Answers the request; the name of lane 1 is locked or not.
static void serve_names(bool locked)
{
    struct pg_call *c;

    while ((c = fake_find("ensure_lanes"))) {
        bool alone = fake_scalar(c->params, 2);
        span name = fake_bytes(c->params, PG_TEXT, 1, 0);
        unsigned num = (unsigned)(name.ptr[1] - '0');
        assert_int_equal(fake_len(c->params, PG_TEXT, 1), 1);
        if (num == 1 && locked && alone)
            fake_row("idx:i lane:l", 0, (int64_t)0);
        else if (!(num == 1 && locked))
            fake_row("idx:i lane:l lane_id:u", 0, (int64_t)num, uuid(num));
        if (num == 1 && locked && !alone)
            fake_answer_locked(c);
        else
            fake_answer(c, 0);
        turn();
        if (num == 1 && locked && alone)
            break; // it is requested again
    }
}

static void serve_push(int64_t lane)
{
    row_stored(lane);
    fake_answer(fake_find("push"), 0);
    turn();
}

static void a_name_that_others_create_is_requested_alone(void **state)
{
    (void)state;
    static struct push a, b, c;
    a = b = c = (struct push){0};
    rig_open();
    push_to_lanes(&a, "p1", NULL);
    push_to_lanes(&b, "p2", NULL); // is requested when the first call is back
    serve_names(true);
    serve_names(true);
    serve_push(2);
    assert_int_equal(b.times, 1);
    push_to_lanes(&c, "p3", NULL);
    for (unsigned i = 0; i < 5 && !fake_find("push"); i++)
        serve_names(true);
    serve_push(3);
    assert_int_equal(c.times, 1);
    for (unsigned i = 0; i < 100; i++)
        wait_ms(10), serve_names(true);
    assert_int_equal(a.times, 0);
    for (unsigned i = 0; i < 20 && !fake_find("push"); i++)
        wait_ms(10), serve_names(false);
    serve_push(1);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.status, 0);
}

// Learnt from a pop before the name is requested again; then the lane is deleted.
static void a_locked_name_that_is_learnt_otherwise_can_be_requested_again(void **state)
{
    (void)state;
    enum { LANE_GONE = 3 };
    static struct push a;
    static struct pop p;
    a = (struct push){0}, p = (struct pop){0};
    rig_open();
    push_to_lanes(&a, "p1", NULL);
    serve_names(true);
    serve_names(true);
    pop_first(&p, "q", 60000, 1);
    row_status(1, EMPTY, 0);
    answer_claim();
    for (unsigned i = 0; i < 100 && !fake_find("push_claim"); i++) {
        wait_ms(10), serve_names(true);
        if (fake_find("locked_lanes"))
            fake_answer(fake_find("locked_lanes"), 0);
        turn();
    }
    fake_row("seg:i stored_status:i", 1, LANE_GONE);
    row_status(1, GONE, 0);
    fake_answer(fake_find("push_claim"), 0);
    turn();
    assert_non_null(fake_find("ensure_lanes"));
    serve_names(false);
    serve_push(1);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.status, 0);
    broker_pop_cancel(broker, &p.op);
    turn();
    fake_fail_all(QE_PG_AWAY);
}

// A request for a name creates it.  The request has been refused, and the queue may be deleted
// by now.
static void a_name_without_waiting_requests_is_not_requested(void **state)
{
    (void)state;
    static struct push a;
    a = (struct push){0};
    rig_open();
    push_to_lanes(&a, "p1", NULL);
    for (unsigned i = 0; i < 600 && a.times == 0; i++) {
        if (fake_find("ensure_lanes"))
            serve_names(true);
        wait_ms(100);
    }
    assert_int_equal(a.times, 1);
    assert_int_not_equal(a.status, 0);
    for (unsigned i = 0; i < 50; i++) { // one may be under way
        if (fake_find("ensure_lanes"))
            serve_names(true);
        wait_ms(100);
    }
    assert_int_equal(broker->n_locked, 0);
    for (unsigned i = 0; i < 100; i++) {
        wait_ms(100);
        assert_null(fake_find("ensure_lanes"));
    }
    // The next request starts another call.
    a = (struct push){0};
    push_to_lanes(&a, "p1", NULL);
    serve_names(false);
    serve_push(1);
    assert_int_equal(a.status, 0);
}

static void a_name_without_an_answer_is_not_requested_again_at_once(void **state)
{
    (void)state;
    static struct push a;
    a = (struct push){0};
    rig_open();
    push_to_lanes(&a, "p1", NULL);
    for (unsigned i = 0; i < 5 && fake_find("ensure_lanes"); i++) {
        fake_answer(fake_find("ensure_lanes"), 0); // no row
        turn();
    }
    assert_null(fake_find("ensure_lanes"));
    for (unsigned i = 0; i < 100 && !fake_find("ensure_lanes"); i++)
        wait_ms(10);
    serve_names(false);
    serve_push(1);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.times, 1);
}

// The lock of lane 1 ends while the rest of b is out.
static void a_freed_lane_is_kept_for_a_request_that_has_left_a_part_behind(void **state)
{
    (void)state;
    static struct push a, b, c;
    a = b = c = (struct push){0};
    lock_first_lane(&a);
    push_to_lanes(&b, "p1", "p2");
    struct pg_call *rest = fake_find("push");
    assert_int_equal(fake_int(rest->params, LANES, 0), 2);
    wait_ms(50);
    fake_answer(fake_find("locked_lanes"), 0);
    turn();
    push_to_lanes(&c, "p1", NULL);
    row_stored(2);
    fake_answer(rest, 0);
    turn();
    wait_ms(200);
    if (fake_find("locked_lanes"))
        answer_probe(0);
    span keys = fake_bytes(fake_find("push")->params, PG_BYTEA, 0, 0);
    assert_int_equal(keys.len, 48);
    assert_memory_equal(keys.ptr, a.items[0].key, 16);
    assert_memory_equal(keys.ptr + 16, b.items[0].key, 16);
    assert_memory_equal(keys.ptr + 32, c.items[0].key, 16);
    answer_stored();
    assert_int_equal(a.times + b.times + c.times, 3);
}

// Lanes 1 and 3 are locked, and b needs both.  Lane 3 is free first.
static void a_request_for_two_locked_lanes_is_not_overtaken_in_the_first_free_one(void **state)
{
    (void)state;
    static struct push a, b, c, d;
    a = b = c = d = (struct push){0};
    lock_first_lane(&a);
    push_to_lanes(&d, "p3", NULL);
    fail_locked("push");
    wait_ms(1);
    fake_row("lane:l", (int64_t)1), fake_row("lane:l", (int64_t)3);
    fake_answer(fake_call("locked_lanes"), 0);
    turn();
    push_to_lanes(&b, "p1", "p3");
    push_to_lanes(&c, "p3", NULL);
    assert_null(fake_find("push"));
    wait_ms(50);
    answer_probe(1);
    struct pg_call *call = fake_call("push");
    assert_int_equal(fake_len(call->params, LANES), 1);
    assert_int_equal(fake_int(call->params, LANES, 0), 3);
    span keys = fake_bytes(call->params, PG_BYTEA, 0, 0);
    assert_int_equal(keys.len, 48);
    assert_memory_equal(keys.ptr, d.items[0].key, 16);
    assert_memory_equal(keys.ptr + 16, b.items[1].key, 16);
    assert_memory_equal(keys.ptr + 32, c.items[0].key, 16);
    answer_stored();
    assert_int_equal(c.times + d.times, 2);
    assert_int_equal(a.times + b.times, 0);
    wait_ms(200);
    answer_probe(0);
    answer_stored();
    assert_int_equal(a.times + b.times, 2);
    assert_int_equal(b.status, 0);
}

// Each part that is stored is progress, not another try.
static void a_request_may_wait_for_many_locks_one_after_another(void **state)
{
    (void)state;
    enum { MANY = 30 };
    static struct push known, b;
    static char names[MANY][8];
    known = b = (struct push){0};
    rig_open();
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "p%u", i + 1);
        push_item(&known, "q", names[i], NULL), push_item(&b, "q", names[i], NULL);
    }
    push_start(&known);
    answer_lanes();
    answer_stored();
    push_start(&b);
    turn();
    fail_locked("push");
    for (unsigned n_free = 0; n_free <= MANY; n_free++) {
        for (unsigned i = 0; i < 100 && !fake_find("locked_lanes"); i++)
            wait_ms(10);
        if (n_free == MANY)
            break;
        for (unsigned i = n_free + 1; i < MANY; i++)
            fake_row("lane:l", (int64_t)i + 1);
        fake_answer(fake_call("locked_lanes"), 0);
        turn();
        serve_push(n_free + 1);
        assert_int_equal(b.times, n_free == MANY - 1);
    }
    assert_int_equal(b.status, 0);
}

static void thousands_that_wait_do_not_hide_those_behind_them(void **state)
{
    (void)state;
    enum { MANY = 2500 };
    static struct push a, b, many[MANY];
    a = b = (struct push){0};
    rig_conf.max_pending = 4 * MANY;
    lock_first_lane(&a);
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = (struct push){0};
        push_item(&many[i], "q", "p1", NULL);
        push_start(&many[i]);
    }
    push_to_lanes(&b, "p2", NULL);
    answer_stored();
    assert_int_equal(b.times, 1);
    // Also while the lane is only in flight.
    wait_ms(50);
    answer_probe(0);
    struct pg_call *in_flight = fake_call("push");
    b = (struct push){0};
    push_to_lanes(&b, "p2", NULL);
    wait_ms(30);
    assert_ptr_not_equal(fake_nth(fake_n_calls() - 1), in_flight);
    fake_fail_all(QE_PG_DATA);
    for (unsigned i = 0; i < 2 * MANY && many[MANY - 1].times == 0; i++) {
        turn();
        fake_fail_all(QE_PG_DATA);
    }
    assert_int_equal(b.times, 1);
    assert_int_equal(many[MANY - 1].times, 1);
}

static void a_request_does_not_wait_for_ever_and_not_too_many_wait(void **state)
{
    (void)state;
    static struct push a, b, more[60];
    a = b = (struct push){0};
    lock_first_lane(&a);
    for (unsigned i = 0; i < 60; i++) { // of 100 that may be pending
        more[i] = (struct push){0};
        push_to_lanes(&more[i], "p1", NULL);
    }
    assert_int_equal(more[59].status, QE_BUSY);
    push_to_lanes(&b, "p2", NULL);
    answer_stored();
    assert_int_equal(b.status, 0);
    for (unsigned i = 0; i < 700 && a.times == 0; i++) {
        wait_ms(100);
        if (fake_find("locked_lanes")) {
            fake_row("lane:l", (int64_t)1);
            fake_answer(fake_find("locked_lanes"), 0);
        }
    }
    assert_int_equal(a.status, QE_PG_RETRY);
    assert_non_null(strstr(a.op.op.why.text, "locked by another transaction"));
}

// One call for all of them would run into the statement timeout.
static void very_many_new_names_are_requested_in_several_calls(void **state)
{
    (void)state;
    enum { PUSHES = 70, ITEMS = 32, AT_ONCE = 2000 };
    static struct push pushes[PUSHES];
    static char names[PUSHES * ITEMS][8];
    rig_conf.max_pending = 2 * PUSHES;
    rig_open();
    for (unsigned i = 0; i < PUSHES; i++) {
        pushes[i] = (struct push){0};
        for (unsigned k = 0; k < ITEMS; k++) {
            char *name = names[i * ITEMS + k];
            snprintf(name, sizeof names[0], "p%u", i * ITEMS + k + 1);
            push_item(&pushes[i], "q", name, NULL);
        }
        push_start(&pushes[i]);
    }
    turn();
    assert_int_equal(fake_len(fake_call("ensure_lanes")->params, PG_TEXT, 1), AT_ONCE);
    fake_answer(fake_call("ensure_lanes"), QE_PG_DATA); // fails those that wait
    turn();
    assert_int_equal(fake_len(fake_find("ensure_lanes")->params, PG_TEXT, 1),
                     PUSHES * ITEMS - AT_ONCE);
    for (unsigned i = 0; i < 1000 && fake_n_calls() > 0; i++) {
        fake_fail_all(QE_PG_DATA);
        turn();
    }
    assert_int_equal(pushes[0].times, 1);
    assert_int_equal(pushes[PUSHES - 1].times, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(neighbours_in_the_batch_go_on_and_the_locked_lane_keeps_its_order),
        T(a_request_for_several_lanes_leaves_its_locked_part_behind),
        T(the_part_left_behind_keeps_its_place),
        T(a_freed_lane_is_kept_for_a_request_that_has_left_a_part_behind),
        T(a_request_for_two_locked_lanes_is_not_overtaken_in_the_first_free_one),
        T(a_request_may_wait_for_many_locks_one_after_another),
        T(a_whole_request_waits_and_is_overtaken_in_its_other_lanes),
        T(a_name_that_others_create_is_requested_alone),
        T(a_locked_name_that_is_learnt_otherwise_can_be_requested_again),
        T(a_name_without_waiting_requests_is_not_requested),
        T(a_name_without_an_answer_is_not_requested_again_at_once),
        T(very_many_new_names_are_requested_in_several_calls),
        T(thousands_that_wait_do_not_hide_those_behind_them),
        T(a_request_does_not_wait_for_ever_and_not_too_many_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
