// Calls of a pool against a real server: results, limits, deadlines, closing.
#include "pool_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"

// Results that differ from what their statement declares never reach a reader.
static const struct {
    const char *text, *returns;
    int status;
} shapes[] = {
    {"select 1::int8, 2::int4, 3::int2", "lih", 0},
    {"select 1::int2, 2::int2, 3::int2", "lih", 0},
    {"select 1::int8, 2::int8, 3::int8", "lih", 0},
    {"select 1::int8, 4294967296::int8, 3::int2", "lih", QE_PG_SHAPE},
    {"select 1::int8, 2::int4, -32769::int4", "lih", QE_PG_SHAPE},
    {"select 1::int8, 2::int4", "lih", QE_PG_SHAPE},
    {"select 1::int8, 2::int4, 3::int2, 4", "lih", QE_PG_SHAPE},
    {"select 1::int8, 'x'::text, now()", "l.", 0},
    {"select 1::int8", "l.", 0},
    {"select 'x'::text", "l.", QE_PG_SHAPE},
    {"select 'x'::text", "l", QE_PG_SHAPE},
    {"select 1::numeric", "l", QE_PG_SHAPE},
    {"select null::int8", "l", QE_PG_SHAPE},
    {"select null::int8", "L", 0},
    {"select n::int8 from (values (1), (null)) v(n)", "l", QE_PG_SHAPE},
    {"select true, 1.5::float8, 'x'::varchar, 'y'::bytea, gen_random_uuid(), now()", "bftyuz",
     0},
    {"select 1, 1.5::float8", "bf", QE_PG_SHAPE},
    {"select gen_random_uuid()::text", "u", QE_PG_SHAPE},
    {"select null::uuid", "u", QE_PG_SHAPE},
    {"select now()::timestamp", "z", QE_PG_SHAPE},
    {"select '{}'::jsonb", "t", QE_PG_SHAPE},
    {"select '{}'::json, 'n'::name", "tt", 0},
    {"select pg_sleep(0)", "v", 0},
    {"select 1::int8 where false", "lih", QE_PG_SHAPE},
    {"select 1::int8 where false", "l", 0},
    {"do $$ begin end $$", "", 0},
    {"select 1", "", QE_PG_SHAPE},
};

static void calls_are_answered_prepared_or_not(void **state)
{
    (void)state;
    open_pool(4, 5000, unprepared);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask_add(i), 0);
    assert_true(is_up);
    assert_int_equal(n_states, 1);
    char *n = pg_cluster_ask(&cluster, "select count(*) from pg_stat_activity "
                                       "where application_name = '' and datname is not null "
                                       "and pid <> pg_backend_pid()");
    assert_string_equal(n, "1"); // one after another need only one connection
    free(n);
}

static void a_statement_that_fails_keeps_its_connection(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    struct probe p = {0};
    for (int i = 0; i < 3; i++) {
        pg_param_i32(&p.params, 0);
        assert_int_equal(ask(&p, &divide), QE_PG_DATA);
        assert_string_equal(p.sqlstate, "22012");
        assert_string_equal(p.message, "division by zero");
        assert_int_equal(ask(&p, &nonsense), QE_PG_FAILED);
        assert_string_equal(p.sqlstate, "42601");
        assert_int_equal(ask(&p, &refusing), QE_PG_DATA);
        assert_int_equal(ask_add(i), 0);
    }
    assert_int_equal(counter_get(&pg_pool_stats(pool)->opened), 1);
    assert_int_equal(counter_get(&pg_pool_stats(pool)->broken), 0);
}

static void a_text_made_at_run_time_is_sent_as_it_is(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    for (int i = 1; i < 4; i++) {
        char text[32];
        struct probe p = {0};
        snprintf(text, sizeof text, "select $1::int8 + %d", i);
        pg_param_i64(&p.params, 10);
        assert_int_equal(ask(&p, &(struct pg_statement){"made", text, PG_UNPREPARED, NULL}), 0);
        assert_int_equal(p.value, 10 + i);
    }
    struct probe p = {0};
    assert_int_equal(ask(&p, &(struct pg_statement){"made", "selekt", PG_UNPREPARED, NULL}),
                     QE_PG_FAILED);
    assert_int_equal(ask_add(1), 0);
    assert_int_equal(counter_get(&pg_pool_stats(pool)->opened), 1);
}

static void results_of_another_shape_are_refused(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    for (size_t i = 0; i < countof(shapes); i++) {
        struct probe p = {0};
        struct pg_statement s = {"shape", shapes[i].text, PG_UNPREPARED, shapes[i].returns};
        if (ask(&p, &s) != shapes[i].status)
            fail_msg("%s as %s: %d", shapes[i].text, shapes[i].returns, p.status);
    }
    assert_int_equal(ask_add(1), 0); // the connection is as good as before
    assert_int_equal(counter_get(&pg_pool_stats(pool)->opened), 1);
}

static int nap_with_limit(double seconds, unsigned limit_ms, unsigned index)
{
    struct probe p = {0};
    struct pg_statement s = {"nap", nap.text, index, NULL};

    pg_param_f64(&p.params, seconds);
    p.call = (struct pg_call){.statement = &s,
                              .params = &p.params,
                              .done = on_done,
                              .owner = &p,
                              .statement_timeout_ms = limit_ms};
    pg_pool_exec(pool, &p.call);
    until_done(&p);
    return p.status;
}

static void a_limit_of_time_is_for_one_call_alone(void **state)
{
    (void)state;
    open_pool(1, 5000, unprepared);
    for (int i = 0; i < 2; i++) { // the first one prepares
        assert_int_equal(nap_with_limit(4, 50, nap.index), QE_PG_RETRY);
        assert_int_equal(nap_with_limit(0.01, 5000, nap.index), 0);
        assert_int_equal(nap_with_limit(0.1, 0, nap.index), 0); // no limit stays behind
        assert_int_equal(nap_with_limit(4, 50, PG_UNPREPARED), QE_PG_RETRY);
        assert_int_equal(ask_add(i), 0);
        // One after the other with the same limit, which is sent once.
        assert_int_equal(nap_with_limit(0.001, 50, nap.index), 0);
        assert_int_equal(nap_with_limit(4, 50, nap.index), QE_PG_RETRY);
        assert_int_equal(nap_with_limit(4, 50, nap.index), QE_PG_RETRY);
        assert_int_equal(nap_with_limit(0.1, 0, nap.index), 0);
    }
    assert_int_equal(counter_get(&pg_pool_stats(pool)->opened), 1);
}

static void large_parameters_and_results_pass(void **state)
{
    (void)state;
    open_pool(1, 120000, false);
    static char bytes[40 * 1000 * 1000];
    for (int i = 0; i < 2; i++) {
        struct probe p = {0};
        pg_param_i32(&p.params, 30 * 1000 * 1000);
        pg_param_bytea(&p.params, (span){bytes, sizeof bytes});
        assert_int_equal(ask(&p, &wide), 0);
        assert_int_equal(p.len0, 30 * 1000 * 1000);
        assert_int_equal(p.len1, sizeof bytes);
    }
}

static void parameters_that_overflowed_are_refused(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    assert_int_equal(ask_add(1), 0);
    struct probe p = {.params.data.max = 4};
    pg_param_i64(&p.params, 1);
    assert_int_equal(ask(&p, &add), QE_TOO_LARGE);
    assert_int_equal(ask_add(1), 0);
}

static void a_call_without_an_answer_drops_the_connection(void **state)
{
    (void)state;
    open_pool(1, 700, false);
    struct probe p = {0}, q = {0};
    assert_int_equal(ask_add(1), 0);
    pg_param_f64(&p.params, 3);
    exec(&p, &nap);
    pg_param_i64(&q.params, 7);
    uint64_t from = clock_mono_us();
    until_done(&p);
    assert_int_equal(p.status, QE_PG_GONE);
    assert_in_range(clock_mono_us() - from, 600 * 1000, 1500 * 1000);
    assert_int_equal(ask(&q, &add), 0);
}

static void a_busy_pool_fails_calls_that_wait_too_long(void **state)
{
    (void)state;
    open_pool(1, 900, false);
    struct probe first = {0}, second = {0}, third = {0};
    assert_int_equal(ask_add(1), 0);
    pg_param_f64(&first.params, 0.7);
    pg_param_f64(&second.params, 0.7);
    pg_param_i64(&third.params, 7);
    exec(&first, &nap);
    exec(&second, &nap);
    exec(&third, &add);
    until_done(&third);
    assert_int_equal(third.status, QE_PG_RETRY);
    assert_false(third.call.sent);
    until_done(&second);
    assert_int_equal(first.status, 0);
    assert_int_equal(second.status, 0);
    pg_params_free(&first.params);
}

static void closing_fails_the_queue_and_lets_sent_calls_finish(void **state)
{
    (void)state;
    open_pool(1, 5000, false);
    static struct probe p, q;
    assert_int_equal(ask_add(1), 0);
    pg_param_f64(&p.params, 0.2);
    exec(&p, &nap);
    pg_param_i64(&q.params, 7);
    exec(&q, &add);
    bool closed = false;
    pg_pool_close(pool, on_closed, &closed);
    until_done(&q);
    assert_int_equal(q.status, QE_STOPPING);
    until_done(&p);
    assert_int_equal(p.status, 0);
    while (!closed)
        uv_run(&loop, UV_RUN_ONCE);
    open_pool(1, 5000, false); // for teardown
}

static struct probe many[16];
static int n_left;

static void on_one_of_many(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct probe *p = call->owner;

    assert_int_equal(status, 0);
    assert_int_equal(pg_reply_i64(reply, 0, 0), p->value + 1);
    if (n_left-- > 0) {
        p->value = n_left;
        pg_params_reset(&p->params);
        pg_param_i64(&p->params, p->value);
        pg_pool_exec(pool, call);
    } else {
        p->times = 1;
    }
}

static void ten_thousand_calls_find_their_own_answers(void **state)
{
    (void)state;
    open_pool(4, 5000, false);
    n_left = 10000;
    for (int i = 0; i < 16; i++) {
        struct probe *p = &many[i];
        *p = (struct probe){.value = i};
        pg_param_i64(&p->params, i);
        p->call = (struct pg_call){
            .statement = &add, .params = &p->params, .done = on_one_of_many, .owner = p};
        pg_pool_exec(pool, &p->call);
    }
    for (int i = 0; i < 16; i++)
        until_done(&many[i]);
    assert_true(counter_get(&pg_pool_stats(pool)->calls) >= 10000);
    assert_int_equal(counter_get(&pg_pool_stats(pool)->failed), 0);
}

static void a_commit_that_fails_after_the_rows_is_a_failure(void **state)
{
    (void)state;
    free(pg_cluster_ask(&cluster, "create table deferred (n int8 unique deferrable "
                                  "initially deferred)"));
    open_pool(1, 5000, false);
    struct probe p = {0};
    for (int i = 0; i < 2; i++) { // in a pipeline, then plain
        assert_int_equal(ask(&p, &insert_twice), QE_PG_DATA);
        assert_string_equal(p.sqlstate, "23505");
        assert_int_equal(p.len0, 0);
    }
    assert_int_equal(ask_add(1), 0);
}

// The rows arrive, then the server dies while it commits: no farewell as a result, only EOF.
static void rows_without_a_commit_are_no_success(void **state)
{
    (void)state;
    free(pg_cluster_ask(&cluster,
                        "create table slow (n int8);"
                        "create function nap() returns trigger language plpgsql as "
                        "$$begin perform pg_sleep(30); return null; end$$;"
                        "create constraint trigger nap after insert on slow deferrable "
                        "initially deferred for each row execute function nap()"));
    for (int plain = 0; plain < 2; plain++) {
        open_pool(1, 60000, plain == 1);
        struct probe p = {0};
        assert_int_equal(ask_add(1), 0);
        exec(&p, &insert_slow);
        uint64_t end = clock_mono_us() + 300 * 1000;
        while (clock_mono_us() < end)
            uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(p.times, 0);
        pg_cluster_stop(&cluster, "immediate");
        until_done(&p);
        assert_int_equal(p.status, QE_PG_GONE);
        assert_int_equal(p.len0, 0);
        pg_cluster_start(&cluster);
        bool closed = false;
        pg_pool_close(pool, on_closed, &closed);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_true(closed);
    }
    open_pool(1, 5000, false); // for teardown
}

int main(void)
{
    static int yes = 1;
    log_setup(LOG_OFF, LOG_TEXT);
    pg_cluster_new(&cluster);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(calls_are_answered_prepared_or_not),
        {"without prepared statements", calls_are_answered_prepared_or_not, setup, teardown,
         &yes},
        T(a_statement_that_fails_keeps_its_connection),
        T(a_text_made_at_run_time_is_sent_as_it_is),
        T(results_of_another_shape_are_refused),
        T(a_limit_of_time_is_for_one_call_alone),
        {"a limit of time without prepared statements", a_limit_of_time_is_for_one_call_alone,
         setup, teardown, &yes},
        T(large_parameters_and_results_pass),
        T(parameters_that_overflowed_are_refused),
        T(a_call_without_an_answer_drops_the_connection),
        T(a_busy_pool_fails_calls_that_wait_too_long),
        T(closing_fails_the_queue_and_lets_sent_calls_finish),
        T(a_commit_that_fails_after_the_rows_is_a_failure),
        T(rows_without_a_commit_are_no_success),
        T(ten_thousand_calls_find_their_own_answers),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pg_cluster_free(&cluster);
    return failed;
}
