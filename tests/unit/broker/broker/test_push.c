// push.c: batches, retries and the results of requests.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/constants.gen.h"
#include "rig.h"
#include "segment/codec.h"

enum { WHOLE = 1 };      // scalar
#define LANES PG_INT8, 0 // arrays
#define COUNT PG_INT4, 1
#define KEYS  PG_BYTEA, 0

static void refuse(int seg, int status) { fake_row("seg:i status:i", seg, status); }

static void duplicate(int seg, int pos, unsigned id)
{
    fake_row("seg:i status:i pos:i dup_id:u", seg, SEG_DUPLICATES, pos, uuid(id));
}

static void answer(int status)
{
    fake_answer(fake_call("push"), status);
    turn();
}

// ---- the way there ----

static void lanes_are_requested_once_and_remembered(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL), push_item(&a, "q", "p2", NULL),
        push_item(&a, "q", "p1", NULL);
    push_start(&a);
    turn();
    assert_int_equal(fake_len(fake_call("ensure_lanes")->params, PG_TEXT, 1), 2);
    answer_lanes();
    answer_stored();
    push_item(&b, "q", "p2", NULL);
    push_start(&b);
    turn();
    answer_stored(); // no second question
    assert_int_equal(a.times + b.times, 2);
    assert_int_equal(b.status, 0);
}

static void a_stored_message_gets_its_id_and_its_partitions(void **state)
{
    (void)state;
    static struct push a = {0};
    uint8_t id[16];
    rig_open();
    push_item(&a, "q", "p7", NULL);
    push_start(&a);
    answer_lanes();
    answer_stored();
    segment_message_id(CREATED_US, 0, 7, id);
    assert_int_equal(a.items[0].status, PUSH_QUEUED);
    assert_memory_equal(a.items[0].message_id, id, 16);
    assert_memory_equal(a.items[0].partition_id, uuid(7), 16);
}

static void requests_of_one_turn_leave_in_one_call(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0}, c = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL), push_item(&b, "q", "p1", NULL),
        push_item(&c, "r", "p2", NULL);
    push_start(&a), push_start(&b), push_start(&c);
    answer_lanes();
    assert_int_equal(fake_n_calls(), 1);
    const struct pg_params *p = fake_call("push")->params;
    assert_int_equal(fake_len(p, LANES), 2);
    assert_int_equal(fake_int(p, COUNT, 0) + fake_int(p, COUNT, 1), 3);
    answer_stored();
    assert_int_equal(a.times + b.times + c.times, 3);
}

static void a_call_holds_at_most_the_configured_requests(void **state)
{
    (void)state;
    static struct push p[5] = {0};
    rig_conf.push.max_requests = 2;
    rig_open();
    for (unsigned i = 0; i < 5; i++)
        push_item(&p[i], "q", i < 2 ? "p1" : i < 4 ? "p2" : "p3", NULL), push_start(&p[i]);
    answer_lanes();
    assert_int_equal(fake_n_calls(), 3); // two, two, one: to different lanes
    for (unsigned i = 0; i < 3; i++)
        answer_stored();
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(p[i].status, 0);
}

static void no_request_overtakes_another_in_its_lane(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0}, c = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL);
    push_start(&a);
    answer_lanes();
    push_item(&b, "q", "p1", NULL), push_item(&b, "q", "p2", NULL);
    push_item(&c, "q", "p2", NULL);
    push_start(&b), push_start(&c); // b waits for lane 1, so c, behind it in lane 2, does too
    answer_stored();                // no: lane 2 is requested first
    assert_int_equal(a.times, 1);
    assert_int_equal(b.times + c.times, 0);
    answer_lanes();
    struct pg_call *call = fake_call("push");
    assert_int_equal(fake_len(call->params, LANES), 2);
    answer_stored();
    assert_int_equal(b.times + c.times, 2);
}

static void a_lane_in_flight_holds_back_its_followers_only(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0}, c = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL), push_item(&a, "q", "p2", NULL);
    push_start(&a);
    answer_lanes();
    answer_stored();
    static struct push d = {0};
    push_item(&d, "q", "p1", NULL);
    push_start(&d);
    turn(); // in flight now
    push_item(&b, "q", "p1", NULL), push_item(&c, "q", "p2", NULL);
    push_start(&b), push_start(&c);
    turn();
    assert_int_equal(fake_n_calls(), 2);
    struct pg_call *first = fake_call("push");
    row_stored(1);
    fake_answer(first, 0);
    turn();
    assert_int_equal(fake_int(fake_call("push")->params, LANES, 0), 2); // c
    answer_stored();
    assert_int_equal(fake_int(fake_call("push")->params, LANES, 0), 1); // then b
    answer_stored();
    assert_int_equal(b.times + c.times + d.times, 3);
}

// ---- duplicates ----

static void a_duplicate_is_answered_with_the_first_id_and_its_neighbour_is_stored(void **state)
{
    (void)state;
    static struct push a = {0};
    rig_open();
    push_item(&a, "q", "p1", "order-1"), push_item(&a, "q", "p1", "order-2");
    push_start(&a);
    answer_lanes();
    duplicate(1, 0, 99);
    answer(0);
    assert_int_equal(a.times, 0); // order-2 goes again, alone
    const struct pg_params *p = fake_call("push")->params;
    assert_int_equal(fake_int(p, COUNT, 0), 1);
    assert_memory_equal(fake_bytes(p, KEYS, 0).ptr, a.items[1].key, 16);
    answer_stored();
    assert_int_equal(a.status, 0);
    assert_int_equal(a.items[0].status, PUSH_DUPLICATE);
    assert_memory_equal(a.items[0].message_id, uuid(99), 16);
    assert_int_equal(a.items[1].status, PUSH_QUEUED);
    assert_int_equal(counter_get(&broker_stats(broker)->duplicates), 1);
}

static void the_same_id_twice_in_a_call_is_stored_once(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0};
    rig_open();
    push_item(&a, "q", "p1", "order-1"), push_item(&a, "q", "p1", "order-1");
    push_item(&b, "q", "p1", "order-1");
    push_start(&a), push_start(&b);
    answer_lanes();
    assert_int_equal(fake_int(fake_call("push")->params, COUNT, 0), 1);
    answer_stored();
    assert_int_equal(a.items[0].status, PUSH_QUEUED);
    assert_int_equal(a.items[1].status, PUSH_DUPLICATE);
    assert_int_equal(b.items[0].status, PUSH_DUPLICATE);
    assert_memory_equal(b.items[0].message_id, a.items[0].message_id, 16);
    assert_int_equal(a.times + b.times, 2);
}

// ---- going again ----

static void a_lost_connection_sends_the_push_again(void **state)
{
    (void)state;
    static struct push a = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL), push_item(&a, "q", "p1", "order-1");
    push_start(&a);
    answer_lanes();
    answer(QE_PG_GONE);
    assert_int_equal(a.times, 0);
    const struct pg_params *p = fake_call("push")->params;
    assert_int_equal(fake_int(p, COUNT, 0), 2);
    assert_memory_equal(fake_bytes(p, KEYS, 0).ptr, a.items[0].key, 16); // the same keys
    duplicate(1, 0, 98), duplicate(1, 1, 99); // the first try had been stored
    answer(0);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.items[0].status, PUSH_QUEUED); // our own id: no duplicate
    assert_memory_equal(a.items[0].message_id, uuid(98), 16);
    assert_int_equal(a.items[1].status, PUSH_DUPLICATE); // the client's: unknown here
}

static void a_database_that_stays_lost_ends_the_tries(void **state)
{
    (void)state;
    static struct push a = {0};
    unsigned tries = 0;
    rig_open();
    push_item(&a, "q", "p1", NULL);
    push_start(&a);
    answer_lanes();
    for (; a.times == 0 && tries < 100; tries++)
        answer(QE_PG_GONE);
    assert_int_equal(a.status, QE_PG_GONE);
    assert_int_equal(a.op.op.why.code, QE_PG_GONE);
    assert_in_range(tries, 2, 50);
}

static void an_unavailable_database_fails_requests_at_once(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL);
    push_start(&a);
    turn();
    fake_answer(fake_call("ensure_lanes"), QE_PG_AWAY);
    turn();
    assert_int_equal(a.status, QE_PG_AWAY);
    push_item(&b, "q", "p1", NULL); // and the lane is requested again
    push_start(&b);
    answer_lanes();
    answer(QE_PG_AWAY);
    assert_int_equal(b.status, QE_PG_AWAY);
}

static void a_deleted_lane_is_requested_again(void **state)
{
    (void)state;
    static struct push a = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL);
    push_start(&a);
    answer_lanes();
    refuse(1, SEG_LANE_GONE);
    answer(0);
    fake_row("idx:i lane:l lane_id:u", 0, (int64_t)33, uuid(33));
    fake_answer(fake_call("ensure_lanes"), 0);
    turn();
    assert_int_equal(fake_int(fake_call("push")->params, LANES, 0), 33);
    answer_stored();
    assert_int_equal(a.status, 0);
    assert_memory_equal(a.items[0].partition_id, uuid(33), 16);
}

// A pop finds out that the queue was deleted, and the number of the lane is forgotten.
static void forget_lane_of(struct broker *b, const char *partition)
{
    lane_forget_num(b, lane_get(b, queue_get(b, SPAN("q")), span_of(partition)));
}

static void a_waiting_request_requests_a_forgotten_number_again(void **state)
{
    (void)state;
    static struct push a = {0}, c = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL);
    push_start(&a);
    answer_lanes();
    push_item(&c, "q", "p1", NULL);
    push_start(&c); // behind the first
    forget_lane_of(broker, "p1");
    row_stored(1);
    answer(0);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.items[0].status, PUSH_QUEUED); // stored, whatever became of it since
    assert_memory_equal(a.items[0].partition_id, uuid(1), 16);
    turn();
    fake_row("idx:i lane:l lane_id:u", 0, (int64_t)33, uuid(33));
    fake_answer(fake_call("ensure_lanes"), 0);
    turn();
    assert_int_equal(fake_int(fake_call("push")->params, LANES, 0), 33);
    answer_stored();
    assert_int_equal(c.status, 0);
    assert_memory_equal(c.items[0].partition_id, uuid(33), 16);
}

static void a_segment_held_back_goes_again(void **state)
{
    (void)state;
    static struct push a = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL), push_item(&a, "q", "p2", NULL);
    push_start(&a);
    answer_lanes();
    int64_t stored = fake_int(fake_call("push")->params, LANES, 1);
    refuse(1, SEG_DEFERRED);
    row_stored(stored);
    answer(0);
    assert_int_equal(a.times, 0);
    assert_int_equal(fake_len(fake_call("push")->params, LANES), 1);
    assert_int_not_equal(fake_int(fake_call("push")->params, LANES, 0), stored);
    answer_stored();
    assert_int_equal(a.status, 0);
}

// ---- bad neighbours ----

// Each round another request of the lane brings a duplicate, which keeps the segment from being
// stored.
static void a_request_that_duplicates_of_others_hold_back_goes_alone(void **state)
{
    (void)state;
    static struct push a = {0}, others[8];
    static const char *const ids[] = {"o-0", "o-1", "o-2", "o-3", "o-4", "o-5", "o-6", "o-7"};
    unsigned n = 0;
    rig_open();
    push_item(&a, "q", "p1", "mine");
    push_start(&a);
    for (; n < 8; n++) {
        others[n] = (struct push){0};
        push_item(&others[n], "q", "p1", ids[n]);
        push_start(&others[n]);
        if (n == 0) {
            answer_lanes();
            continue;
        }
        turn(); // this one waits for the lane
        if (fake_int(fake_call("push")->params, COUNT, 0) == 1)
            break;
        duplicate(1, 1, 99);
        answer(0);
    }
    assert_int_equal(a.times, 0);
    assert_in_range(n, 2, 5);
    answer_stored(); // a, by itself
    assert_int_equal(a.times, 1);
    assert_int_equal(a.items[0].status, PUSH_QUEUED);
    answer_stored();
    for (unsigned i = 0; i <= n; i++)
        assert_int_equal(others[i].times, 1);
}

static void one_bad_request_is_found_and_its_neighbours_succeed(void **state)
{
    (void)state;
    static struct push p[3] = {0};
    rig_open();
    for (unsigned i = 0; i < 3; i++)
        push_item(&p[i], "q", "p1", NULL), push_start(&p[i]);
    answer_lanes();
    answer(QE_PG_DATA);
    assert_int_equal(fake_n_calls(), 1); // one lane: each after the other
    answer_stored();
    assert_memory_equal(fake_bytes(fake_call("push")->params, KEYS, 0).ptr, p[1].items[0].key,
                        16);
    answer(QE_PG_DATA);
    answer_stored();
    assert_int_equal(p[0].status, 0);
    assert_int_equal(p[1].status, QE_PG_DATA);
    assert_int_equal(p[2].status, 0);
}

static void scattered_requests_of_different_lanes_fly_side_by_side(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL), push_item(&b, "q", "p2", NULL);
    push_start(&a), push_start(&b);
    answer_lanes();
    answer(QE_PG_FAILED);
    assert_int_equal(fake_n_calls(), 2);
    answer(QE_PG_FAILED);
    answer_stored();
    assert_int_equal(a.status, QE_PG_FAILED);
    assert_int_equal(b.status, 0);
}

static void an_odd_answer_is_an_error_not_a_guess(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL);
    push_start(&a);
    answer_lanes();
    refuse(9, SEG_DEFERRED); // there is no ninth
    answer(0);
    assert_int_equal(a.status, QE_PG_SHAPE);
    push_item(&b, "q", "p1", NULL);
    push_start(&b);
    turn();
    row_stored(77); // of another lane
    answer(0);
    assert_int_equal(b.status, QE_PG_SHAPE);
}

// ---- limits ----

static void a_limited_queue_stores_whole_requests_and_reports_that_it_is_full(void **state)
{
    (void)state;
    static struct push a = {0}, b = {0}, c = {0};
    rig_open();
    push_item(&a, "q", "p1", NULL), push_item(&a, "q", "p1", NULL);
    push_item(&b, "q", "p1", NULL);
    push_start(&a), push_start(&b);
    answer_lanes();
    assert_int_equal(fake_scalar(fake_call("push")->params, WHOLE), 0);
    refuse(1, SEG_LANE_LIMITED);
    answer(0);
    const struct pg_params *p = fake_call("push")->params;
    assert_int_equal(fake_scalar(p, WHOLE), 1);
    assert_int_equal(fake_int(p, COUNT, 0), 2); // a, by itself
    refuse(1, SEG_QUEUE_FULL);
    answer(0);
    assert_int_equal(a.status, QE_QUEUE_FULL);
    assert_non_null(strstr(a.op.op.why.text, "\"q\""));
    answer_stored(); // there was room for one
    assert_int_equal(b.status, 0);

    push_item(&c, "q", "p1", NULL); // from now on it is known
    push_start(&c);
    turn();
    assert_int_equal(fake_scalar(fake_call("push")->params, WHOLE), 1);
    answer_stored();
}

static void too_many_at_once_are_refused_and_the_others_are_not(void **state)
{
    (void)state;
    static struct push p[4] = {0};
    rig_conf.max_pending = 2;
    rig_open();
    for (unsigned i = 0; i < 3; i++)
        push_item(&p[i], "q", "p1", NULL), push_start(&p[i]);
    turn();
    assert_int_equal(p[2].status, QE_BUSY);
    assert_int_equal(p[2].times, 1);
    answer_lanes();
    answer_stored();
    assert_int_equal(p[0].status, 0);
    assert_int_equal(p[1].status, 0);
    push_item(&p[3], "q", "p1", NULL); // there is room again
    push_start(&p[3]);
    turn();
    answer_stored();
    assert_int_equal(p[3].status, 0);
    assert_int_equal(counter_get(&broker_stats(broker)->refused), 1);
}

// ---- items for now and for later in one request ----

enum { LANE_SEALED = 6 };

static void later_row(int later, int status, unsigned id)
{
    fake_row("later:i status:i dup_id:u created_at:T wait_us:l", later, status, uuid(id),
             (int64_t)CREATED_US + 5000000, (int64_t)5000000);
}

static void mixed_item(struct push *p, const char *partition, const char *txid, bool later)
{
    push_item(p, "q", partition, txid);
    p->items[p->op.n_items - 1].when = later ? PUSH_AFTER : PUSH_NOW;
}

static void answer_mixed(int status)
{
    fake_answer(fake_call("push_mixed"), status);
    turn();
}

static void a_mixed_request_is_one_call_by_itself(void **state)
{
    (void)state;
    static struct push a, b;
    a = b = (struct push){0};
    rig_open();
    mixed_item(&a, "p1", "now", false), mixed_item(&a, "p2", "later", true);
    push_item(&b, "q", "p3", NULL);
    push_start(&a), push_start(&b);
    answer_lanes();
    const struct pg_params *p = fake_call("push_mixed")->params;
    assert_int_equal(fake_len(p, LANES), 1);
    row_stored(1), later_row(0, 0, 9);
    answer_mixed(0);
    answer_stored();
    assert_int_equal(a.times, 1);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.items[0].status, PUSH_QUEUED);
    assert_int_equal(a.items[1].status, PUSH_SCHEDULED);
    assert_memory_equal(a.items[1].message_id, uuid(9), 16);
    assert_int_equal(a.items[1].due_us, CREATED_US + 5000000);
    assert_int_equal(b.items[0].status, PUSH_QUEUED);
}

static void if_a_later_item_is_refused_nothing_of_it_counts(void **state)
{
    (void)state;
    static struct push a;
    a = (struct push){0};
    rig_open();
    mixed_item(&a, "p1", "now", false), mixed_item(&a, "p2", "x", true);
    mixed_item(&a, "p3", "y", true);
    push_start(&a);
    answer_lanes();
    row_stored(1), later_row(0, 0, 9), later_row(1, LANE_SEALED, 0);
    answer_mixed(0);
    assert_int_equal(a.times, 0); // all of it goes again
    assert_int_equal(a.items[0].status, PUSH_PENDING);
    assert_int_equal(a.items[1].status, PUSH_LATER);
    row_stored(1), later_row(0, 0, 9), later_row(1, SEG_DUPLICATES, 8);
    answer_mixed(0);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.items[0].status, PUSH_QUEUED);
    assert_int_equal(a.items[1].status, PUSH_SCHEDULED);
    assert_int_equal(a.items[2].status, PUSH_DUPLICATE);
    assert_memory_equal(a.items[2].message_id, uuid(8), 16);
}

static void
a_duplicate_for_now_does_not_keep_the_others_from_being_stored_together(void **state)
{
    (void)state;
    static struct push a;
    a = (struct push){0};
    rig_open();
    mixed_item(&a, "p1", "old", false), mixed_item(&a, "p1", "new", false);
    mixed_item(&a, "p2", "later", true);
    push_start(&a);
    answer_lanes();
    duplicate(1, 0, 5);
    answer_mixed(0);
    assert_int_equal(a.items[0].status, PUSH_DUPLICATE);
    assert_int_equal(a.items[2].status, PUSH_LATER);
    row_stored(1), later_row(0, 0, 9);
    answer_mixed(0);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.items[1].status, PUSH_QUEUED);
    assert_int_equal(a.items[2].status, PUSH_SCHEDULED);
}

static void a_failed_mixed_request_is_answered_once(void **state)
{
    (void)state;
    static struct push a;
    a = (struct push){0};
    rig_open();
    mixed_item(&a, "p1", "now", false), mixed_item(&a, "p1", "later", true);
    push_start(&a);
    answer_lanes();
    answer_mixed(QE_PG_FAILED);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.status, QE_PG_FAILED);
    assert_int_equal(fake_n_calls(), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(lanes_are_requested_once_and_remembered),
        T(a_stored_message_gets_its_id_and_its_partitions),
        T(requests_of_one_turn_leave_in_one_call),
        T(a_call_holds_at_most_the_configured_requests),
        T(no_request_overtakes_another_in_its_lane),
        T(a_lane_in_flight_holds_back_its_followers_only),
        T(a_duplicate_is_answered_with_the_first_id_and_its_neighbour_is_stored),
        T(the_same_id_twice_in_a_call_is_stored_once),
        T(a_lost_connection_sends_the_push_again),
        T(a_database_that_stays_lost_ends_the_tries),
        T(an_unavailable_database_fails_requests_at_once),
        T(a_deleted_lane_is_requested_again),
        T(a_waiting_request_requests_a_forgotten_number_again),
        T(a_segment_held_back_goes_again),
        T(a_request_that_duplicates_of_others_hold_back_goes_alone),
        T(one_bad_request_is_found_and_its_neighbours_succeed),
        T(scattered_requests_of_different_lanes_fly_side_by_side),
        T(an_odd_answer_is_an_error_not_a_guess),
        T(a_limited_queue_stores_whole_requests_and_reports_that_it_is_full),
        T(too_many_at_once_are_refused_and_the_others_are_not),
        T(a_mixed_request_is_one_call_by_itself),
        T(if_a_later_item_is_refused_nothing_of_it_counts),
        T(a_duplicate_for_now_does_not_keep_the_others_from_being_stored_together),
        T(a_failed_mixed_request_is_answered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
