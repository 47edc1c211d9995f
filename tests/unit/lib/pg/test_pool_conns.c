// Connections of a pool against a real server that is killed, stopped and replaced.
#include "pool_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

static void load_opens_connections_and_quiet_closes_them(void **state)
{
    (void)state;
    open_pool(3, 5000, false);
    static struct probe p[9];
    for (int i = 0; i < 9; i++) {
        p[i] = (struct probe){0};
        pg_param_f64(&p[i].params, 0.1);
        exec(&p[i], &nap);
    }
    for (int i = 0; i < 9; i++) {
        until_done(&p[i]);
        assert_int_equal(p[i].status, 0);
    }
    assert_int_equal(pg_pool_stats(pool)->n_open, 3);
    uint64_t end = clock_mono_us() + 2000 * 1000;
    while (clock_mono_us() < end && pg_pool_stats(pool)->n_open > 1)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(pg_pool_stats(pool)->n_open, 1);
    assert_true(pg_pool_has_idle(pool));
}

static void a_killed_backend_is_gone_and_replaced(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    struct probe p = {0}, q = {0};
    assert_int_equal(ask_add(1), 0);
    pg_param_f64(&p.params, 10);
    exec(&p, &nap);
    pg_param_i64(&q.params, 7);
    exec(&q, &add); // waits for the connection, so it was not sent
    uv_run(&loop, UV_RUN_NOWAIT);
    free(pg_cluster_ask(&cluster, "select pg_terminate_backend(pid) from pg_stat_activity "
                                  "where query like '%pg_sleep%' and pid <> pg_backend_pid()"));
    until_done(&p);
    assert_int_equal(p.status, QE_PG_GONE);
    assert_string_equal(p.sqlstate, "57P01");
    until_done(&q);
    assert_int_equal(q.status, 0);
    assert_int_equal(q.value, 8);
    assert_int_equal(n_states, 1); // too short to be an outage
}

static void an_idle_connection_that_dies_is_replaced_unnoticed(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    assert_int_equal(ask_add(1), 0);
    free(pg_cluster_ask(&cluster,
                        "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                        "where datname is not null and pid <> pg_backend_pid()"));
    uint64_t end = clock_mono_us() + 5000 * 1000;
    while (clock_mono_us() < end && counter_get(&pg_pool_stats(pool)->opened) < 2)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(ask_add(1), 0);
    assert_int_equal(counter_get(&pg_pool_stats(pool)->broken), 1);
    assert_int_equal(counter_get(&pg_pool_stats(pool)->failed), 0);
}

static void a_stopped_server_is_away_quickly_and_comes_back(void **state)
{
    (void)state;
    open_pool(2, 5000, false);
    assert_int_equal(ask_add(1), 0);
    pg_cluster_stop(&cluster, "fast");

    uint64_t from = clock_mono_us();
    int rc = ask_add(1);
    if (rc == QE_PG_GONE) // the farewell was still unread
        rc = ask_add(1);
    assert_int_equal(rc, QE_PG_AWAY);
    assert_in_range(clock_mono_us() - from, 500 * 1000, 3000 * 1000);
    assert_false(is_up);

    from = clock_mono_us();
    assert_int_equal(ask_add(1), QE_PG_AWAY); // known by now
    assert_in_range(clock_mono_us() - from, 0, 100 * 1000);

    pg_cluster_start(&cluster);
    from = clock_mono_us();
    while (!is_up && clock_mono_us() < from + 5000 * 1000)
        uv_run(&loop, UV_RUN_ONCE);
    assert_true(is_up);
    assert_in_range(clock_mono_us() - from, 0, 1500 * 1000);
    assert_int_equal(ask_add(1), 0);
}

// Calls that carry what was learnt from the server before must not reach the next one.
static void queued_calls_of_a_server_do_not_reach_the_next(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    assert_int_equal(ask_add(1), 0);
    uint64_t first = pg_pool_server(pool);
    assert_true(first > 0);
    assert_int_equal(n_servers, 0);
    pg_cluster_stop(&cluster, "fast");
    while (counter_get(&pg_pool_stats(pool)->broken) == 0)
        uv_run(&loop, UV_RUN_ONCE);
    struct probe bound = {0}, free_ = {0};
    pg_param_i64(&bound.params, 1);
    pg_param_i64(&free_.params, 1);
    exec(&bound, &add);
    bound.call.of_server = true;
    exec(&free_, &add);
    pg_cluster_start(&cluster);
    until_done(&bound);
    until_done(&free_);
    assert_int_equal(free_.status, 0);
    assert_int_equal(bound.status, QE_PG_RETRY);
    assert_false(bound.call.sent);
    assert_int_equal(n_servers, 1);
    assert_true(pg_pool_server(pool) > first);
}

// The same server, but all connections to it ended: it may have recovered from a crash.
static void losing_all_connections_counts_as_another_server(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    assert_int_equal(ask_add(1), 0);
    free(pg_cluster_ask(&cluster, "select pg_terminate_backend(pid) from pg_stat_activity "
                                  "where datname is not null and pid <> pg_backend_pid()"));
    while (counter_get(&pg_pool_stats(pool)->opened) < 2)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(ask_add(1), 0);
    assert_int_equal(n_servers, 1);
}

// A primary that was replaced may still run, and what it answers counts no more.
static void connections_to_a_replaced_server_are_closed(void **state)
{
    struct pg_cluster second;
    char both[300], from[200], to[210];
    struct probe old = {0}, next = {0};

    (void)state;
    pg_cluster_new(&second);
    snprintf(both, sizeof both, "host=%s,%s user=postgres dbname=postgres", cluster.dir,
             second.dir);
    conninfo = both;
    open_pool(2, 20000, false);
    pg_param_f64(&old.params, 15);
    exec(&old, &nap);
    while (!old.call.sent)
        uv_run(&loop, UV_RUN_ONCE);
    snprintf(from, sizeof from, "%s/.s.PGSQL.5432", cluster.dir);
    snprintf(to, sizeof to, "%s.away", from);
    assert_int_equal(rename(from, to), 0);
    pg_param_i64(&next.params, 1);
    exec(&next, &add); // needs another connection
    until_done(&old);
    assert_int_equal(old.status, QE_PG_GONE);
    until_done(&next);
    assert_int_equal(next.status, 0);
    assert_int_equal(n_servers, 1);
    assert_int_equal(rename(to, from), 0);
    conninfo = cluster.conninfo;
    pg_cluster_free(&second);
}

static void a_pool_may_open_before_its_database(void **state)
{
    (void)state;
    pg_cluster_stop(&cluster, "fast");
    open_pool(2, 5000, false);
    assert_int_equal(ask_add(1), QE_PG_AWAY);
    pg_cluster_start(&cluster);
    uint64_t from = clock_mono_us();
    while (!is_up && clock_mono_us() < from + 5000 * 1000)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(ask_add(1), 0);
}

static void another_connection_serves_when_one_breaks(void **state)
{
    (void)state;
    open_pool(2, 5000, false);
    struct probe p = {0}, a = {0};
    assert_int_equal(ask(&a, &pid), 0);
    pg_param_f64(&p.params, 5);
    exec(&p, &nap);
    assert_int_equal(ask_add(1), 0); // a second connection
    char sql[80];
    snprintf(sql, sizeof sql, "select pg_terminate_backend(%d)", (int)a.value);
    free(pg_cluster_ask(&cluster, sql));
    until_done(&p);
    assert_int_equal(p.status, QE_PG_GONE);
    assert_int_equal(ask_add(1), 0);
    assert_int_equal(n_states, 1);
}

static void of_several_hosts_the_one_that_answers_serves(void **state)
{
    (void)state;
    char text[256];
    // Refused at once, refused later, without an address, and a name that needs looking up.
    snprintf(text, sizeof text,
             "host=/nonexistent,127.0.0.1,localhost,%s port=1,21198,21199,5432 user=postgres "
             "dbname=postgres target_session_attrs=read-write",
             cluster.dir);
    conninfo = text;
    open_pool(2, 5000, false);
    assert_int_equal(ask_add(1), 0);
}

static void names_without_an_address_do_not_stop_the_loop(void **state)
{
    (void)state;
    conninfo = "host=no..name user=postgres";
    open_pool(2, 5000, false);
    assert_int_equal(ask_add(1), QE_PG_AWAY);
}

static void a_pool_may_close_while_it_looks_up_a_name(void **state)
{
    (void)state;
    conninfo = "host=localhost port=21199 user=postgres";
    open_pool(2, 5000, false);
    uv_run(&loop, UV_RUN_NOWAIT); // teardown does the rest
}

static void an_invalid_connection_string_is_unavailable(void **state)
{
    (void)state;
    conninfo = "colour=blue";
    open_pool(2, 5000, false);
    assert_int_equal(ask_add(1), QE_PG_AWAY);
}

int main(void)
{
    log_setup(LOG_OFF, LOG_TEXT);
    pg_cluster_new(&cluster);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(load_opens_connections_and_quiet_closes_them),
        T(a_killed_backend_is_gone_and_replaced),
        T(an_idle_connection_that_dies_is_replaced_unnoticed),
        T(another_connection_serves_when_one_breaks),
        T(a_stopped_server_is_away_quickly_and_comes_back),
        T(queued_calls_of_a_server_do_not_reach_the_next),
        T(losing_all_connections_counts_as_another_server),
        T(connections_to_a_replaced_server_are_closed),
        T(a_pool_may_open_before_its_database),
        T(of_several_hosts_the_one_that_answers_serves),
        T(names_without_an_address_do_not_stop_the_loop),
        T(a_pool_may_close_while_it_looks_up_a_name),
        T(an_invalid_connection_string_is_unavailable),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pg_cluster_free(&cluster);
    return failed;
}
