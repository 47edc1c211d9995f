// ack_group.c: entries grouped for the database, and its rows given back to them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id.h"
#include "broker/settle/ack_int.h"
#include "db/sql.gen.h"
#include "rig.h"
#include "segment/keys.h"

// Which array of the parameters.
#define LANE_ID      PG_UUID, 0
#define NAME         PG_TEXT, 0
#define KEYS         PG_BYTEA, 0
#define UNIFORM      PG_BOOL, 0
#define LEASE        PG_UUID, 1
#define ENTRY_GROUP  PG_INT4, 0
#define ENTRY_STATUS PG_INT2, 0
#define ENTRY_LEASE  PG_UUID, 2
#define ENTRY_ERROR  PG_TEXT, 1

#define LEASE_A SPAN("f47ac10b-58cc-4372-a567-0e02b2c3d479")
#define LEASE_B SPAN("0e02b2c3-58cc-4372-a567-f47ac10bd479")

static struct arena arena;
static struct ack_entry entries[8];
static span names[8];
static unsigned n_entries, n_groups;
static struct ack_group *groups;
static struct pg_params params;

static int setup(void **state)
{
    arena_init(&arena);
    n_entries = 0;
    memset(entries, 0, sizeof entries);
    return rig_setup(state);
}

static int teardown(void **state)
{
    arena_deinit(&arena);
    pg_params_free(&params);
    params = (struct pg_params){0};
    return rig_teardown(state);
}

static struct ack_entry *add(unsigned partition, const char *txid, span lease)
{
    struct ack_entry *e = &entries[n_entries];

    e->txid = span_of(txid);
    e->lease = lease;
    memcpy(e->partition_id, uuid(partition), 16);
    names[n_entries++] = SPAN("g");
    return e;
}

static void group(bool name_each)
{
    struct ack_group *list[8];

    groups = ack_groups_make(&arena, entries, n_entries, names, name_each, &n_groups);
    assert_true(n_groups <= 8);
    for (unsigned i = 0; i < n_groups; i++)
        list[i] = &groups[i];
    ack_groups_fill(&params, list, n_groups);
}

// ---- grouping ----

static void completed_entries_of_one_lease_are_uniform(void **state)
{
    (void)state;
    uint8_t key[16];
    add(1, "a", LEASE_A), add(1, "b", LEASE_A), add(1, "c", LEASE_A);
    group(false);
    assert_int_equal(n_groups, 1);
    assert_memory_equal(fake_bytes(&params, LANE_ID, 0).ptr, uuid(1), 16);
    assert_true(span_eq(fake_bytes(&params, NAME, 0), SPAN("g")));
    assert_int_equal(fake_int(&params, UNIFORM, 0), 1);
    (void)key_of_text(LEASE_A, key);
    assert_memory_equal(fake_bytes(&params, LEASE, 0).ptr, key, 16);
    assert_int_equal(fake_bytes(&params, KEYS, 0).len, 3 * 16);
    (void)key_of_text(SPAN("c"), key);
    assert_memory_equal(fake_bytes(&params, KEYS, 0).ptr + 32, key, 16); // in request order
    assert_int_equal(fake_len(&params, ENTRY_GROUP), 0);
}

static void without_any_lease_they_are_uniform_too(void **state)
{
    (void)state;
    add(1, "a", SPAN_NONE), add(1, "b", SPAN_NONE);
    group(false);
    assert_int_equal(fake_int(&params, UNIFORM, 0), 1);
    assert_null(fake_bytes(&params, LEASE, 0).ptr);
}

static void one_that_failed_makes_the_group_mixed(void **state)
{
    (void)state;
    uint8_t key[16];
    add(1, "a", LEASE_A);
    struct ack_entry *e = add(1, "b", LEASE_A);
    e->status = ACK_FAILED;
    e->error = SPAN("no stock");
    group(false);
    assert_int_equal(n_groups, 1);
    assert_int_equal(fake_int(&params, UNIFORM, 0), 0);
    assert_null(fake_bytes(&params, LEASE, 0).ptr);
    assert_int_equal(fake_len(&params, ENTRY_GROUP), 2);
    assert_int_equal(fake_int(&params, ENTRY_GROUP, 1), 1); // 1-based
    assert_int_equal(fake_int(&params, ENTRY_STATUS, 0), ACK_COMPLETED);
    assert_int_equal(fake_int(&params, ENTRY_STATUS, 1), ACK_FAILED);
    (void)key_of_text(LEASE_A, key);
    assert_memory_equal(fake_bytes(&params, ENTRY_LEASE, 1).ptr, key, 16);
    assert_null(fake_bytes(&params, ENTRY_ERROR, 0).ptr);
    assert_true(span_eq(fake_bytes(&params, ENTRY_ERROR, 1), SPAN("no stock")));
}

static void the_first_that_failed_makes_it_mixed_as_well(void **state)
{
    (void)state;
    add(1, "a", LEASE_A)->status = ACK_DLQ;
    add(1, "b", LEASE_A);
    group(false);
    assert_int_equal(fake_int(&params, UNIFORM, 0), 0);
}

static void two_leases_make_the_group_mixed(void **state)
{
    (void)state;
    add(1, "a", LEASE_A), add(1, "b", LEASE_B);
    group(false);
    assert_int_equal(n_groups, 1);
    assert_int_equal(fake_int(&params, UNIFORM, 0), 0);
}

static void entries_with_and_without_a_lease_make_the_group_mixed(void **state)
{
    (void)state;
    add(1, "a", SPAN_NONE), add(1, "b", LEASE_B);
    group(false);
    assert_int_equal(fake_int(&params, UNIFORM, 0), 0);
    assert_null(fake_bytes(&params, ENTRY_LEASE, 0).ptr);
    assert_int_equal(fake_bytes(&params, ENTRY_LEASE, 1).len, 16);
}

static void interleaved_partitions_become_one_group_each(void **state)
{
    (void)state;
    add(1, "a", LEASE_A), add(2, "b", LEASE_A), add(1, "c", LEASE_A), add(3, "d", LEASE_A),
        add(2, "e", LEASE_A)->status = ACK_RETRY;
    group(false);
    assert_int_equal(n_groups, 3);
    assert_ptr_equal(groups[0].first, &entries[0]);
    assert_ptr_equal(groups[0].first->next, &entries[2]);
    assert_int_equal(groups[0].n, 2);
    assert_ptr_equal(groups[1].last, &entries[4]);
    assert_int_equal(groups[2].n, 1);
    assert_int_equal(fake_int(&params, UNIFORM, 0), 1);
    assert_int_equal(fake_int(&params, UNIFORM, 1), 0);
    assert_int_equal(fake_int(&params, UNIFORM, 2), 1);
    assert_int_equal(fake_len(&params, ENTRY_GROUP), 2); // of the mixed one only
    assert_int_equal(fake_int(&params, ENTRY_GROUP, 0), 2);
}

static void consumer_groups_of_a_transaction_are_kept_apart(void **state)
{
    (void)state;
    add(1, "a", LEASE_A), add(1, "b", LEASE_A), add(1, "c", LEASE_A);
    names[1] = SPAN("other");
    group(true);
    assert_int_equal(n_groups, 2);
    assert_int_equal(groups[0].n, 2);
    assert_true(span_eq(fake_bytes(&params, NAME, 1), SPAN("other")));
}

static void partitions_that_cannot_exist_are_answered_without_asking(void **state)
{
    (void)state;
    add(1, "a", LEASE_A)->bad_partition = true;
    add(1, "b", LEASE_A);
    add(2, "c", LEASE_A)->bad_partition = true;
    group(false);
    assert_int_equal(n_groups, 1);
    assert_ptr_equal(groups[0].first, &entries[1]);
    assert_int_equal(entries[0].why, ACK_NOT_FOUND);
    assert_int_equal(entries[0].released, -1);
    assert_int_equal(entries[2].why, ACK_NOT_FOUND);
}

static void nothing_but_bad_partitions_makes_no_group(void **state)
{
    (void)state;
    add(1, "a", LEASE_A)->bad_partition = true;
    add(2, "b", LEASE_A)->bad_partition = true;
    group(false);
    assert_int_equal(n_groups, 0);
    assert_int_equal(fake_len(&params, LANE_ID), 0);
}

static void a_good_partition_after_bad_ones_of_the_same_bytes_has_room(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) // all partition ids zero but the last
        add(0, "a", LEASE_A)->bad_partition = i < 7;
    memcpy(entries[7].partition_id, uuid(1), 16);
    group(false);
    assert_int_equal(n_groups, 1);
    assert_int_equal(groups[0].n, 1);
}

// ---- the rows ----

static void one_row_answers_a_uniform_group(void **state)
{
    (void)state;
    rig_open();
    add(1, "a", LEASE_A), add(1, "b", LEASE_A);
    group(false);
    fake_row("grp:i why:i released:b dead:b queue_name:t lane_name:t lane:l consumer:l", 1,
             ACK_OK, 0, 0, "queue", "lane", (int64_t)7, (int64_t)107);
    ack_group_read(broker, &groups[0], fake_reply(&pg_stmt_settle), 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(entries[i].why, ACK_OK);
        assert_int_equal(entries[i].released, 0);
        assert_false(entries[i].dead);
        assert_true(span_eq(entries[i].queue, SPAN("queue")));
        assert_true(span_eq(entries[i].partition, SPAN("lane")));
    }
}

static void rows_of_a_mixed_group_answer_one_entry_each(void **state)
{
    (void)state;
    rig_open();
    add(1, "a", LEASE_A), add(1, "b", LEASE_B), add(1, "c", LEASE_A);
    group(false);
    fake_row("grp:i entry:i why:i released:b dead:b queue_name:t lane_name:t lane:l consumer:l "
             "more:b",
             1, 2, ACK_OK, 1, 1, "queue", "lane", (int64_t)7, (int64_t)107, 1);
    fake_row("grp:i entry:i why:i dead:b queue_name:t lane_name:t lane:l consumer:l", 1, 0,
             ACK_BAD_LEASE, 0, "queue", "lane", (int64_t)7, (int64_t)107);
    const struct pg_reply *reply = fake_reply(&pg_stmt_settle);
    ack_group_read(broker, &groups[0], reply, 0, 0);
    ack_group_read(broker, &groups[0], reply, 1, 0);
    assert_int_equal(entries[0].why, ACK_BAD_LEASE);
    assert_int_equal(entries[0].released, -1);
    assert_int_equal(entries[1].why, ACK_NOT_FOUND); // no row: as it began
    assert_int_equal(entries[2].why, ACK_OK);
    assert_int_equal(entries[2].released, 1);
    assert_true(entries[2].dead);
    assert_true(span_eq(entries[1].queue, SPAN("queue"))); // the partition is known
}

static void a_row_for_an_entry_that_is_not_there_changes_nothing(void **state)
{
    (void)state;
    rig_open();
    add(1, "a", LEASE_A)->status = ACK_FAILED;
    group(false);
    fake_row("grp:i entry:i why:i dead:b", 1, 5, ACK_OK, 0);
    ack_group_read(broker, &groups[0], fake_reply(&pg_stmt_settle), 0, 0);
    assert_int_equal(entries[0].why, ACK_NOT_FOUND);
    assert_null(entries[0].queue.ptr);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(completed_entries_of_one_lease_are_uniform),
        T(without_any_lease_they_are_uniform_too),
        T(one_that_failed_makes_the_group_mixed),
        T(the_first_that_failed_makes_it_mixed_as_well),
        T(two_leases_make_the_group_mixed),
        T(entries_with_and_without_a_lease_make_the_group_mixed),
        T(interleaved_partitions_become_one_group_each),
        T(consumer_groups_of_a_transaction_are_kept_apart),
        T(partitions_that_cannot_exist_are_answered_without_asking),
        T(nothing_but_bad_partitions_makes_no_group),
        T(a_good_partition_after_bad_ones_of_the_same_bytes_has_room),
        T(one_row_answers_a_uniform_group),
        T(rows_of_a_mixed_group_answer_one_entry_each),
        T(a_row_for_an_entry_that_is_not_there_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
