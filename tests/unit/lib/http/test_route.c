// route.c: which endpoint a path reaches.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "http/route.h"

static void handle(struct http_req *req) { (void)req; }

#define ROUTE(name, v, p) \
    static const struct http_route name = {.verb = v, .path = p, .handle = handle}
ROUTE(root, HTTP_GET, "/");
ROUTE(push, HTTP_POST, "/api/v1/push");
ROUTE(pop, HTTP_GET, "/api/v1/pop/queue/:queue");
ROUTE(pop_part, HTTP_GET, "/api/v1/pop/queue/:queue/partition/:partition");
ROUTE(groups, HTTP_GET, "/api/v1/consumer-groups");
ROUTE(lagging, HTTP_GET, "/api/v1/consumer-groups/lagging");
ROUTE(group, HTTP_GET, "/api/v1/consumer-groups/:group");
ROUTE(drop_group, HTTP_DELETE, "/api/v1/consumer-groups/:other");
ROUTE(trace, HTTP_GET, "/api/v1/traces/:partition/:transaction");
ROUTE(by_name, HTTP_GET, "/api/v1/traces/by-name/:name");
ROUTE(four, HTTP_GET, "/f/:a/:b/:c/:d");

static const struct http_route *const table[] = {&root,       &push,    &trace, &pop,
                                                 &pop_part,   &groups,  &group, &lagging,
                                                 &drop_group, &by_name, &four,  NULL};
static struct http_routes *routes;
static span params[HTTP_MAX_PARAMS];
static bool other;

static int setup(void **state)
{
    (void)state;
    routes = http_routes_new(table);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    http_routes_free(routes);
    return 0;
}

static const struct http_route *find(enum http_verb verb, const char *path)
{
    return http_routes_find(routes, verb, span_of(path), params, &other);
}

static void assert_param(unsigned i, const char *text)
{
    assert_true(span_eq(params[i], span_of(text)));
}

static void literal_paths_are_found(void **state)
{
    (void)state;
    assert_ptr_equal(find(HTTP_GET, "/"), &root);
    assert_ptr_equal(find(HTTP_POST, "/api/v1/push"), &push);
    assert_ptr_equal(find(HTTP_GET, "/api/v1/consumer-groups"), &groups);
}

static void parameters_are_raw_segments(void **state)
{
    (void)state;
    assert_ptr_equal(find(HTTP_GET, "/api/v1/pop/queue/a%2Fb"), &pop);
    assert_param(0, "a%2Fb");
    assert_ptr_equal(find(HTTP_GET, "/api/v1/pop/queue/q/partition/p%20x"), &pop_part);
    assert_param(0, "q");
    assert_param(1, "p%20x");
    assert_ptr_equal(find(HTTP_GET, "/f/1/2/3/4"), &four);
    assert_param(3, "4");
}

static void a_literal_segment_is_preferred_to_a_parameter(void **state)
{
    (void)state;
    assert_ptr_equal(find(HTTP_GET, "/api/v1/consumer-groups/lagging"), &lagging);
    assert_ptr_equal(find(HTTP_GET, "/api/v1/consumer-groups/laggin"), &group);
    assert_ptr_equal(find(HTTP_GET, "/api/v1/traces/by-name/x"), &by_name);
    assert_ptr_equal(find(HTTP_GET, "/api/v1/traces/by-nam/x"), &trace);
}

static void a_literal_of_another_verb_does_not_hide_a_pattern(void **state)
{
    (void)state;
    assert_ptr_equal(find(HTTP_DELETE, "/api/v1/consumer-groups/lagging"), &drop_group);
    assert_param(0, "lagging");
}

static void a_trailing_slash_and_case_make_another_path(void **state)
{
    (void)state;
    assert_null(find(HTTP_POST, "/api/v1/push/"));
    assert_false(other);
    assert_null(find(HTTP_POST, "/API/v1/push"));
    assert_null(find(HTTP_GET, "/api/v1/pop/queue/"));
    assert_false(other);
    assert_null(find(HTTP_GET, ""));
    assert_null(find(HTTP_GET, "*"));
    assert_null(find(HTTP_GET, "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t"));
}

static void another_verb_is_distinguished_from_an_unknown_path(void **state)
{
    (void)state;
    assert_null(find(HTTP_GET, "/api/v1/push"));
    assert_true(other);
    assert_null(find(HTTP_PUT, "/api/v1/consumer-groups/g"));
    assert_true(other);
    assert_null(find(HTTP_OTHER, "/api/v1/push"));
    assert_true(other);
    assert_int_equal(http_routes_verbs(routes, SPAN("/api/v1/consumer-groups/g")),
                     1U << HTTP_GET | 1U << HTTP_DELETE | 1U << HTTP_HEAD);
    assert_int_equal(http_routes_verbs(routes, SPAN("/nope")), 0);
}

static void head_uses_the_route_of_get(void **state)
{
    (void)state;
    assert_ptr_equal(find(HTTP_HEAD, "/api/v1/pop/queue/q"), &pop);
    assert_null(find(HTTP_HEAD, "/api/v1/push"));
}

static void every_route_has_its_index(void **state)
{
    (void)state;
    assert_int_equal(http_routes_count(routes), countof(table) - 1);
    for (size_t i = 0; table[i]; i++)
        assert_int_equal(http_route_index(routes, table[i]), i);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(literal_paths_are_found),
        T(parameters_are_raw_segments),
        T(a_literal_segment_is_preferred_to_a_parameter),
        T(a_literal_of_another_verb_does_not_hide_a_pattern),
        T(a_trailing_slash_and_case_make_another_path),
        T(another_verb_is_distinguished_from_an_unknown_path),
        T(head_uses_the_route_of_get),
        T(every_route_has_its_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
