// unused.c, lanes.c: names that nobody uses are forgotten, and those in use stay.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "rig.h"

enum { LOOK_MS = 60 * 1000, N = 500 };

static void pop_of_group(struct pop *p, const char *group, const char *partition)
{
    pop_fill(p, "q", 0);
    p->op.group = span_of(group);
    p->op.partition = span_of(partition);
    pop_give(p);
    if (fake_find("changes"))
        answer_changes();
    if (fake_find("discover"))
        answer_discover(0);
    answer_look();
    struct pg_call *note;
    while ((note = fake_find("note_empty")))
        fake_answer(note, 0);
    turn();
    assert_int_equal(p->times, 1);
}

// Past the time after which names are unused; the calls of chores are answered.
static void let_it_look(void)
{
    for (unsigned i = 0; i < 20; i++) {
        wait_ms(LOOK_MS);
        for (unsigned left = 100; fake_nth(0) && left > 0; left--) {
            fake_answer(fake_nth(0), QE_PG_AWAY);
            turn();
        }
    }
    assert_int_equal(fake_n_calls(), 0);
}

static void many_groups(void)
{
    static struct pop pops[N];
    static char names[N][16];

    for (unsigned i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "group %u", i);
        pop_of_group(&pops[i], names[i], NULL);
    }
}

static void unused_groups_are_forgotten_after_a_while(void **state)
{
    (void)state;
    static struct push m;
    rig_open();
    many_groups();
    assert_int_equal(broker->n_groups, N);
    let_it_look();
    assert_int_equal(broker->n_groups, 0);
    assert_null(broker->queues);
    // A new partition costs them nothing: no consumer is made, here or in the database.
    push_to("p1", &m);
    assert_null(fake_find("ensure_consumers"));
    assert_int_equal(atomic_load(&broker_stats(broker)->consumers), 0);
}

static void groups_beyond_the_limit_are_forgotten_at_once(void **state)
{
    (void)state;
    rig_open();
    broker->limits.groups = 20;
    many_groups();
    assert_true(broker->n_groups <= 21);
}

static void consumers_beyond_the_limit_are_forgotten_with_their_groups(void **state)
{
    (void)state;
    static struct push m;
    rig_open();
    many_groups();
    broker->limits.consumers = 50;
    push_to("p1", &m); // N known groups
    turn();
    struct pg_call *c = fake_call("ensure_consumers");
    unsigned n = fake_len(c->params, PG_TEXT, 0);
    for (unsigned i = 0; i < n && i < 128; i++)
        fake_row("idx:i lane:l consumer:l", (int)i, (int64_t)1, (int64_t)(1000 + i));
    fake_answer(c, 0);
    for (unsigned i = 0; i < 20; i++)
        turn();
    assert_true(atomic_load(&broker_stats(broker)->consumers) <= 50);
}

static void a_group_in_use_stays(void **state)
{
    (void)state;
    static struct pop leased, parked;
    static struct push m;
    rig_open();
    broker->limits.groups = 0; // all that may go, goes
    pop_first(&leased, "q", 0, 1);
    claim_of_lane(1, false, 3600ll * 1000 * 1000);
    assert_int_equal(leased.rendered, 1);
    turn();
    assert_int_equal(broker->n_groups, 1); // it has a lease
    pop_fill(&parked, "q", 3600 * 1000);
    parked.op.group = SPAN("other");
    pop_give(&parked);
    if (fake_find("discover"))
        answer_discover(0);
    answer_look();
    let_it_look();
    assert_int_equal(broker->n_groups, 2);
    assert_int_equal(parked.times, 0);
    push_to("p2", &m); // both groups hear of it, the parked pop is served
    struct pg_call *c = fake_find("ensure_consumers");
    assert_non_null(c);
    for (unsigned i = 0; i < fake_len(c->params, PG_TEXT, 0); i++)
        fake_row("idx:i lane:l consumer:l", (int)i, (int64_t)2, (int64_t)(200 + i));
    fake_answer(c, 0);
    turn();
    c = fake_find("claim");
    assert_non_null(c);
    row_claimed(1, 2, false, MINUTE_US);
    fake_answer(c, 0);
    turn();
    assert_string_equal(parked.partitions, "p2");
}

// A group that comes back finds what is there, as at its first contact.
static void a_forgotten_group_is_discovered_again(void **state)
{
    (void)state;
    static struct pop a, b;
    rig_open();
    pop_of_group(&a, "g", NULL);
    let_it_look();
    assert_int_equal(broker->n_groups, 0);
    pop_start(&b, "q", 0);
    answer_discover(1);
    claim_of_lane(1, false, MINUTE_US);
    assert_int_equal(b.rendered, 1);
}

// Partitions that do not exist are names like others: they do not outgrow the limit.
static void partitions_that_do_not_exist_are_forgotten_beyond_the_limit(void **state)
{
    (void)state;
    static struct pop pops[N];
    static char names[N][16];
    static struct pop parked;
    rig_open();
    broker->limits.lanes = 100;
    pop_fill(&parked, "q", 3600 * 1000);
    parked.op.partition = SPAN("p1");
    pop_give(&parked);
    answer_changes();
    answer_discover(0);
    for (unsigned i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "none %u", i);
        pop_of_group(&pops[i], "g", names[i]);
    }
    assert_true(broker->n_lanes <= 100);
    assert_int_equal(parked.times, 0); // and stays seated
    static struct push m;
    push_to("p1", &m);
    answer_number(101);
    claim_of_lane(1, false, MINUTE_US);
    assert_string_equal(parked.partitions, "p1");
}

static void unused_selectors_are_forgotten(void **state)
{
    (void)state;
    static struct pop pops[20];
    static char names[20][16];
    rig_open();
    for (unsigned i = 0; i < countof(pops); i++) {
        snprintf(names[i], sizeof names[i], "group %u", i);
        pop_fill(&pops[i], NULL, 0);
        pops[i].op.namespace_ = SPAN("n");
        pops[i].op.group = span_of(names[i]);
        pop_give(&pops[i]);
        struct pg_call *c;
        while ((c = fake_nth(0))) {
            if (strcmp(c->statement->name, "select_queues") == 0)
                fake_row("name:t", "q");
            else if (strcmp(c->statement->name, "changes") == 0)
                fake_row("snapshot:t", "1:1:");
            fake_answer(c, 0);
            turn();
        }
        assert_int_equal(pops[i].times, 1);
    }
    assert_false(LIST_EMPTY(&broker->selectors));
    assert_int_equal(broker->n_groups, countof(pops));
    let_it_look();
    assert_true(LIST_EMPTY(&broker->selectors));
    assert_int_equal(broker->n_groups, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(unused_groups_are_forgotten_after_a_while),
        T(groups_beyond_the_limit_are_forgotten_at_once),
        T(consumers_beyond_the_limit_are_forgotten_with_their_groups),
        T(a_group_in_use_stays),
        T(a_forgotten_group_is_discovered_again),
        T(partitions_that_do_not_exist_are_forgotten_beyond_the_limit),
        T(unused_selectors_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
