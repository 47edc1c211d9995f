// ack.c and lease.c: many requests in one call, each with its own result.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/id.h"
#include "rig.h"

#define LEASE SPAN("f47ac10b-58cc-4372-a567-0e02b2c3d479")

struct ack {
    struct ack_op op;
    struct ack_entry entries[4];
    struct arena arena;
    unsigned times;
    int status;
};

static struct ack acks[4];

static int setup(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        acks[i] = (struct ack){0};
        arena_init(&acks[i].arena);
    }
    return rig_setup(state);
}

static int teardown(void **state)
{
    for (unsigned i = 0; i < 4; i++)
        arena_deinit(&acks[i].arena);
    return rig_teardown(state);
}

static void on_ack_done(struct ack_op *op, int status)
{
    struct ack *a = container_of(op, struct ack, op);

    assert_int_equal(a->times++, 0);
    a->status = status;
}

static struct ack_entry *entry(struct ack *a, unsigned partition, const char *txid)
{
    struct ack_entry *e = &a->entries[a->op.n_entries++];

    *e = (struct ack_entry){.txid = span_of(txid), .lease = LEASE};
    memcpy(e->partition_id, uuid(partition), 16);
    return e;
}

static void start(struct ack *a)
{
    a->op.entries = a->entries;
    a->op.arena = &a->arena;
    a->op.group = SPAN("g");
    a->op.done = on_ack_done;
    broker_ack(broker, &a->op);
    assert_int_equal(a->times, 0);
}

static void row_ok(int group)
{
    fake_row("grp:i why:i released:b dead:b queue_name:t lane_name:t lane:l consumer:l", group,
             ACK_OK, 0, 0, "q", "p1", (int64_t)1, (int64_t)101);
}

static void answer(int status)
{
    fake_answer(fake_call("settle"), status);
    turn();
}

static void requests_of_one_turn_are_settled_in_one_call(void **state)
{
    (void)state;
    rig_open();
    entry(&acks[0], 1, "a"), entry(&acks[0], 2, "b");
    entry(&acks[1], 1, "c");
    start(&acks[0]), start(&acks[1]);
    turn();
    assert_int_equal(fake_n_calls(), 1);
    assert_int_equal(fake_len(fake_call("settle")->params, PG_BYTEA, 0), 3); // groups
    row_ok(3), row_ok(1);                                                    // in any order
    answer(0);
    assert_int_equal(acks[0].times + acks[1].times, 2);
    assert_int_equal(acks[0].entries[0].why, ACK_OK);
    assert_int_equal(acks[0].entries[1].why, ACK_NOT_FOUND); // nobody spoke of it
    assert_int_equal(acks[1].entries[0].why, ACK_OK);
    assert_int_equal(counter_get(&broker_stats(broker)->acks_ok), 2);
    assert_int_equal(counter_get(&broker_stats(broker)->acks_failed), 1);
}

static void nothing_but_impossible_partitions_needs_no_call(void **state)
{
    (void)state;
    rig_open();
    entry(&acks[0], 1, "a")->bad_partition = true;
    start(&acks[0]);
    turn();
    assert_int_equal(fake_n_calls(), 0);
    assert_int_equal(acks[0].times, 1);
    assert_int_equal(acks[0].status, 0);
    assert_int_equal(acks[0].entries[0].why, ACK_NOT_FOUND);
}

static void one_bad_request_is_found_and_its_neighbour_succeeds(void **state)
{
    (void)state;
    rig_open();
    entry(&acks[0], 1, "a"), entry(&acks[1], 2, "b");
    start(&acks[0]), start(&acks[1]);
    turn();
    answer(QE_PG_DATA);
    assert_int_equal(fake_len(fake_call("settle")->params, PG_BYTEA, 0), 1);
    answer(QE_PG_DATA);
    row_ok(1);
    answer(0);
    assert_int_equal(acks[0].status, QE_PG_DATA);
    assert_int_equal(acks[1].status, 0);
}

static void a_lost_connection_sends_the_ack_again_but_not_for_ever(void **state)
{
    (void)state;
    unsigned tries = 0;
    rig_open();
    entry(&acks[0], 1, "a");
    start(&acks[0]);
    turn();
    answer(QE_PG_GONE);
    row_ok(1);
    answer(0);
    assert_int_equal(acks[0].status, 0);
    entry(&acks[1], 1, "b");
    start(&acks[1]);
    turn();
    for (; acks[1].times == 0 && tries < 100; tries++)
        answer(QE_PG_GONE);
    assert_int_equal(acks[1].status, QE_PG_GONE);
    assert_in_range(tries, 2, 20);
}

// The first try may have been done and have ended the lease.
static void a_lease_that_is_gone_after_a_lost_connection_leaves_the_ack_in_doubt(void **state)
{
    (void)state;
    rig_open();
    for (unsigned i = 0; i < 2; i++) {
        entry(&acks[i], 1, "a");
        start(&acks[i]);
        turn();
        if (i == 0)
            answer(QE_PG_GONE);
        fake_row("grp:i why:i released:b dead:b queue_name:t lane_name:t lane:l consumer:l", 1,
                 ACK_BAD_LEASE, 0, 0, "q", "p1", (int64_t)1, (int64_t)101);
        answer(0);
    }
    assert_int_equal(acks[0].status, QE_PG_GONE);
    assert_int_equal(acks[1].status, 0); // was never in doubt
    assert_int_equal(acks[1].entries[0].why, ACK_BAD_LEASE);
}

static void a_row_of_an_unrequested_group_is_an_error(void **state)
{
    (void)state;
    rig_open();
    entry(&acks[0], 1, "a");
    start(&acks[0]);
    turn();
    row_ok(2);
    answer(0);
    assert_int_equal(acks[0].status, QE_PG_SHAPE);
}

static void an_ack_that_releases_the_lane_wakes_its_parked_pop(void **state)
{
    (void)state;
    static struct pop first, waiting;
    rig_open();
    pop_start(&first, "q", 0);
    answer_changes();
    answer_discover(1);
    row_claimed(1, 1, true, 60 * 1000 * 1000);
    fake_answer(fake_call("claim"), 0);
    turn();
    pop_start(&waiting, "q", 5000);
    answer_look();
    assert_int_equal(waiting.times, 0);
    entry(&acks[0], 1, "a");
    start(&acks[0]);
    turn();
    fake_row("grp:i why:i released:b dead:b queue_name:t lane_name:t lane:l consumer:l more:b",
             1, ACK_OK, 1, 0, "q", "p1", (int64_t)1, (int64_t)101, 1);
    answer(0);
    assert_int_equal(acks[0].entries[0].released, 1);
    assert_int_equal(target_of(fake_call("claim"), 0), 101);
}

static void an_ack_that_leaves_the_lane_empty_wakes_no_pop(void **state)
{
    (void)state;
    static struct pop first, waiting;
    rig_open();
    pop_start(&first, "q", 0);
    answer_changes();
    answer_discover(1);
    row_claimed(1, 1, false, 60 * 1000 * 1000);
    fake_answer(fake_call("claim"), 0);
    turn();
    pop_start(&waiting, "q", 5000);
    answer_look();
    entry(&acks[0], 1, "a");
    start(&acks[0]);
    turn();
    fake_row("grp:i why:i released:b dead:b queue_name:t lane_name:t lane:l consumer:l more:b",
             1, ACK_OK, 1, 0, "q", "p1", (int64_t)1, (int64_t)101, 0);
    answer(0);
    assert_null(fake_find("claim"));
}

// ---- renewals ----

struct renewal {
    struct renew_op op;
    unsigned times;
    int status;
};

static void on_renewed(struct renew_op *op, int status)
{
    struct renewal *r = container_of(op, struct renewal, op);

    assert_int_equal(r->times++, 0);
    r->status = status;
}

static void renew(struct renewal *r, const char *lease)
{
    *r = (struct renewal){.op = {.lease = span_of(lease), .seconds = 30, .done = on_renewed}};
    broker_renew(broker, &r->op);
}

static void renewals_share_a_call_and_each_gets_its_result(void **state)
{
    (void)state;
    static struct renewal a, b;
    rig_open();
    renew(&a, "f47ac10b-58cc-4372-a567-0e02b2c3d479"), renew(&b, "nonsense");
    turn();
    assert_int_equal(fake_int(fake_call("renew")->params, PG_INT4, 0, 0), 30);
    fake_row("idx:i why:i expires_at:T", 0, 0, (int64_t)12345), fake_row("idx:i why:i", 1, 1);
    fake_answer(fake_call("renew"), 0);
    turn();
    assert_int_equal(a.op.why, 0);
    assert_int_equal(a.op.expires_us, 12345);
    assert_int_equal(b.op.why, 1);
    assert_int_equal(a.times + b.times, 2);
}

static void a_short_answer_to_renewals_is_an_error_not_a_guess(void **state)
{
    (void)state;
    static struct renewal a, b;
    rig_open();
    renew(&a, "x"), renew(&b, "y");
    turn();
    fake_row("idx:i why:i expires_at:T", 0, 0, (int64_t)12345);
    fake_answer(fake_call("renew"), 0);
    turn();
    assert_int_equal(a.status, QE_PG_SHAPE);
    assert_int_equal(b.status, QE_PG_SHAPE);
}

// As only a damaged database says it: counted as the first attempt, not before the array.
static void attempts_below_one_are_counted_as_the_first(void **state)
{
    (void)state;
    static const int attempts[] = {0, -1, INT32_MIN, INT32_MAX};
    rig_open();
    for (unsigned i = 0; i < countof(attempts); i++) {
        entry(&acks[i], 1, "a")->status = ACK_FAILED;
        start(&acks[i]);
        turn();
        fake_row("grp:i entry:i why:i released:b dead:b queue_name:t lane_name:t lane:l "
                 "consumer:l attempt:i due_at:T",
                 1, 0, ACK_OK, 0, 0, "q", "p1", (int64_t)1, (int64_t)101, attempts[i],
                 (int64_t)CREATED_US);
        answer(0);
        assert_int_equal(acks[i].entries[0].attempt, attempts[i]);
    }
    assert_int_equal(counter_get(&broker_stats(broker)->retries[0]), 3);
    assert_int_equal(counter_get(&broker_stats(broker)->retries[RETRY_ATTEMPTS - 1]), 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(requests_of_one_turn_are_settled_in_one_call),
        T(nothing_but_impossible_partitions_needs_no_call),
        T(one_bad_request_is_found_and_its_neighbour_succeeds),
        T(a_lost_connection_sends_the_ack_again_but_not_for_ever),
        T(a_lease_that_is_gone_after_a_lost_connection_leaves_the_ack_in_doubt),
        T(a_row_of_an_unrequested_group_is_an_error),
        T(an_ack_that_releases_the_lane_wakes_its_parked_pop),
        T(an_ack_that_leaves_the_lane_empty_wakes_no_pop),
        T(renewals_share_a_call_and_each_gets_its_result),
        T(a_short_answer_to_renewals_is_an_error_not_a_guess),
        T(attempts_below_one_are_counted_as_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
