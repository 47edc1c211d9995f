// scan.c: a group that meets more partitions than one page has.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

static void a_pop_that_does_not_wait_is_answered_after_some_pages(void **state)
{
    (void)state;
    static struct pop a, b;
    char name[8];
    unsigned pages = 0;
    rig_open();
    pop_start(&a, "q", 0);
    answer_changes();
    for (; a.times == 0 && pages < 20; pages++) {
        snprintf(name, sizeof name, "p%02u", pages);
        row_more(name);
        answer_page();
        answer_feed();
    }
    assert_int_equal(a.times, 1);
    assert_int_equal(a.rendered, 0);
    assert_in_range(pages, 3, 10);

    // The scan goes on, and the next pop is served from it.
    pop_start(&b, "q", 0);
    answer_feed();
    assert_int_equal(b.times, 0);
    row_lane(2, "q1");
    answer_page();
    claim_lane(2);
    assert_int_equal(b.rendered, 1);
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

    // The second page is on its way, so the next pop cannot be answered with nothing.
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

// The next page takes longer than the pop waits.
static void a_waiting_pop_ends_at_its_timeout(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_start(&p, "q", 500);
    answer_changes();
    row_more("p");
    answer_page();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(p.times, 0);
        wait_ms(100);
        answer_feed();
    }
    assert_non_null(fake_find("discover"));
    assert_int_equal(p.times, 1);
    assert_int_equal(p.status, 0);
    answer_page();
    assert_null(fake_find("discover"));
}

// Pops that came while the first page was being read wait for it, but not longer than their
// timeout.
static void a_second_waiting_pop_ends_at_its_timeout(void **state)
{
    (void)state;
    static struct pop a, b, c;
    rig_open();
    pop_start(&a, "q", 60000);
    answer_changes();
    pop_start(&b, "q", 500);
    answer_feed();
    pop_start(&c, "q", 60000);
    answer_feed();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(b.times, 0);
        wait_ms(100);
        answer_feed();
    }
    assert_int_equal(b.times, 1);
    row_lane(1, "p1");
    row_lane(2, "p2");
    answer_page();
    row_claimed(1, 1, false, MINUTE_US);
    row_claimed(2, 2, false, MINUTE_US);
    answer("claim", 0);
    assert_int_equal(a.rendered, 1);
    assert_int_equal(c.rendered, 1);
}

// Another process pushes to a partition of a page that was read before.
static void a_waiting_pop_is_woken_by_the_feed(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_start(&p, "q", 60000);
    answer_changes();
    row_more("p");
    answer_page();
    wait_ms(100);
    fake_row("snapshot:t", "2:2:");
    fake_row("lane:l lane_id:u lane_name:t queue_name:t", (int64_t)1, uuid(1), "p1", "q");
    answer("changes", 0);
    struct pg_call *call = fake_find("ensure_consumers");
    assert_non_null(call);
    fake_row("idx:i lane:l consumer:l", 0, (int64_t)1, (int64_t)101);
    fake_answer(call, 0);
    turn();
    claim_lane(1);
    assert_int_equal(p.rendered, 1);
    answer_page();
}

// The watermark is written once the last page was read, also if all pops wait.
static void an_empty_scan_is_recorded(void **state)
{
    (void)state;
    static struct pop p;
    rig_open();
    pop_start(&p, "q", 60000);
    answer_changes();
    row_more("p");
    answer_page();
    assert_null(fake_find("note_empty"));
    answer_page();
    assert_non_null(fake_find("note_empty"));
    answer("note_empty", 0);
    assert_int_equal(p.times, 0);
}

static void a_locked_partition_is_queried_again(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_start(&a, "q", 0);
    answer_changes();
    row_lane(2, "p2");
    fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", (int64_t)1, uuid(1), "p1",
             (int64_t)0, 1);
    answer_page();
    claim_lane(2);
    assert_int_equal(a.rendered, 1);
    pop_start(&b, "q", 60000);
    fake_row("idx:i lane:l consumer:l", 0, (int64_t)1, (int64_t)0); // still locked
    answer("ensure_consumers", 0);
    answer_feed();
    assert_int_equal(b.times, 0);
    assert_null(fake_find("ensure_consumers"));
    wait_ms(100);
    answer_feed();
    fake_row("idx:i lane:l consumer:l", 0, (int64_t)1, (int64_t)101);
    answer("ensure_consumers", 0);
    claim_lane(1);
    assert_int_equal(b.rendered, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_pop_that_does_not_wait_is_answered_after_some_pages),
        T(a_pop_is_served_from_the_first_page),
        T(a_pop_is_empty_after_the_last_page),
        T(a_failed_page_is_read_again),
        T(a_waiting_pop_ends_at_its_timeout),
        T(a_second_waiting_pop_ends_at_its_timeout),
        T(a_waiting_pop_is_woken_by_the_feed),
        T(an_empty_scan_is_recorded),
        T(a_locked_partition_is_queried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
