// stored.c: counts of stored bytes are of one server.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auth/identity_limits.h"
#include "rig.h"

static struct limit_table *limits;
static struct limit_state *sender;

static void count(int64_t lane) { stored_add(broker, SPAN("a"), lane, CREATED_US, 1000); }

static void open_with_limits(void)
{
    limits = limits_new();
    sender = limits_find(limits, SPAN("a"), 0);
    limits_stored_count(sender);
    rig_open();
    house_use_limits(broker->house, limits);
    stored_start(broker);
}

static void close_with_limits(void)
{
    fake_fail_all(QE_PG_AWAY);
    stored_free(broker);
    house_use_limits(broker->house, NULL);
    limits_drop(sender);
    limits_free(limits);
}

static void counts_are_sent_again_after_an_outage(void **state)
{
    (void)state;
    open_with_limits();
    count(7);
    wait_ms(1000);
    fake_answer(fake_find("count_stored"), QE_PG_AWAY);
    wait_ms(1000);
    assert_int_equal(fake_int(fake_find("count_stored")->params, PG_INT8, 0, 0), 7);
    close_with_limits();
}

// Their numbers may mean other partitions there.
static void counts_are_not_sent_to_another_server(void **state)
{
    (void)state;
    open_with_limits();
    count(7);
    wait_ms(1000);
    count(8);
    assert_true(is_of_server(fake_find("count_stored")->statement));
    broker_forget(broker);
    count(9);
    fake_answer(fake_find("count_stored"), QE_PG_RETRY);
    wait_ms(1000);
    const struct pg_params *sent = fake_find("count_stored")->params;
    assert_int_equal(fake_len(sent, PG_INT8, 0), 1);
    assert_int_equal(fake_int(sent, PG_INT8, 0, 0), 9);
    close_with_limits();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(counts_are_sent_again_after_an_outage),
        T(counts_are_not_sent_to_another_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
