// Results that do not match the request: rows in another order, too many, too few, NULLs
// and values out of range.  Nothing is read out of bounds, and every operation gets an answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auth/key_table.h"
#include "base/log.h"
#include "db/sql.gen.h"
#include "rig.h"

enum { N_POPS = 3 };

// The values of a row of a claim; the defaults are valid.
struct claimed {
    int target, status, take, count;
    int64_t start, first;
    bool no_id, no_keys;
};

static void put(struct claimed r)
{
    static const char keys[48];
    span all = {keys, 16 * (size_t)(r.count > 0 && r.count <= 3 ? r.count : 1)};
    const char *with_id = "target:i status:i wait_us:l lane_id:u start_seq:l take:i "
                          "first_seq:l count:i created_at:T keys:y body:y";

    if (r.no_id)
        fake_row("target:i status:i start_seq:l take:i first_seq:l count:i", r.target, r.status,
                 r.start, r.take, r.first, r.count);
    else if (r.no_keys)
        fake_row("target:i status:i lane_id:u start_seq:l take:i first_seq:l count:i", r.target,
                 r.status, uuid(1), r.start, r.take, r.first, r.count);
    else
        fake_row(with_id, r.target, r.status, (int64_t)MINUTE_US, uuid(1), r.start, r.take,
                 r.first, r.count, (int64_t)CREATED_US, all, SPAN("\x01\0\0\0\0\x02{}"));
}

#define SOUND(t)                                                   \
    {                                                              \
        .target = t, .take = 1, .count = 1, .start = 1, .first = 1 \
    }

static const struct {
    const char *what;
    struct claimed rows[6];
} odd_claims[] = {
    {"no rows", {{0}}},
    {"another order", {SOUND(3), SOUND(2), SOUND(1)}},
    {"the first two exchanged", {SOUND(2), SOUND(1), SOUND(3)}},
    {"one is missing", {SOUND(1), SOUND(3)}},
    {"the last is missing", {SOUND(1), SOUND(2)}},
    {"one too many", {SOUND(1), SOUND(2), SOUND(3), SOUND(4)}},
    {"a target far away", {SOUND(1), SOUND(2), SOUND(3), SOUND(1000000)}},
    {"a negative target", {SOUND(-1), SOUND(1), SOUND(2), SOUND(3)}},
    {"back to the first", {SOUND(1), SOUND(2), SOUND(1), SOUND(3)}},
    {"an unknown status", {SOUND(1), {.target = 2, .status = 99}, SOUND(3)}},
    {"a negative status", {SOUND(1), {.target = 2, .status = -1}, SOUND(3)}},
    {"no partition id",
     {SOUND(1),
      {.target = 2, .take = 1, .count = 1, .start = 1, .first = 1, .no_id = true},
      SOUND(3)}},
    {"no keys",
     {SOUND(1),
      {.target = 2, .take = 1, .count = 1, .start = 1, .first = 1, .no_keys = true},
      SOUND(3)}},
    {"more than the batch",
     {SOUND(1), {.target = 2, .take = 11, .count = 1, .start = 1, .first = 1}, SOUND(3)}},
    {"a negative take",
     {SOUND(1), {.target = 2, .take = -5, .count = 1, .start = 1, .first = 1}, SOUND(3)}},
    {"a negative count",
     {SOUND(1), {.target = 2, .take = 1, .count = -1, .start = 1, .first = 1}, SOUND(3)}},
    {"a start at the end of all numbers",
     {SOUND(1),
      {.target = 2, .take = 1, .count = 1, .start = INT64_MAX, .first = INT64_MAX},
      SOUND(3)}},
    {"the same segment twice", {SOUND(1), SOUND(2), SOUND(2), SOUND(3)}},
};

// Three pops in one claim, whose answer is odd.
static void give_odd_answer(unsigned i, bool auto_ack)
{
    static struct pop p[N_POPS];

    for (unsigned k = 0; k < N_POPS; k++) {
        pop_fill(&p[k], "q", 0);
        p[k].op.auto_ack = auto_ack;
        pop_give(&p[k]);
        if (k == 0)
            answer_changes();
    }
    answer_discover(N_POPS);
    assert_int_equal(fake_len(fake_call("claim")->params, PG_UUID, 0), N_POPS);
    for (unsigned k = 0; k < countof(odd_claims[i].rows); k++)
        if (odd_claims[i].rows[k].target != 0)
            put(odd_claims[i].rows[k]);
    answer_claim();
    for (unsigned k = 0; k < N_POPS; k++) {
        if (p[k].times != 1 || p[k].status != QE_PG_SHAPE || p[k].rendered != 0)
            fail_msg("%s: pop %u got %d, %u messages", odd_claims[i].what, k, p[k].status,
                     p[k].rendered);
        assert_int_equal(p[k].op.op.unknown, auto_ack); // its messages are lost, and it fails
    }
    if (!auto_ack) { // the leases that were taken are given back
        struct pg_call *c = fake_call("release");
        assert_int_equal(fake_len(c->params, PG_UUID, 0), N_POPS);
        fake_answer(c, 0);
    }
    turn();
}

static void odd_claims_are_refused_as_a_whole(void **state)
{
    for (unsigned i = 0; i < countof(odd_claims); i++)
        for (unsigned auto_ack = 0; auto_ack < 2; auto_ack++) {
            assert_int_equal(rig_setup(state), 0);
            rig_open();
            give_odd_answer(i, auto_ack);
            assert_int_equal(rig_teardown(state), 0);
        }
}

static void a_parked_pop_does_not_query_for_ever_after_unexpected_results(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 60000, 1);
    fake_row("target:i status:i", 2, EMPTY);
    answer_claim();
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, QE_PG_SHAPE);
}

// Fewer keys than messages: not read beyond their end, and no fingerprint is kept.
static void keys_that_are_too_short_are_not_read(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_first(&p, "q", 0, 1);
    char *keys = strdup("0123456789abcde"); // on the heap, for the address sanitizer
    fake_row("target:i status:i wait_us:l lane_id:u start_seq:l take:i first_seq:l count:i "
             "created_at:T keys:y body:y",
             1, 0, (int64_t)MINUTE_US, uuid(1), (int64_t)1, 10, (int64_t)1, 10,
             (int64_t)CREATED_US, (span){keys, 16}, SPAN("\x01"));
    answer_claim();
    free(keys);
    assert_int_equal(p.times, 1);
    assert_null(broker->outstanding);
}

// ---- the feed, discovery and numbers ----

static void a_change_without_its_partition_is_refused(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_start(&a, "q", 0);
    fake_row("lane:l lane_name:t queue_name:t", (int64_t)1, "p1", "q"); // no id
    fake_row("snapshot:t", "1:1:");
    fake_answer(fake_call("changes"), 0);
    turn();
    assert_int_equal(a.status, QE_PG_SHAPE);
    pop_start(&b, "q", 0);
    fake_row("queue_name:t", "q"); // neither a partition nor a snapshot
    fake_answer(fake_call("changes"), 0);
    turn();
    assert_int_equal(b.status, QE_PG_SHAPE);
}

static void a_discovered_partition_without_its_id_is_refused(void **state)
{
    (void)state;
    static struct pop a, c;
    rig_open();
    pop_start(&a, "q", 0);
    answer_changes();
    fake_row("lane:l lane_name:t consumer:l pending:b", (int64_t)1, "p1", (int64_t)101, 1);
    fake_answer(fake_call("discover"), 0);
    turn();
    assert_int_equal(a.status, QE_PG_SHAPE);
    pop_start(&c, "q", 0);
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)1, uuid(1), "p1",
             (int64_t)-1, 1); // a number that no consumer has
    fake_answer(fake_call("discover"), 0);
    turn();
    assert_int_equal(c.status, QE_PG_SHAPE);
    assert_int_equal(broker->n_lanes, 0);
}

static void a_partition_without_its_id_fails_the_request(void **state)
{
    (void)state;
    static struct push a, b;
    rig_open();
    push_item(&a, "q", "p1", NULL);
    push_start(&a);
    turn();
    fake_row("idx:i lane:l", 0, (int64_t)1);
    fake_answer(fake_call("ensure_lanes"), 0);
    turn();
    assert_int_equal(a.status, QE_PG_SHAPE);
    push_item(&b, "q", "p1", NULL);
    push_start(&b);
    turn();
    fake_row("idx:i lane:l lane_id:u", -1, (int64_t)1, uuid(1));
    fake_answer(fake_call("ensure_lanes"), 0);
    turn();
    assert_int_equal(b.status, QE_PG_SHAPE);
}

static void numbers_of_other_consumers_are_refused(void **state)
{
    (void)state;
    static struct pop p;
    static struct push m;
    rig_open();
    pop_first(&p, "q", 60000, 0);
    push_to("p1", &m);
    fake_row("idx:i lane:l consumer:l", 7, (int64_t)1, (int64_t)101);
    fake_row("idx:i lane:l consumer:l", 0, (int64_t)1, (int64_t)-5);
    fake_answer(fake_call("ensure_consumers"), 0);
    turn();
    assert_null(consumer_find_num(broker, 101));
    assert_null(consumer_find_num(broker, -5));
    wait_ms(100); // queries again
    answer_look();
    answer_number(101);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(p.rendered, 1);
}

// ---- pushes ----

static void a_stored_segment_without_its_time_is_refused(void **state)
{
    (void)state;
    static struct push p;
    rig_open();
    push_item(&p, "q", "p1", NULL);
    push_start(&p);
    answer_lanes();
    fake_row("lane:l first_seq:l status:i", (int64_t)1, (int64_t)1, 0);
    fake_answer(fake_call("push"), 0);
    turn();
    assert_int_equal(p.status, QE_PG_SHAPE);
}

static void a_scheduled_message_without_its_id_is_refused(void **state)
{
    (void)state;
    static const struct {
        int idx, status;
        bool has_id, has_due;
    } rows[] = {{0, 0, false, true},
                {0, 0, true, false},
                {0, 1, false, true},
                {5, 0, true, true},
                {0, -3, true, true}};
    rig_open();
    for (unsigned i = 0; i < countof(rows); i++) {
        static struct push pushes[countof(rows)];
        struct push *p = &pushes[i];
        push_item(p, "q", "p1", NULL);
        p->items[0].when = PUSH_AFTER;
        p->items[0].when_us = 1000 * 1000;
        push_start(p);
        turn();
        if (i == 0)
            answer_lanes();
        if (rows[i].has_id && rows[i].has_due)
            fake_row("status:i id:u due_at:T idx:i", rows[i].status, uuid(9),
                     (int64_t)CREATED_US, rows[i].idx);
        else if (rows[i].has_id)
            fake_row("status:i id:u idx:i", rows[i].status, uuid(9), rows[i].idx);
        else
            fake_row("status:i due_at:T idx:i", rows[i].status, (int64_t)CREATED_US,
                     rows[i].idx);
        fake_answer(fake_call("schedule"), 0);
        turn();
        assert_int_equal(p->status, QE_PG_SHAPE);
    }
}

// ---- transactions ----

struct tx {
    struct tx_op op;
    struct arena arena;
    struct push_item items[2];
    unsigned times;
    int status;
};

static void on_tx_done(struct tx_op *op, int status)
{
    struct tx *t = container_of(op, struct tx, op);

    t->times++;
    t->status = status;
}

// Two segments, and nothing that is delivered later.
static void odd_transactions_are_refused(void **state)
{
    (void)state;
    static const struct {
        int kind, nth, seg; // nth: of the segments sent, from 1
    } odd[][3] = {
        {{0, 1, 0}},                       // one segment of two
        {{0, 2, 0}, {0, 1, 0}},            // another order
        {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}}, // one too many
        {{3, 1, 1}},                       // scheduled, though nothing was to be
        {{4, 1, 1}},                       // not scheduled, likewise
        {{1, 1, 0}, {0, 1, 0}, {0, 2, 0}}, // acknowledged, though nothing was to be
        {{9, 1, 0}},                       // an unknown kind
    };
    static struct tx txs[countof(odd)];
    rig_open();
    for (unsigned i = 0; i < countof(odd); i++) {
        struct tx *t = &txs[i];
        struct push p = {0};
        push_item(&p, "q", "p1", NULL), push_item(&p, "q", "p2", NULL);
        memcpy(t->items, p.items, sizeof t->items);
        t->op.items = t->items;
        t->op.n_items = 2;
        arena_init(&t->arena);
        t->op.arena = &t->arena;
        t->op.done = on_tx_done;
        broker_transaction(broker, &t->op);
        turn();
        if (i == 0)
            answer_lanes();
        struct pg_call *c = fake_call("transact");
        for (unsigned k = 0; k < countof(odd[i]) && odd[i][k].nth != 0; k++)
            fake_row("kind:i lane:l created_at:T seg:i", odd[i][k].kind,
                     odd[i][k].nth <= 2
                         ? fake_int(c->params, PG_INT8, 0, (unsigned)odd[i][k].nth - 1)
                         : (int64_t)3,
                     (int64_t)CREATED_US, odd[i][k].seg);
        fake_answer(c, 0);
        turn();
        assert_int_equal(t->times, 1);
        if (t->status != QE_PG_SHAPE)
            fail_msg("transaction %u got %d", i, t->status);
        arena_deinit(&t->arena);
    }
}

// ---- leases ----

static void on_renewed(struct renew_op *op, int status) { op->why = status; }

static void renewals_in_another_order_are_refused(void **state)
{
    (void)state;
    static struct renew_op r[2];
    rig_open();
    for (unsigned i = 0; i < 2; i++) {
        r[i] = (struct renew_op){.lease = SPAN("lease"), .seconds = 60, .done = on_renewed};
        broker_renew(broker, &r[i]);
    }
    turn();
    struct pg_call *c = fake_call("renew");
    for (int i = (int)fake_len(c->params, PG_UUID, 0); i-- > 0;)
        fake_row("idx:i why:i expires_at:T", fake_len(c->params, PG_UUID, 0) == 1 ? 1 : i, 0,
                 (int64_t)CREATED_US);
    fake_answer(c, 0);
    turn();
    assert_int_equal(r[0].why, QE_PG_SHAPE);
    fake_fail_all(QE_PG_AWAY);
    turn();
}

// ---- API keys ----

// As in a database whose table was restored without its row.
static void api_keys_without_a_version_are_refused(void **state)
{
    (void)state;
    struct key_table *keys = key_table_new();
    uint8_t version[16];

    fake_row("expires_s:l", (int64_t)0); // its version is NULL
    assert_int_equal(keys_read(keys, fake_reply(&pg_stmt_read_keys), 0), QE_PG_SHAPE);
    fake_no_rows();
    assert_int_equal(keys_read(keys, fake_reply(&pg_stmt_read_keys), 0), QE_PG_SHAPE);
    assert_false(key_table_version(keys, version));
    fake_row("version:u", uuid(7));
    assert_int_equal(keys_read(keys, fake_reply(&pg_stmt_read_keys), key_table_epoch(keys)), 0);
    assert_true(key_table_version(keys, version));
    fake_no_rows();
    key_table_free(keys);
}

int main(void)
{
    log_setup(LOG_OFF, LOG_TEXT);
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_claims_are_refused_as_a_whole), // opens a broker for each
        T(a_parked_pop_does_not_query_for_ever_after_unexpected_results),
        T(keys_that_are_too_short_are_not_read),
        T(a_change_without_its_partition_is_refused),
        T(a_discovered_partition_without_its_id_is_refused),
        T(a_partition_without_its_id_fails_the_request),
        T(numbers_of_other_consumers_are_refused),
        T(a_stored_segment_without_its_time_is_refused),
        T(a_scheduled_message_without_its_id_is_refused),
        T(odd_transactions_are_refused),
        T(renewals_in_another_order_are_refused),
        T(api_keys_without_a_version_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
