// outstanding.c: a whole batch is finished without looking at it; anything else is settled.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/id.h"
#include "rig.h"
#include "segment/keys.h"

enum { ENTRIES = 3 };

struct ack {
    struct ack_op op;
    struct ack_entry entries[ENTRIES];
    struct arena arena;
    unsigned times;
    int status;
};

static struct pop pop;
static struct ack ack, again;
static char lease_text[37];

static int setup(void **state)
{
    pop = (struct pop){0};
    ack = again = (struct ack){0};
    arena_init(&ack.arena);
    arena_init(&again.arena);
    return rig_setup(state);
}

static int teardown(void **state)
{
    arena_deinit(&ack.arena);
    arena_deinit(&again.arena);
    return rig_teardown(state);
}

// The claim gets messages "a", "b" and "c" of lane 1.
static void answer_three(bool more)
{
    static uint8_t keys[ENTRIES][16];
    struct pg_call *claim = fake_find("claim");

    for (unsigned i = 0; i < ENTRIES; i++)
        (void)key_of_text((span){&"abc"[i], 1}, keys[i]);
    id_format_uuid(lease_of(claim, 0), lease_text);
    fake_row("target:i status:i wait_us:l lane_id:u retries:i start_seq:l take:i more:b "
             "first_seq:l count:i created_at:T keys:y body:y ver:l",
             1, 0, (int64_t)MINUTE_US, uuid(1), 0, (int64_t)1, ENTRIES, more, (int64_t)1,
             ENTRIES, (int64_t)CREATED_US, (span){(const char *)keys, sizeof keys},
             SPAN("\x01\0\0\0\0\x02{}\0\0\0\0\x02{}\0\0\0\0\x02{}"), (int64_t)7);
    fake_answer(claim, 0);
    turn();
    assert_int_equal(pop.times, 1);
}

// Messages "a", "b" and "c" of lane 1 of queue "q" are out under a lease.
static void pop_three(bool more)
{
    rig_open();
    pop_first(&pop, "q", 0, 1);
    answer_three(more);
}

// A claim for consumer 101 is out, and a call for its number, which a discovery has answered
// first.
static void claim_while_number_is_asked(void)
{
    static struct pop first;
    static struct push m;

    rig_open();
    pop_first(&first, "q", 0, 0);
    push_to("p1", &m);
    pop_fill(&pop, "q", 0);
    pop.op.sub_mode = SPAN("new"); // must be recorded: the group is discovered again
    pop_give(&pop);
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)1, uuid(1), "p1",
             (int64_t)101, 1);
    fake_answer(fake_find("discover"), 0);
    turn();
    assert_non_null(fake_find("ensure_consumers"));
    assert_non_null(fake_find("claim"));
}

static void on_done(struct ack_op *op, int status)
{
    struct ack *a = container_of(op, struct ack, op);

    a->times++;
    a->status = status;
}

static void acknowledge(struct ack *a, const char *txids, enum ack_status last)
{
    a->op.n_entries = (unsigned)strlen(txids);
    for (unsigned i = 0; i < a->op.n_entries; i++) {
        a->entries[i] = (struct ack_entry){.txid = {txids + i, 1}, .lease = {lease_text, 36}};
        memcpy(a->entries[i].partition_id, uuid(1), 16);
    }
    a->entries[a->op.n_entries - 1].status = last;
    a->op.entries = a->entries;
    a->op.arena = &a->arena;
    a->op.group = SPAN("g");
    a->op.done = on_done;
    broker_ack(broker, &a->op);
    turn();
}

static void the_whole_batch_is_finished_in_any_order(void **state)
{
    (void)state;
    pop_three(false);
    acknowledge(&ack, "cab", ACK_COMPLETED);
    const struct pg_call *call = fake_call("finish");
    assert_int_equal(fake_int(call->params, PG_INT8, 0, 0), 101); // consumer
    assert_int_equal(fake_int(call->params, PG_INT8, 1, 0), 1);   // lane
    assert_int_equal(fake_int(call->params, PG_INT8, 2, 0), 7);   // version
    assert_int_equal(fake_bytes(call->params, PG_BOOL, 0, 0).ptr[0], 0);
    fake_row("consumer:l", (int64_t)101);
    fake_answer(fake_call("finish"), 0);
    turn();
    assert_int_equal(ack.times, 1);
    for (unsigned i = 0; i < ENTRIES; i++) {
        assert_int_equal(ack.entries[i].why, ACK_OK);
        assert_int_equal(ack.entries[i].released, 1);
        assert_true(span_eq(ack.entries[i].queue, SPAN("q")));
        assert_true(span_eq(ack.entries[i].partition, SPAN("p1")));
    }
    assert_int_equal(counter_get(&broker_stats(broker)->acks_ok), ENTRIES);
}

static void messages_that_are_pending_behind_it_are_reported(void **state)
{
    (void)state;
    pop_three(true);
    acknowledge(&ack, "abc", ACK_COMPLETED);
    assert_int_equal(fake_bytes(fake_call("finish")->params, PG_BOOL, 0, 0).ptr[0], 1);
    fake_row("consumer:l", (int64_t)101);
    fake_answer(fake_call("finish"), 0);
    turn();
    struct pop next = {0}; // the lane is ready again
    pop_start(&next, "q", 0);
    turn();
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(next.times, 1);
}

static void a_part_or_a_failure_is_settled(void **state)
{
    (void)state;
    pop_three(false);
    acknowledge(&ack, "ab", ACK_COMPLETED);
    assert_non_null(fake_find("settle"));
    assert_null(fake_find("finish"));
    fake_answer(fake_call("settle"), 0);
    turn();
    acknowledge(&again, "abc", ACK_FAILED);
    fake_answer(fake_call("settle"), 0);
    turn();
    assert_int_equal(again.times, 1);
}

static void one_message_named_twice_is_not_the_batch(void **state)
{
    (void)state;
    pop_three(false);
    acknowledge(&ack, "abb", ACK_COMPLETED);
    fake_answer(fake_call("settle"), 0);
    turn();
}

static void the_second_of_two_equal_acks_is_settled(void **state)
{
    (void)state;
    pop_three(false);
    acknowledge(&ack, "abc", ACK_COMPLETED);
    acknowledge(&again, "abc", ACK_COMPLETED);
    fake_row("consumer:l", (int64_t)101);
    fake_answer(fake_call("finish"), 0);
    turn();
    fake_answer(fake_call("settle"), 0);
    turn();
    assert_int_equal(ack.entries[0].why, ACK_OK);
    assert_int_equal(again.entries[0].why, ACK_NOT_FOUND); // as in the fake's answer: nothing
}

static void entries_that_cannot_be_finished_are_settled(void **state)
{
    (void)state;
    pop_three(false);
    acknowledge(&ack, "abc", ACK_COMPLETED);
    fake_answer(fake_call("finish"), 0); // no row, for example because the lease has ended
    turn();
    assert_int_equal(ack.times, 0);
    fake_row("grp:i why:i released:b dead:b queue_name:t lane_name:t lane:l consumer:l", 1,
             ACK_BAD_LEASE, 0, 0, "q", "p1", (int64_t)1, (int64_t)101);
    fake_answer(fake_call("settle"), 0);
    turn();
    assert_int_equal(ack.times, 1);
    assert_int_equal(ack.entries[2].why, ACK_BAD_LEASE);
}

static void after_the_lease_has_run_out_nothing_is_held(void **state)
{
    (void)state;
    pop_three(false);
    wait_ms(61000);
    acknowledge(&ack, "abc", ACK_COMPLETED);
    assert_null(fake_find("finish"));
    fake_answer(fake_find("settle"), 0);
    turn();
}

static void a_consumer_of_another_server_holds_nothing(void **state)
{
    (void)state;
    claim_while_number_is_asked();
    answer_three(false);
    broker_forget(broker);
    acknowledge(&ack, "abc", ACK_COMPLETED);
    assert_null(fake_find("finish"));
    fake_answer(fake_find("settle"), 0);
    turn();
}

static void a_claim_for_another_server_holds_nothing(void **state)
{
    (void)state;
    claim_while_number_is_asked();
    broker_forget(broker);
    answer_three(false);
    acknowledge(&ack, "abc", ACK_COMPLETED);
    assert_null(fake_find("finish"));
    fake_answer(fake_find("settle"), 0);
    turn();
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_whole_batch_is_finished_in_any_order),
        T(messages_that_are_pending_behind_it_are_reported),
        T(a_part_or_a_failure_is_settled),
        T(one_message_named_twice_is_not_the_batch),
        T(the_second_of_two_equal_acks_is_settled),
        T(entries_that_cannot_be_finished_are_settled),
        T(after_the_lease_has_run_out_nothing_is_held),
        T(a_consumer_of_another_server_holds_nothing),
        T(a_claim_for_another_server_holds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
