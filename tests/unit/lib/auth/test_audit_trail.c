// Records of actions and of refused requests: the limits under a flood.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "auth/audit_trail.h"

static const int routes[100]; // stand for routes

static struct audit_entry entry(unsigned host, const char *subject, unsigned route, int status)
{
    struct audit_entry e = {.status = status, .key = &routes[route]};

    e.ip[10] = e.ip[11] = 0xff;
    e.ip[12] = 10;
    e.ip[14] = (uint8_t)(host >> 8);
    e.ip[15] = (uint8_t)host;
    e.text[AUDIT_SUBJECT] = span_of(subject);
    return e;
}

static unsigned count(struct audit_trail *t, uint64_t *requests)
{
    struct audit_records all = STAILQ_HEAD_INITIALIZER(all);
    struct audit_record *r;
    unsigned n = audit_trail_take(t, &all, UINT32_MAX);

    *requests = 0;
    STAILQ_FOREACH (r, &all, link)
        *requests += r->count;
    audit_records_free(&all);
    return n;
}

static void actions_are_recorded_one_by_one(void **state)
{
    struct audit_trail *t = audit_trail_new();
    struct audit_entry e = entry(1, "ops", 0, 200);
    uint64_t requests;

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        assert_true(audit_trail_add(t, &e, i, i));
    assert_int_equal(count(t, &requests), 10);
    assert_true(audit_trail_is_idle(t));
    audit_trail_free(t);
}

static void repeated_denials_are_counted(void **state)
{
    struct audit_trail *t = audit_trail_new();
    struct audit_entry e = entry(1, "mallory", 0, 403);
    uint64_t requests;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(audit_trail_add(t, &e, i, i), i == 0);
    assert_int_equal(count(t, &requests), 1);
    audit_trail_sweep(t, AUDIT_WINDOW_US - 1, 0, false, NULL);
    assert_int_equal(count(t, &requests), 0);
    audit_trail_sweep(t, AUDIT_WINDOW_US, 0, false, NULL);
    assert_int_equal(count(t, &requests), 1);
    assert_int_equal(requests, 999);
    assert_true(audit_trail_is_idle(t));
    // A new window begins with a record.
    assert_true(audit_trail_add(t, &e, AUDIT_WINDOW_US + 1, 0));
    audit_trail_sweep(t, 3 * (uint64_t)AUDIT_WINDOW_US, 0, false, NULL);
    assert_int_equal(count(t, &requests), 1); // nothing followed
    audit_trail_free(t);
}

static void a_subject_a_status_and_a_route_have_their_own_windows(void **state)
{
    struct audit_trail *t = audit_trail_new();
    struct audit_entry all[] = {entry(1, "a", 0, 403), entry(1, "b", 0, 403),
                                entry(1, "a", 1, 403), entry(1, "a", 0, 401),
                                entry(2, "a", 0, 403)};
    uint64_t requests;

    (void)state;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(audit_trail_add(t, &all[i], 1, 1));
        assert_false(audit_trail_add(t, &all[i], 1, 1));
    }
    assert_int_equal(count(t, &requests), 5);
    audit_trail_free(t);
}

static void a_flood_is_bounded_and_every_request_is_counted(void **state)
{
    struct audit_trail *t = audit_trail_new();
    uint64_t requests, first;

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        struct audit_entry e = entry(i % 5000, "", i % 100, 401);
        audit_trail_add(t, &e, 1, 1);
    }
    assert_int_equal(count(t, &first), AUDIT_WINDOWS);
    audit_trail_sweep(t, AUDIT_WINDOW_US + 2, 0, false, NULL);
    assert_in_range(count(t, &requests), 1, AUDIT_WINDOWS + 1);
    assert_int_equal(first + requests, 100000);
    audit_trail_free(t);
}

// One address cannot use up the windows of the others.
static void one_address_leaves_room_for_others(void **state)
{
    struct audit_trail *t = audit_trail_new();
    struct audit_entry other = entry(9, "", 0, 401);

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        struct audit_entry e = entry(1, "", i, 401);
        assert_int_equal(audit_trail_add(t, &e, 1, 1), i < AUDIT_WINDOWS_PER_SENDER);
    }
    assert_true(audit_trail_add(t, &other, 1, 1));
    audit_trail_free(t);
}

static void an_ipv6_network_counts_as_one_address(void **state)
{
    struct audit_trail *t = audit_trail_new();
    struct audit_entry e = {.status = 401, .ip = {0x20, 0x01, 0x0d, 0xb8}};

    (void)state;
    assert_true(audit_trail_add(t, &e, 1, 1));
    e.ip[15] = 1;
    assert_false(audit_trail_add(t, &e, 1, 1));
    e.ip[7] = 1;
    assert_true(audit_trail_add(t, &e, 1, 1));
    audit_trail_free(t);
}

static void records_that_nobody_stores_are_limited(void **state)
{
    struct audit_trail *t = audit_trail_new();
    struct audit_entry e = entry(1, "ops", 0, 200);
    struct audit_records some = STAILQ_HEAD_INITIALIZER(some);
    uint64_t requests;

    (void)state;
    for (unsigned i = 0; i < AUDIT_MAX_RECORDS + 7; i++)
        audit_trail_add(t, &e, 1, 1);
    assert_int_equal(audit_trail_lost(t), 7);
    assert_int_equal(audit_trail_take(t, &some, 10), 10);
    audit_trail_return(t, &some);
    assert_int_equal(count(t, &requests), AUDIT_MAX_RECORDS);
    audit_trail_free(t);
}

static void hostile_text_becomes_text(void **state)
{
    struct audit_trail *t = audit_trail_new();
    struct audit_entry e = entry(1, "x", 0, 200);
    struct audit_records all = STAILQ_HEAD_INITIALIZER(all);
    char path[2000];

    (void)state;
    memset(path, 0xff, sizeof path);
    e.text[AUDIT_PATH] = (span){path, sizeof path};
    audit_trail_add(t, &e, 1, 1);
    audit_trail_take(t, &all, 1);
    assert_int_equal(strlen(STAILQ_FIRST(&all)->text[AUDIT_PATH]), AUDIT_TEXT);
    assert_int_equal(STAILQ_FIRST(&all)->text[AUDIT_PATH][0], '?');
    audit_records_free(&all);
    audit_trail_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_are_recorded_one_by_one),
        cmocka_unit_test(repeated_denials_are_counted),
        cmocka_unit_test(a_subject_a_status_and_a_route_have_their_own_windows),
        cmocka_unit_test(a_flood_is_bounded_and_every_request_is_counted),
        cmocka_unit_test(one_address_leaves_room_for_others),
        cmocka_unit_test(an_ipv6_network_counts_as_one_address),
        cmocka_unit_test(records_that_nobody_stores_are_limited),
        cmocka_unit_test(hostile_text_becomes_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
