// Tests of folding events into rows.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/mem.h"
#include "ingest/fold.h"

static struct arena arena;
static struct fold fold;
static unsigned n_made;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    fold_init(&fold, &arena);
    n_made = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fold_deinit(&fold);
    arena_deinit(&arena);
    return 0;
}

// Event number n_made of customer 1, at that second; data behind the customer's id.
static const struct event *event(const char *type, const char *data)
{
    struct buf b = {0};
    struct event *e = arena_new(&arena, struct event);
    struct fault f = {0};

    n_made++;
    buf_printf(&b,
               "{\"tenant\":\"t\",\"id\":\"00000000-0000-4000-8000-%012u\",\"type\":\"%s\","
               "\"at\":\"2026-11-16T00:00:%02uZ\",\"data\":{\"customer_id\":"
               "\"10000000-0000-4000-8000-000000000001\"%s}}",
               n_made, type, n_made, data);
    span text = arena_copy(&arena, buf_span(&b));
    buf_free(&b);
    if (event_read(e, text, SPAN_NONE, &arena, &f) != 0)
        fail_msg("%s", f.text);
    return e;
}

#define ROW ",\"id\":\"20000000-0000-4000-8000-000000000002\""

static void rows_are(enum event_table table, const char *expected)
{
    struct buf b = {0};

    fold_put_rows(&fold, table, &b);
    buf_putc(&b, '\0');
    assert_string_equal(b.ptr, expected);
    buf_free(&b);
}

#define IDS                                                            \
    "\"customer_id\":\"10000000-0000-4000-8000-000000000001\",\"id\":" \
    "\"20000000-0000-4000-8000-000000000002\""

static void the_last_event_of_a_row_wins(void **state)
{
    (void)state;
    assert_true(
        fold_add(&fold, event("package.changed", ROW ",\"status\":\"active\",\"price\":5")));
    assert_true(fold_add(&fold, event("package.changed", ROW ",\"status\":\"expired\"")));
    rows_are(TABLE_PACKAGES, "[{\"at\":\"2026-11-16T00:00:02.000000Z\"," IDS ",\"status\":3}]");
}

static void a_customer_was_made_by_the_first_event(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, event("customer.upserted", ",\"city\":\"Rome\"")));
    assert_true(fold_add(&fold, event("customer.upserted", "")));
    rows_are(TABLE_CUSTOMERS, "[{\"at\":\"2026-11-16T00:00:02.000000Z\",\"customer_id\":"
                              "\"10000000-0000-4000-8000-000000000001\",\"created_at\":"
                              "\"2026-11-16T00:00:01.000000Z\"}]");
}

static void logs_are_appended_to(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, event("visit.recorded", ROW)));
    assert_true(fold_add(&fold, event("visit.recorded", ROW)));
    rows_are(TABLE_VISITS, "[{\"at\":\"2026-11-16T00:00:01.000000Z\"," IDS
                           "},{\"at\":\"2026-11-16T00:00:02.000000Z\"," IDS "}]");
}

static void adjustments_add_up(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, event("wallet.adjusted", ROW ",\"delta\":10.10")));
    assert_true(fold_add(&fold, event("wallet.adjusted", ROW ",\"delta\":0.2")));
    assert_false(fold_has(&fold, TABLE_WALLETS));
    rows_are(TABLE_ADJUSTMENTS, "[{\"at\":\"2026-11-16T00:00:02.000000Z\"," IDS
                                ",\"delta\":10.30,\"last_topup_at\":"
                                "\"2026-11-16T00:00:02.000000Z\"}]");
}

static void adjustments_up_and_down_do_not_share_a_transaction(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, event("wallet.adjusted", ROW ",\"delta\":9999999999.99")));
    assert_true(fold_add(&fold, event("wallet.adjusted", ROW ",\"delta\":0")));
    assert_false(fold_add(&fold, event("wallet.adjusted", ROW ",\"delta\":-9999999999.99")));
}

static void a_top_up_at_the_epoch_is_one(void **state)
{
    (void)state;
    struct event e = *event("wallet.adjusted", ROW ",\"delta\":1");
    e.at_us = 0;
    assert_true(fold_add(&fold, &e));
    rows_are(TABLE_ADJUSTMENTS, "[{\"at\":\"1970-01-01T00:00:00.000000Z\"," IDS
                                ",\"delta\":1.00,\"last_topup_at\":"
                                "\"1970-01-01T00:00:00.000000Z\"}]");
}

static void a_wallets_record_starts_a_transaction_and_takes_later_adjustments(void **state)
{
    static const char record[] = ROW ",\"balance\":5,\"status\":\"frozen\","
                                     "\"last_topup_at\":\"2020-01-01T00:00:00Z\"";

    (void)state;
    assert_true(fold_add(&fold, event("wallet.changed", record)));
    assert_true(fold_add(&fold, event("wallet.adjusted", ROW ",\"delta\":-7.5")));
    assert_false(fold_add(&fold, event("wallet.changed", record)));
    rows_are(TABLE_WALLETS,
             "[{\"at\":\"2026-11-16T00:00:01.000000Z\"," IDS
             ",\"balance\":5.00,\"last_topup_at\":\"2020-01-01T00:00:00.000000Z\","
             "\"status\":2}]");
    rows_are(TABLE_ADJUSTMENTS,
             "[{\"at\":\"2026-11-16T00:00:02.000000Z\"," IDS ",\"delta\":-7.50}]");
}

static const struct event *at(int64_t us, const struct event *e)
{
    struct event *copy = arena_new(&arena, struct event);

    *copy = *e;
    copy->at_us = us;
    return copy;
}

static void the_newest_event_of_a_row_wins_in_any_order(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, at(9, event("customer.upserted", ",\"city\":\"Rome\""))));
    assert_true(fold_add(&fold, at(8, event("customer.upserted", ",\"city\":\"Bonn\""))));
    assert_true(fold_add(&fold, at(9, event("customer.upserted", ",\"city\":\"Oslo\""))));
    rows_are(TABLE_CUSTOMERS, "[{\"at\":\"1970-01-01T00:00:00.000009Z\",\"customer_id\":"
                              "\"10000000-0000-4000-8000-000000000001\",\"city\":\"Oslo\","
                              "\"created_at\":\"1970-01-01T00:00:00.000009Z\"}]");
    assert_true(fold_add(&fold, at(7, event("wallet.adjusted", ROW ",\"delta\":1"))));
    assert_true(fold_add(&fold, at(6, event("wallet.adjusted", ROW ",\"delta\":1"))));
    rows_are(TABLE_ADJUSTMENTS, "[{\"at\":\"1970-01-01T00:00:00.000007Z\"," IDS
                                ",\"delta\":2.00,\"last_topup_at\":"
                                "\"1970-01-01T00:00:00.000007Z\"}]");
}

static void patches_keep_their_order_behind_the_record(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, event("customer.upserted", "")));
    assert_true(fold_add(&fold, event("customer.patched", ",\"city\":\"Rome\",\"note\":null")));
    assert_true(fold_add(&fold, event("customer.patched", ",\"city\":\"Bonn\"")));
    assert_false(fold_add(&fold, event("customer.upserted", "")));
    rows_are(TABLE_PATCHES,
             "[{\"at\":\"2026-11-16T00:00:02.000000Z\",\"customer_id\":"
             "\"10000000-0000-4000-8000-000000000001\",\"city\":\"Rome\",\"note\":null,"
             "\"created_at\":\"2026-11-16T00:00:02.000000Z\"},{\"at\":"
             "\"2026-11-16T00:00:03.000000Z\",\"customer_id\":"
             "\"10000000-0000-4000-8000-000000000001\",\"city\":\"Bonn\",\"created_at\":"
             "\"2026-11-16T00:00:03.000000Z\"}]");
}

static void a_deletion_goes_alone(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, event("visit.recorded", ROW)));
    assert_false(fold_add(&fold, event("customer.deleted", "")));
    fold_deinit(&fold);
    fold_init(&fold, &arena);
    assert_true(fold_add(&fold, event("customer.deleted", "")));
    assert_true(fold_add(&fold, event("customer.deleted", "")));
    assert_false(fold_add(&fold, event("visit.recorded", ROW)));
}

static void an_event_is_here_once(void **state)
{
    const struct event *e = event("visit.recorded", ROW);

    (void)state;
    assert_true(fold_add(&fold, e));
    assert_false(fold_add(&fold, e));
}

static unsigned customers_of(enum event_table table)
{
    const struct fold_row *at = fold_rows(&fold, table);
    const uint8_t *customer;
    unsigned n = 0;

    while ((customer = fold_next_customer(&at))) {
        assert_int_equal(customer[0], 0x10);
        assert_int_equal(customer[15], 1);
        n++;
    }
    return n;
}

static void the_customers_are_those_of_rows_that_are_written(void **state)
{
    (void)state;
    assert_true(fold_add(&fold, event("visit.recorded", ROW)));
    assert_true(fold_add(&fold, event("visit.recorded", ROW)));
    assert_true(fold_add(&fold, event("wallet.adjusted", ROW ",\"delta\":1")));
    assert_int_equal(customers_of(TABLE_VISITS), 2);
    assert_int_equal(customers_of(TABLE_ADJUSTMENTS), 1);
    assert_int_equal(customers_of(TABLE_WALLETS), 0);
    assert_int_equal(customers_of(TABLE_CUSTOMERS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(the_last_event_of_a_row_wins),
        TEST(a_customer_was_made_by_the_first_event),
        TEST(logs_are_appended_to),
        TEST(adjustments_add_up),
        TEST(a_top_up_at_the_epoch_is_one),
        TEST(adjustments_up_and_down_do_not_share_a_transaction),
        TEST(a_wallets_record_starts_a_transaction_and_takes_later_adjustments),
        TEST(the_newest_event_of_a_row_wins_in_any_order),
        TEST(patches_keep_their_order_behind_the_record),
        TEST(a_deletion_goes_alone),
        TEST(an_event_is_here_once),
        TEST(the_customers_are_those_of_rows_that_are_written),
    };

    map_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
