// pop.c, group.c, feed.c: pops of one partition while their group, consumer or database
// changes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rig.h"

static void pop_partition(struct pop *p, const char *partition, unsigned timeout_ms)
{
    pop_fill(p, "q", timeout_ms);
    p->op.partition = span_of(partition);
    pop_give(p);
}

static void fail_call(const char *name)
{
    fake_answer(fake_call(name), QE_PG_AWAY);
    turn();
}

static void a_pop_parked_before_the_feed_works_gets_its_own_partition_only(void **state)
{
    (void)state;
    static struct pop of_p2, any;
    rig_open();
    pop_partition(&of_p2, "p2", 60000);
    fail_call("changes"); // the database is away
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
    pop_start(&any, "q", 60000);
    answer_changes();
    // One looks for all partitions, the other for p2, which does not exist.
    for (unsigned i = 0; i < 2; i++) {
        struct pg_call *c = fake_call("discover");
        if (c->params->param[1].len == SIZE_MAX)
            answer_discover(1);
        else
            answer_discover(0);
    }
    claim_of_lane(1, false, MINUTE_US);
    assert_string_equal(any.partitions, "p1");
    assert_int_equal(of_p2.times, 0);
}

static void a_pop_parked_by_maintenance_gets_its_own_partition_only(void **state)
{
    (void)state;
    static struct pop of_p2, any;
    rig_open();
    pop_first(&any, "q", 60000, 0);
    broker->pops_stopped = true;
    pop_partition(&of_p2, "p2", 60000);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 2);
    broker->pops_stopped = false; // and before anybody looks again:
    struct push m;
    push_to("p1", &m);
    answer_number(101);
    claim_of_lane(1, false, MINUTE_US);
    assert_string_equal(any.partitions, "p1");
    assert_int_equal(of_p2.times, 0);
}

// The partition is deleted while a pop of it is being discovered, and the discovery fails.
static void a_pop_survives_its_consumer_while_it_discovers(void **state)
{
    (void)state;
    static struct pop first, p;
    static struct push m = {0};
    rig_open();
    pop_partition(&first, "p1", 0);
    answer_changes();
    answer_discover(1);
    row_status(1, EMPTY, 0);
    answer_claim();
    assert_int_equal(first.times, 1);

    pop_fill(&p, "q", 60000);
    p.op.partition = SPAN("p1");
    p.op.sub_mode = SPAN("new"); // must be recorded: it is looked for again
    pop_give(&p);
    struct pg_call *discover = fake_call("discover");
    push_item(&m, "q", "p1", NULL);
    push_start(&m);
    turn();
    fake_row("status:i seg:i", 3, 1); // the partition is gone, and so is its consumer
    fake_answer(fake_find("push"), 0);
    assert_int_equal(atomic_load(&broker_stats(broker)->consumers), 0);
    fake_answer(discover, QE_PG_AWAY);
    turn();
    assert_int_equal(p.times, 0);
    assert_int_equal(atomic_load(&broker_stats(broker)->parked), 1);
    answer_lanes(); // made again: the push goes on and wakes the pop
    answer_stored();
    answer_number(102);
    assert_int_equal(target_of(fake_call("claim"), 0), 102);
    row_claimed(1, 1, false, MINUTE_US);
    answer_claim();
    assert_string_equal(p.partitions, "p1");
}

// A pop of one partition discovers while its group looks for all of them: what is pushed
// meanwhile must reach the group, whose answer may be older.
static void a_discovery_of_one_partition_does_not_end_that_of_the_group(void **state)
{
    (void)state;
    static struct pop all, one, later;
    static struct push m;
    rig_open();
    pop_start(&all, "q", 0);
    answer_changes();
    struct pg_call *whole = fake_call("discover");
    pop_partition(&one, "p1", 0);
    fake_answer(fake_nth(1), 0); // no such partition
    turn();
    assert_int_equal(one.times, 1);
    m = (struct push){0};
    push_item(&m, "q", "p9", NULL);
    push_start(&m);
    turn();
    fake_row("idx:i lane:l lane_id:u", 0, (int64_t)9, uuid(9));
    fake_answer(fake_find("ensure_lanes"), 0);
    turn();
    row_stored(9);
    fake_answer(fake_find("push"), 0);
    turn();
    fake_answer(whole, 0); // read before the push
    turn();
    answer_look();
    answer_number(109);
    if (all.times == 1)
        pop_start(&later, "q", 0);
    assert_int_equal(target_of(fake_call("claim"), 0), 109);
    row_claimed(1, 9, false, MINUTE_US);
    answer_claim();
    assert_int_equal(all.rendered + later.rendered, 1);
}

// A number that is none is not remembered: the entry would outlive its consumer.
static void a_consumer_without_a_number_is_not_found(void **state)
{
    (void)state;
    rig_open();
    struct queue *q = queue_get(broker, SPAN("q"));
    struct group *g = group_get(broker, q, SPAN("g"));
    struct consumer *c = consumer_get(broker, g, lane_get(broker, q, SPAN("p1")));
    consumer_set_num(broker, c, 101);
    consumer_set_num(broker, c, 0);
    assert_null(consumer_find_num(broker, 101));
    assert_null(consumer_find_num(broker, 0));
    consumer_gone(broker, c);
    assert_null(consumer_find_num(broker, 0));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_pop_parked_before_the_feed_works_gets_its_own_partition_only),
        T(a_pop_parked_by_maintenance_gets_its_own_partition_only),
        T(a_pop_survives_its_consumer_while_it_discovers),
        T(a_discovery_of_one_partition_does_not_end_that_of_the_group),
        T(a_consumer_without_a_number_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
