// hand_over.c: pops that wait are served in the transaction of the push.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

enum { DUPLICATES = 1, LANE_GONE = 3 };

// The watermark of the group, which is empty.
static void note_empty(void)
{
    if (fake_find("note_empty"))
        fake_answer(fake_find("note_empty"), 0);
    turn();
}

// A pop of the group that has read lane 1 to its end, and is parked.
static void park(struct pop *p)
{
    rig_open();
    pop_first(p, "q", 60000, 1);
    row_status(1, EMPTY, 0);
    answer_claim();
    note_empty();
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
}

static void push_more(struct push *m, const char *partition)
{
    *m = (struct push){0};
    push_item(m, "q", partition, NULL);
    push_start(m);
    turn();
    if (fake_find("ensure_lanes"))
        answer_lanes();
}

static void row_handed(int64_t lane)
{
    fake_row("stored_lane:l stored_seq:l stored_at:T stored_status:i", lane, (int64_t)1,
             (int64_t)CREATED_US, 0);
}

static void answer_handed(int status)
{
    fake_answer(fake_find("push_claim"), status);
    turn();
}

static void assert_quiet(void)
{
    turn();
    assert_null(fake_find("claim"));
    assert_null(fake_find("push"));
    assert_null(fake_find("push_claim"));
}

static void a_parked_pop_is_served_by_the_push(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    park(&p);
    push_more(&m, "p1");
    const struct pg_params *sent = fake_find("push_claim")->params;
    assert_int_equal(fake_int(sent, PG_INT8, 0, 0), 1);    // the lane
    assert_int_equal(fake_int(sent, PG_INT8, -3, 0), 101); // the consumer
    assert_int_equal(fake_int(sent, PG_INT4, -1, 0), 10);  // as many as the pop wants
    row_handed(1);
    row_claimed(1, 1, false, MINUTE_US);
    answer_handed(0);
    assert_int_equal(m.times, 1);
    assert_int_equal(m.status, 0);
    assert_int_equal(p.times, 1);
    assert_string_equal(p.partitions, "p1");
    assert_true(p.has_lease);
    assert_quiet();
}

static void nobody_waits_so_the_push_is_plain(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_first(&p, "q", 0, 1);
    row_status(1, EMPTY, 0);
    answer_claim();
    answer_look();
    note_empty();
    assert_int_equal(p.times, 1);
    push_more(&m, "p1");
    assert_null(fake_find("push_claim"));
    answer_stored();
    assert_int_equal(m.times, 1);
}

// The claim has seen all that the push stored, so the next pop waits without another look.
static void the_next_pop_waits_without_a_look(void **state)
{
    (void)state;
    static struct pop first, second;
    static struct push m;
    rig_open();
    pop_fill(&first, "q", 60000);
    first.op.auto_ack = true;
    pop_give(&first);
    answer_changes();
    answer_discover(1);
    row_status(1, EMPTY, 0);
    answer_claim();
    pop_fill(&second, "q", 60000);
    second.op.auto_ack = true;
    pop_give(&second);
    answer_look();
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 2);
    for (unsigned i = 0; i < 2; i++) {
        push_more(&m, "p1");
        assert_int_equal(fake_len(fake_find("push_claim")->params, PG_INT8, -3), 1);
        row_handed(1);
        row_claimed(1, 1, false, 0);
        answer_handed(0);
        assert_int_equal(m.times, 1);
        assert_quiet();
        assert_int_equal(first.times + second.times, i + 1);
    }
}

// More than the pop could take: the next one is served at once.
static void what_is_left_goes_to_the_next_pop(void **state)
{
    (void)state;
    static struct pop first, second;
    static struct push m;
    park(&first);
    first.op.auto_ack = true;
    pop_fill(&second, "q", 60000);
    second.op.auto_ack = true;
    pop_give(&second);
    answer_look();
    push_more(&m, "p1");
    row_handed(1);
    row_claimed(1, 1, true, 0);
    answer_handed(0);
    assert_int_equal(first.times, 1);
    claim_of_lane(1, false, 0);
    assert_int_equal(second.times, 1);
    assert_quiet();
}

// The consumers of other lanes of the batch are made ready as ever.
static void lanes_without_a_waiting_pop_stay_ready(void **state)
{
    (void)state;
    static struct pop p, later;
    static struct push m = {0};
    rig_open();
    pop_first(&p, "q", 60000, 2);
    row_status(1, EMPTY, 0);
    answer_claim();
    row_status(1, EMPTY, 0);
    answer_claim();
    note_empty();
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
    push_item(&m, "q", "p1", NULL);
    push_item(&m, "q", "p2", NULL);
    push_start(&m);
    turn();
    if (fake_find("ensure_lanes"))
        answer_lanes();
    const struct pg_params *sent = fake_find("push_claim")->params;
    int lane = (int)fake_int(sent, PG_INT8, -3, 0) - 100;
    assert_int_equal(fake_len(sent, PG_INT8, -3), 1);
    for (unsigned i = 0; i < 2; i++)
        row_handed(fake_int(sent, PG_INT8, 0, i));
    row_claimed(1, lane, false, MINUTE_US);
    answer_handed(0);
    assert_int_equal(p.times, 1);
    note_empty();
    pop_start(&later, "q", 60000);
    claim_of_lane(3 - lane, false, MINUTE_US);
    assert_int_equal(later.times, 1);
}

static void a_push_that_fails_has_claimed_nothing(void **state)
{
    (void)state;
    static const int codes[] = {QE_PG_RETRY, QE_PG_DATA, QE_PG_AWAY};
    for (unsigned i = 0; i < countof(codes); i++) {
        static struct pop p;
        static struct push m;
        if (i > 0)
            assert_int_equal(rig_setup(NULL), 0);
        park(&p);
        push_more(&m, "p1");
        answer_handed(codes[i]);
        assert_int_equal(p.times, 0);
        assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
        assert_null(fake_find("release")); // no lease is given back
        for (unsigned n = 0; n < 20 && p.times == 0; n++) {
            if (fake_find("push_claim"))
                row_handed(1), row_claimed(1, 1, false, MINUTE_US), answer_handed(0);
            else if (fake_find("push"))
                row_stored(1), fake_answer(fake_find("push"), 0);
            else if (fake_find("claim"))
                row_claimed(1, 1, false, MINUTE_US), fake_answer(fake_find("claim"), 0);
            else if (fake_find("changes"))
                fake_row("snapshot:t", "1:1:"), fake_answer(fake_find("changes"), 0);
            wait_ms(100);
        }
        assert_int_equal(p.times, 1);
        assert_int_equal(p.rendered, 1);
        assert_int_equal(m.times, 1);
        if (i + 1 < countof(codes))
            assert_int_equal(rig_teardown(NULL), 0);
    }
}

// Whether it was stored and leased is not known: the lease is given back, the push repeated.
static void a_lost_connection_leaves_the_pop_waiting(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    park(&p);
    push_more(&m, "p1");
    uint8_t lease[16];
    memcpy(lease, fake_bytes(fake_find("push_claim")->params, PG_UUID, -1, 0).ptr, 16);
    answer_handed(QE_PG_GONE);
    assert_int_equal(p.times, 0);
    assert_int_equal(m.times, 0);
    struct pg_call *release = fake_find("release");
    assert_non_null(release);
    assert_memory_equal(fake_bytes(release->params, PG_UUID, 0, 0).ptr, lease, 16);
    broker_pop_cancel(broker, &p.op);
    turn();
    fake_fail_all(QE_PG_AWAY);
}

static void an_autoack_pop_learns_of_a_lost_connection(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_fill(&p, "q", 60000);
    p.op.auto_ack = true;
    pop_give(&p);
    answer_changes();
    answer_discover(1);
    row_status(1, EMPTY, 0);
    answer_claim();
    push_more(&m, "p1");
    answer_handed(QE_PG_GONE);
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, QE_PG_GONE);
    assert_true(p.op.op.unknown);
    fake_fail_all(QE_PG_AWAY);
}

static void duplicates_wake_nobody(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    park(&p);
    push_more(&m, "p1");
    fake_row("seg:i stored_status:i pos:i dup_id:u", 1, DUPLICATES, 0, uuid(1));
    row_status(1, EMPTY, 0);
    answer_handed(0);
    assert_int_equal(m.times, 1);
    assert_int_equal(m.items[0].status, PUSH_DUPLICATE);
    answer_look();
    assert_quiet();
    assert_int_equal(p.times, 0);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
}

static void a_lane_that_is_gone_is_found_again(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    park(&p);
    push_more(&m, "p1");
    fake_row("seg:i stored_status:i", 1, LANE_GONE);
    row_status(1, GONE, 0);
    answer_handed(0);
    for (unsigned i = 0; i < 20 && p.times == 0; i++) {
        if (fake_find("ensure_lanes"))
            fake_row("idx:i lane:l lane_id:u", 0, (int64_t)2, uuid(2)),
                fake_answer(fake_find("ensure_lanes"), 0);
        if (fake_find("push"))
            row_stored(2), fake_answer(fake_find("push"), 0);
        if (fake_find("discover"))
            fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)2, uuid(2),
                     "p1", (int64_t)102, 1),
                fake_answer(fake_find("discover"), 0);
        if (fake_find("claim"))
            row_claimed(1, 2, false, MINUTE_US), fake_answer(fake_find("claim"), 0);
        if (fake_find("changes"))
            fake_row("snapshot:t", "1:1:"), fake_answer(fake_find("changes"), 0);
        wait_ms(100);
    }
    assert_int_equal(m.times, 1);
    assert_int_equal(m.status, 0);
    assert_string_equal(p.partitions, "p1");
}

// Retries and options are for the careful claim, which is made after the push.
static void a_lane_that_wants_care_is_claimed_later(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    park(&p);
    push_more(&m, "p1");
    row_handed(1);
    row_status(1, WANTS_CARE, 0);
    answer_handed(0);
    row_claimed(1, 1, false, MINUTE_US);
    answer_careful_claim();
    assert_int_equal(p.times, 1);
    assert_string_equal(p.partitions, "p1");
}

static void a_client_that_leaves_gets_nothing(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    park(&p);
    push_more(&m, "p1");
    broker_pop_cancel(broker, &p.op);
    turn();
    row_handed(1);
    row_claimed(1, 1, false, MINUTE_US);
    answer_handed(0);
    assert_int_equal(m.times, 1);
    assert_int_equal(p.times, 1);
    assert_int_equal(p.rendered, 0);
    assert_non_null(fake_find("release"));
}

// Only the rows decide which of them are about the push.
static void rows_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        static struct pop p;
        static struct push m;
        if (i > 0)
            assert_int_equal(rig_setup(NULL), 0);
        park(&p);
        push_more(&m, "p1");
        if (i == 0)
            row_claimed(1, 1, false, MINUTE_US), row_handed(1);
        else if (i == 1)
            fake_row("stored_lane:l stored_seq:l stored_at:T", (int64_t)1, (int64_t)1,
                     (int64_t)CREATED_US);
        else
            row_handed(1), fake_row("target:i", 1);
        answer_handed(0);
        assert_int_equal(p.times, 1);
        assert_int_equal(p.status, QE_PG_SHAPE);
        assert_int_equal(m.times, 1);
        assert_int_equal(m.status, QE_PG_SHAPE);
        fake_fail_all(QE_PG_AWAY);
        if (i < 2)
            assert_int_equal(rig_teardown(NULL), 0);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_parked_pop_is_served_by_the_push),
        T(nobody_waits_so_the_push_is_plain),
        T(the_next_pop_waits_without_a_look),
        T(what_is_left_goes_to_the_next_pop),
        T(lanes_without_a_waiting_pop_stay_ready),
        T(a_push_that_fails_has_claimed_nothing),
        T(a_lost_connection_leaves_the_pop_waiting),
        T(an_autoack_pop_learns_of_a_lost_connection),
        T(duplicates_wake_nobody),
        T(a_lane_that_is_gone_is_found_again),
        T(a_lane_that_wants_care_is_claimed_later),
        T(a_client_that_leaves_gets_nothing),
        T(rows_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
