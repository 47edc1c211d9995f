// Results that do not answer what was asked: rows in another order, too many, too few, NULLs
// and values out of range.  Nothing is read out of bounds, and every operation gets an answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

enum { N_POPS = 3 };

// What a row of a claim says; the defaults are a sound one.
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
        assert_int_equal(p[k].op.op.unknown, auto_ack); // what it took is lost, and it is told
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

static void a_parked_pop_does_not_ask_an_odd_database_for_ever(void **state)
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
    assert_null(broker->held);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_claims_are_refused_as_a_whole), // opens a broker for each
        T(a_parked_pop_does_not_ask_an_odd_database_for_ever),
        T(keys_that_are_too_short_are_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
