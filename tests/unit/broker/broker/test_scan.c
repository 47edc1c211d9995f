// scan.c: a group that meets more partitions than one page has.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

static void row_lane(int lane, const char *name)
{
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)lane,
             uuid((unsigned)lane), name, (int64_t)(100 + lane), 1);
}

static void row_more(const char *after)
{
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)0, uuid(0), after,
             (int64_t)0, 0);
}

// Pages and claims are under way together.
static void answer(const char *name, int status)
{
    struct pg_call *call = fake_find(name);

    assert_non_null(call);
    fake_answer(call, status);
    turn();
}

static void answer_page(void) { answer("discover", 0); }

static void answer_feed(void)
{
    if (!fake_find("changes"))
        return;
    fake_row("snapshot:t", "1:1:");
    answer("changes", 0);
}

static void claim_lane(int lane)
{
    assert_int_equal(target_of(fake_find("claim"), 0), 100 + lane);
    row_claimed(1, lane, false, MINUTE_US);
    answer("claim", 0);
}

static void a_pop_is_served_from_the_first_page(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_start(&a, "q", 0);
    answer_changes();
    row_lane(1, "p1");
    row_more("p1");
    answer_page();
    claim_lane(1);
    assert_int_equal(a.times, 1);
    assert_int_equal(a.rendered, 1);

    // The second page is on its way, so the next pop cannot be told that there is nothing.
    pop_start(&b, "q", 0);
    answer_feed();
    assert_int_equal(b.times, 0);
    row_lane(2, "p2");
    answer_page();
    claim_lane(2);
    assert_int_equal(b.times, 1);
    assert_int_equal(b.rendered, 1);
    assert_null(fake_find("discover"));
}

static void a_pop_is_empty_after_the_last_page(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_start(&p, "q", 0);
    answer_changes();
    for (int page = 0; page < 3; page++) {
        row_more("p");
        answer_page();
        assert_int_equal(p.times, 0);
    }
    answer_page(); // the last one
    assert_null(fake_find("discover"));
    if (p.times == 0) { // the note is part of the answer
        fake_answer(fake_call("note_empty"), 0);
        turn();
    }
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, 0);
    assert_int_equal(p.rendered, 0);
}

static void a_failed_page_is_read_again(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_start(&a, "q", 0);
    answer_changes();
    row_lane(1, "p1");
    row_more("p1");
    answer_page();
    claim_lane(1);
    answer("discover", QE_PG_SHAPE);
    assert_null(fake_find("discover"));
    pop_start(&b, "q", 0);
    answer_feed();
    row_lane(2, "p2");
    answer_page();
    claim_lane(2);
    assert_int_equal(b.rendered, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_pop_is_served_from_the_first_page),
        T(a_pop_is_empty_after_the_last_page),
        T(a_failed_page_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
