// lease.c, configure.c, health.c, metrics.c, prometheus.c.
#include "fake.h"

#include <stdio.h>

#include "base/clock.h"

#define LEASE "01a0c2f0-77aa-7000-b0b1-0c0d0e0f1011"

// ---- lease ----

static struct renew_op *extend(const char *lease, const char *body)
{
    api_extend.handle(fake_post(lease, body));
    return fake_given.renew;
}

static void an_empty_body_means_sixty_seconds(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "", " \n", "{}", "[]", " [ ] ", "null", "{\"seconds\":null}", "{\"x\":1}"};
    for (unsigned i = 0; i < countof(bodies); i++) {
        assert_non_null(extend(LEASE, bodies[i]));
        assert_int_equal(fake_given.renew->seconds, 60);
        assert_span(fake_given.renew->lease, LEASE);
    }
}

static void seconds_are_integers(void **state)
{
    (void)state;
    assert_int_equal(extend(LEASE, "{\"seconds\":90}")->seconds, 90);
    assert_int_equal(extend(LEASE, "{\"seconds\":\"90\"}")->seconds, 90);
    assert_int_equal(extend(LEASE, "{\"seconds\":99999999999}")->seconds, INT32_MAX);
    assert_int_equal(extend(LEASE, "{\"seconds\":1,\"seconds\":2}")->seconds, 2);

    static const char *const bad[] = {"{\"seconds\":1.5}", "{\"seconds\":\"x\"}",
                                      "{\"seconds\":[]}", "{\"seconds\":true}",
                                      "{\"seconds\":-1}"};
    for (unsigned i = 0; i < countof(bad); i++) {
        assert_null(extend(LEASE, bad[i]));
        assert_refused("seconds");
    }
    static const char *const worse[] = {"{", "nonsense", "{\"seconds\":", "[1]",
                                        "7", "[",        "null x",        "\"a\""};
    for (unsigned i = 0; i < countof(worse); i++) {
        assert_null(extend(LEASE, worse[i]));
        assert_refused("");
    }
}

static void a_renewal_has_all_three_names_of_the_expiry(void **state)
{
    (void)state;
    struct renew_op *op = extend(LEASE, "");
    op->expires_us = 1770091650000000;
    op->done(op, 0);
    assert_int_equal(fake_reply.status, 200);
    assert_string_equal(fake_reply.text, "{\"index\":0,\"leaseId\":\"" LEASE
                                         "\",\"success\":true,\"error\":null,"
                                         "\"expiresAt\":\"2026-02-03T04:07:30.000Z\","
                                         "\"newExpiresAt\":\"2026-02-03T04:07:30.000Z\","
                                         "\"lease_expires_at\":\"2026-02-03T04:07:30.000Z\"}");
}

static void a_lost_lease_is_404_with_the_object(void **state)
{
    (void)state;
    static const char *const texts[] = {"Lease not found", "Lease already expired"};
    char expected[256];
    for (int why = 1; why <= 2; why++) {
        struct renew_op *op = extend(LEASE, "");
        op->why = why;
        op->done(op, 0);
        assert_int_equal(fake_reply.status, 404);
        snprintf(expected, sizeof expected,
                 "{\"index\":0,\"leaseId\":\"" LEASE
                 "\",\"success\":false,\"error\":\"%s\",\"expiresAt\":null,"
                 "\"newExpiresAt\":null,\"lease_expires_at\":null}",
                 texts[why - 1]);
        assert_string_equal(fake_reply.text, expected);
    }
    // An id that cannot be a lease is refused without a query.
    assert_null(extend("non\"sense", ""));
    assert_int_equal(fake_reply.status, 404);
    assert_non_null(
        strstr(fake_reply.text,
               "\"leaseId\":\"non\\\"sense\",\"success\":false,\"error\":\"Lease not found\""));
}

// ---- configure ----

static span param(unsigned i)
{
    const struct pg_params *p = &fake_given.custom->params;
    assert_true(i < p->n);
    return (span){p->data.ptr + p->param[i].at, p->param[i].len};
}

static void drop_custom(void) { pg_params_free(&fake_given.custom->params); }

static void configure_forwards_its_fields(void **state)
{
    (void)state;
    SEND(api_configure, "{\"queue\":\"wrong\",\"queue\":\"q\\\"\",\"namespace\":\"n\",\"task\":"
                        "5,\"options\":{ \"ttl\":1 }}");
    assert_string_equal(fake_given.custom->statement->name, "configure");
    assert_span(param(0), "q\"");
    assert_span(param(1), "n");
    assert_span(param(2), "");
    assert_span(param(3), "{ \"ttl\":1 }");
    drop_custom();

    SEND(api_configure, "{\"queue\":\"\",\"options\":null}");
    assert_span(param(0), "");
    assert_span(param(3), "{}");
    drop_custom();
}

static void configure_answers_with_the_current_options(void **state)
{
    (void)state;
    struct pg_reply reply = {.rows = 1, .options = "{\"leaseTime\":45}"};
    fake_uuid(reply.uuid[0], 0x11);
    fake_uuid(reply.uuid[1], 0x22);
    SEND(api_configure, "{\"queue\":\"q\\\"\",\"task\":\"t\"}");
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_int_equal(fake_reply.status, 200);
    assert_span(fake_given.changed, "q\"");
    assert_string_equal(
        fake_reply.text,
        "{\"configured\":true,\"queueId\":\"11111111-1111-1111-1111-111111111111\","
        "\"partitionId\":\"22222222-2222-2222-2222-222222222222\",\"queue\":\"q\\\"\","
        "\"namespace\":\"\","
        "\"task\":\"t\",\"options\":{\"leaseTime\":45}}");
}

static void a_refused_option_is_400_in_the_words_of_the_database(void **state)
{
    (void)state;
    struct pg_reply reply = {.message = "leaseTime should be an integer"};
    SEND(api_configure, "{\"queue\":\"q\"}");
    fake_given.custom->done(fake_given.custom, QE_PG_DATA, &reply);
    assert_refused("leaseTime should be an integer");
    assert_null(fake_given.changed.ptr);

    SEND(api_configure, "{\"queue\":\"q\"}");
    fake_given.custom->done(fake_given.custom, QE_PG_AWAY, &(struct pg_reply){0});
    assert_int_equal(fake_reply.status, 503);
    SEND(api_configure, "{\"queue\":\"q\"}");
    fake_given.custom->done(fake_given.custom, 0, &(struct pg_reply){.rows = 0});
    assert_int_equal(fake_reply.status, 500);
}

static void a_malformed_configure_is_refused(void **state)
{
    (void)state;
    char long_name[320] = "{\"queue\":\"";
    memset(long_name + 10, 'x', 256);
    strcpy(long_name + 266, "\"}");
    const struct {
        const char *body, *says;
    } cases[] = {{"", "Invalid JSON"},
                 {"{}", "queue must be a string"},
                 {"null", "must be an object"},
                 {"{\"queue\":5}", "queue must be a string"},
                 {"{\"queue\":\"a\"} x", "Invalid JSON"},
                 {"{\"queue\":\"a\\u0000\"}", "Invalid JSON"},
                 {"{\"queue\":\"a\",\"options\":[]}", "options must be an object"},
                 {"{\"queue\":\"a\",\"options\":\"x\"}", "options must be an object"},
                 {long_name, "queue is longer"}};
    for (unsigned i = 0; i < countof(cases); i++) {
        SEND(api_configure, cases[i].body);
        assert_null(fake_given.custom);
        assert_refused(cases[i].says);
    }
}

// ---- health and metrics ----

static int status_of(const struct http_route *r)
{
    r->handle(fake_get("", NULL, NULL));
    return fake_reply.status;
}

static void health_follows_the_database(void **state)
{
    (void)state;
    fake_is_up = true;
    fake_shared.ready = false;
    assert_int_equal(status_of(&api_health), 503); // there is no schema yet
    assert_non_null(strstr(fake_reply.text, "\"reason\":\"starting: applying schema\""));
    fake_shared.ready = true;
    assert_int_equal(status_of(&api_health), 200);
    assert_string_equal(fake_reply.text, "{\"status\":\"healthy\",\"database\":\"connected\"}");
    fake_shared.show_details = true;
    assert_int_equal(status_of(&api_health), 200);
    assert_string_equal(fake_reply.text,
                        "{\"status\":\"healthy\",\"database\":\"connected\",\"server\":\"a "
                        "\\\"name\\\"\",\"worker_id\":0,"
                        "\"version\":\"1.2.3\",\"shared_state\":{\"enabled\":false},\"queen\":{"
                        "\"worker_id\":0,\"status\":\"active\"}}");
    fake_is_up = false;
    assert_int_equal(status_of(&api_health), 503);
    assert_non_null(
        strstr(fake_reply.text, "\"status\":\"unhealthy\",\"database\":\"disconnected\""));
    assert_int_equal(status_of(&api_live), 200);
    fake_is_up = true;
    fake_shared.ready = false;
}

static void readiness_needs_all_three(void **state)
{
    (void)state;
    fake_is_up = true;
    fake_shared.ready = false;
    assert_int_equal(status_of(&api_ready), 503);
    fake_shared.ready = true;
    assert_int_equal(status_of(&api_ready), 200);
    fake_is_up = false;
    assert_int_equal(status_of(&api_ready), 503);
    fake_is_up = true;
    fake_shared.stopping = true;
    assert_int_equal(status_of(&api_ready), 503);
    fake_shared.stopping = fake_shared.ready = false;
}

static void observed_requests_show_up_in_the_metrics(void **state)
{
    (void)state;
    api_observe(&fake_api, &api_push, 201, 700);
    api_observe(&fake_api, &api_push, 201, 90000000);
    api_observe(&fake_api, NULL, 404, 5);
    counter_add(&fake_stats.items[OP_PUSH], 12);
    histogram_add(&fake_stats.batch_requests[OP_PUSH], 3);
    fake_is_up = false; // so that it does not wait for the database's part
    assert_int_equal(status_of(&api_prometheus), 200);
    assert_string_equal(fake_reply.type, "text/plain; version=0.0.4; charset=utf-8");
    static const char *const lines[] = {
        "\nqueen_http_requests_total{op=\"push\",code=\"2xx\"} 2\n",
        "\nqueen_http_requests_total{op=\"none\",code=\"4xx\"} 1\n",
        "\nqueen_http_request_duration_seconds_bucket{op=\"push\",le=\"0.0005\"} 0\n",
        "\nqueen_http_request_duration_seconds_bucket{op=\"push\",le=\"0.001\"} 1\n",
        "\nqueen_http_request_duration_seconds_bucket{op=\"push\",le=\"30\"} 1\n",
        "\nqueen_http_request_duration_seconds_bucket{op=\"push\",le=\"+Inf\"} 2\n",
        "\nqueen_http_request_duration_seconds_sum{op=\"push\"} 90.000700\n",
        "\nqueen_http_request_duration_seconds_count{op=\"push\"} 2\n",
        "\nqueen_op_items_total{op=\"push\"} 12\n",
        "\nqueen_batch_requests_bucket{op=\"push\",le=\"2\"} 0\n",
        "\nqueen_batch_requests_bucket{op=\"push\",le=\"5\"} 1\n",
        "\nqueen_batch_requests_sum{op=\"push\"} 3\n",
    };
    for (unsigned i = 0; i < countof(lines); i++)
        if (!strstr(fake_reply.text, lines[i]))
            fail_msg("missing: %s", lines[i]);
}

static void every_line_of_the_exposition_is_well_formed(void **state)
{
    (void)state;
    fake_is_up = false; // so that it does not wait for the database's part
    assert_int_equal(status_of(&api_prometheus), 200);
    assert_true(fake_reply.len < sizeof fake_reply.text);
    char *save = NULL;
    for (char *line = strtok_r(fake_reply.text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char name[128], type[16];
        double value;
        if (sscanf(line, "# TYPE %127s %15s", name, type) == 2 ||
            strncmp(line, "# HELP ", 7) == 0)
            continue;
        const char *blank = strrchr(line, ' ');
        assert_non_null(blank);
        assert_int_equal(sscanf(blank, "%lf", &value), 1);
        assert_memory_equal(line, "queen_", 6);
    }
}

static void the_json_metrics_have_their_shape(void **state)
{
    (void)state;
    fake_shared.started_us = clock_mono_us() - 10 * 1000000;
    fake_pg_stats.n_open = 5;
    fake_pg_stats.n_busy = 2;
    assert_int_equal(status_of(&api_metrics), 200);
    assert_memory_equal(fake_reply.text, "{\"uptime\":10,", 13);
    assert_non_null(
        strstr(fake_reply.text,
               "\"database\":{\"poolSize\":5,\"idleConnections\":3,\"waitingRequests\":0}"));
    assert_null(strstr(fake_reply.text, "\"rss\":0"));
}

// Two with one name would be one series twice, which Prometheus refuses.
static void every_route_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; api_routes[i]; i++)
        for (unsigned k = 0; k < i; k++)
            if (strcmp(api_routes[i]->op, api_routes[k]->op) == 0)
                fail_msg("%s and %s are both \"%s\"", api_routes[k]->path, api_routes[i]->path,
                         api_routes[i]->op);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(every_route_has_a_name_of_its_own),
        T(an_empty_body_means_sixty_seconds),
        T(seconds_are_integers),
        T(a_renewal_has_all_three_names_of_the_expiry),
        T(a_lost_lease_is_404_with_the_object),
        T(configure_forwards_its_fields),
        T(configure_answers_with_the_current_options),
        T(a_refused_option_is_400_in_the_words_of_the_database),
        T(a_malformed_configure_is_refused),
        T(health_follows_the_database),
        T(readiness_needs_all_three),
        T(observed_requests_show_up_in_the_metrics),
        T(every_line_of_the_exposition_is_well_formed),
        T(the_json_metrics_have_their_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
