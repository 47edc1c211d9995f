// Tests of reading events: refused events, and the error texts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ingest/event.h"

#define ID       "\"id\":\"0190c2f0-5b7e-7000-8a11-2b3c4d5e6f70\","
#define AT       "\"at\":\"2026-11-16T04:05:06Z\","
#define CUSTOMER "\"customer_id\":\"AAAAAAAA-0000-4000-8000-000000000001\""
#define ROW      "\"id\":\"bbbbbbbb-0000-4000-8000-000000000002\""
#define VISIT(data) \
    "{\"tenant\":\"acme\"," ID "\"type\":\"visit.recorded\"," AT "\"data\":{" data "}}"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static void refused(const char *json, const char *why)
{
    struct event e;
    struct fault f = {0};

    assert_int_not_equal(event_read(&e, span_of(json), SPAN_NONE, &arena, &f), 0);
    assert_string_equal(f.text, why);
}

static void a_good_event_is_taken_apart(void **state)
{
    struct event e;
    struct fault f;

    (void)state;
    assert_int_equal(event_read(&e,
                                span_of(VISIT(CUSTOMER "," ROW ",\"rating\":5.0,"
                                                       "\"service\":null")),
                                SPAN_NONE, &arena, &f),
                     0);
    assert_true(span_eq(e.tenant, SPAN("acme")));
    assert_string_equal(e.type->name, "visit.recorded");
    assert_int_equal(e.at_us, 1794801906000000);
    assert_int_equal(e.customer[0], 0xaa);
    assert_int_equal(e.row[0], 0xbb);
    assert_true(span_eq(e.values[0], SPAN("\"aaaaaaaa-0000-4000-8000-000000000001\"")));
    assert_null(e.values[3].ptr); // service
    assert_true(span_eq(e.values[5], SPAN("5")));
}

static void the_envelope_is_checked(void **state)
{
    (void)state;
    refused("[]", "an event must be a JSON object");
    refused("{\"tenant\":\"\"," ID AT "\"data\":{}}", "tenant: must be the name of a tenant");
    refused("{\"tenant\":\"a\",\"id\":7}", "id: must be a UUID");
    refused("{\"tenant\":\"a\"," ID "\"type\":\"x.y\"}", "type: unknown event type \"x.y\"");
    refused("{\"tenant\":\"a\"," ID "\"type\":\"visit.recorded\",\"at\":\"today\"}",
            "at: must be a time with zone such as 2026-11-16T04:05:06Z, from 1900 to 2199");
    refused("{\"tenant\":\"a\"," ID AT "\"type\":\"visit.recorded\",\"data\":[]}",
            "data: must be an object");
    // The year in UTC counts, whatever the zone of the text makes of it.
    refused("{\"tenant\":\"a\"," ID "\"type\":\"visit.recorded\","
            "\"at\":\"1900-01-01T00:30:00+01:00\"}",
            "at: must be a time with zone such as 2026-11-16T04:05:06Z, from 1900 to 2199");
    refused("{\"tenant\":\"a\"," ID "\"type\":\"visit.recorded\","
            "\"at\":\"2199-12-31T23:30:00-01:00\"}",
            "at: must be a time with zone such as 2026-11-16T04:05:06Z, from 1900 to 2199");
}

static void the_data_is_checked(void **state)
{
    (void)state;
    refused(VISIT(CUSTOMER), "data.id: must be given");
    refused(VISIT(CUSTOMER "," ROW ",\"ratting\":5"),
            "data.ratting: unknown member of visit.recorded");
    refused(VISIT(CUSTOMER "," ROW ",\"rating\":6"), "data.rating: is out of range");
    refused(VISIT(CUSTOMER "," ROW ",\"rating\":4.5"), "data.rating: must be a whole number");
    refused(VISIT("\"customer_id\":null," ROW), "data.customer_id: must be given");
}

static void the_tenant_of_the_address_counts(void **state)
{
    struct event e;
    struct fault f;

    (void)state;
    assert_int_not_equal(
        event_read(&e, span_of(VISIT(CUSTOMER "," ROW)), SPAN("other"), &arena, &f), 0);
    assert_string_equal(f.text, "tenant: must be the tenant of the path");
    assert_int_equal(
        event_read(&e,
                   span_of("{" ID AT "\"type\":\"customer.deleted\",\"data\":{" CUSTOMER "}}"),
                   SPAN("other"), &arena, &f),
        0);
    assert_true(span_eq(e.tenant, SPAN("other")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_event_is_taken_apart),
        cmocka_unit_test(the_envelope_is_checked),
        cmocka_unit_test(the_data_is_checked),
        cmocka_unit_test(the_tenant_of_the_address_counts),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
