// my_pool.c and what is below it against a real MariaDB: values, failures, time limits, dying
// connections and servers.  Run under the sanitizers by make check.
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "support/my_server.h"
#include "tenant/my_pool.h"

enum { MAX_CONNS = 3, DEADLINE_MS = 20000 };

static struct my_server server;
static uv_loop_t loop;
static struct my_pool *pool;
static unsigned n_closed;

static void on_closed(void *ctx)
{
    (void)ctx;
    n_closed++;
}

static struct my_pool *open_limited(const char *url, unsigned max_conns,
                                    unsigned statement_timeout_ms)
{
    struct my_place place;
    struct fault f;

    assert_int_equal(my_place_parse(url, &place, &f), 0);
    struct my_pool *p =
        my_pool_open(&loop, &(struct my_pool_conf){.place = &place,
                                                   .max_conns = max_conns,
                                                   .connect_timeout_ms = 60000,
                                                   .deadline_ms = DEADLINE_MS,
                                                   .statement_timeout_ms = statement_timeout_ms,
                                                   .idle_close_ms = 60000});
    my_place_deinit(&place);
    return p;
}

static struct my_pool *open_at(const char *url, unsigned max_conns)
{
    return open_limited(url, max_conns, 60000);
}

static int open_pool(void **state)
{
    (void)state;
    n_closed = 0;
    uv_loop_init(&loop);
    pool = open_at(server.url, MAX_CONNS);
    return 0;
}

static int close_pool(void **state)
{
    (void)state;
    if (pool)
        my_pool_close(pool, on_closed, NULL);
    pool = NULL;
    uv_run(&loop, UV_RUN_DEFAULT);
    clock_release();
    return uv_loop_close(&loop);
}

// ---- one call, and its answer as text ----

struct ask {
    struct my_statement statement;
    struct my_call call;
    unsigned n_done;
    int status;
    unsigned rows, cols, number;
    uint64_t affected;
    char sqlstate[6];
    char text[400]; // of the first row; columns with |, NULL as ~; or the message
};

static void on_done(struct my_call *call, int status, const struct my_reply *r)
{
    struct ask *a = call->owner;

    a->n_done++;
    a->status = status;
    a->rows = my_reply_rows(r);
    a->cols = my_reply_cols(r);
    a->number = my_reply_errno(r);
    a->affected = my_reply_affected(r);
    snprintf(a->sqlstate, sizeof a->sqlstate, "%s", my_reply_sqlstate(r));
    snprintf(a->text, sizeof a->text, "%s", my_reply_message(r));
    for (unsigned col = 0; a->rows > 0 && col < a->cols; col++) {
        size_t len = strlen(a->text);
        span v = my_reply_is_null(r, 0, col) ? SPAN("~") : my_reply_text(r, 0, col);
        snprintf(a->text + len, sizeof a->text - len, "%s%.*s", col > 0 ? "|" : "", (int)v.len,
                 v.ptr);
    }
}

static void begin(struct my_pool *p, struct ask *a, const char *sql,
                  const struct my_params *params)
{
    *a = (struct ask){.statement = {"test", sql, 0}};
    a->call = (struct my_call){
        .statement = &a->statement, .params = params, .done = on_done, .owner = a};
    my_pool_exec(p, &a->call);
    assert_int_equal(a->n_done, 0); // never from inside
}

static void await(const struct ask *a)
{
    while (a->n_done == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(a->n_done, 1);
}

static struct ask ask(const char *sql)
{
    static struct ask a;

    begin(pool, &a, sql, NULL);
    await(&a);
    return a;
}

enum { ID = 32 };

// The connection that is used next.
static void note_connection(char id[ID])
{
    snprintf(id, ID, "%.31s", ask("select connection_id()").text);
}

// On a connection that is not one of the pool.
static struct ask ask_apart(const char *sql)
{
    struct ask a;
    struct my_pool *other = open_at(server.url, 1);

    begin(other, &a, sql, NULL);
    await(&a);
    my_pool_close(other, on_closed, NULL);
    return a;
}

// A statement that the client has sent is not one that the server has begun.
static void await_sleep(const char id[ID])
{
    char sql[200];

    snprintf(sql, sizeof sql,
             "select count(*) from information_schema.processlist "
             "where id = %s and state = 'User sleep'",
             id);
    while (strcmp(ask_apart(sql).text, "1") != 0)
        continue;
}

// All connections are open and idle.
static void fill_pool(void)
{
    struct ask asks[MAX_CONNS];

    for (unsigned i = 0; i < MAX_CONNS; i++)
        begin(pool, &asks[i], "select 1", NULL);
    for (unsigned i = 0; i < MAX_CONNS; i++)
        await(&asks[i]);
    while (my_pool_conns(pool) < MAX_CONNS) // the answers may come over fewer of them
        uv_run(&loop, UV_RUN_ONCE);
}

#define assert_fails(sql, code, server_number)            \
    do {                                                  \
        struct ask failed = ask(sql);                     \
        assert_int_equal(failed.status, (code));          \
        assert_int_equal(failed.number, (server_number)); \
        assert_int_equal(failed.rows, 0);                 \
        assert_true(failed.text[0] != '\0');              \
    } while (0)

// ---- values ----

static void values_come_back_as_they_went(void **state)
{
    struct my_params p = {0};
    struct ask a;
    char long_text[200];

    (void)state;
    memset(long_text, 'x', sizeof long_text);
    my_param_null(&p);
    my_param_text(&p, SPAN("O'Brien \"\\ grün €"));
    my_param_text(&p, SPAN(""));
    my_param_i64(&p, INT64_MIN);
    my_param_f64(&p, 0.5);
    my_param_bool(&p, true);
    my_param_text(&p, (span){long_text, sizeof long_text}); // requested twice: see take_cell()
    begin(pool, &a, "select ?, ?, ?, ?, ?, ?, ?", &p);
    await(&a);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.cols, 7);
    const char *head = "~|O'Brien \"\\ grün €||-9223372036854775808|0.5|1|";
    assert_memory_equal(a.text, head, strlen(head));
    assert_int_equal(strlen(a.text), strlen(head) + sizeof long_text);
    my_params_reset(&p);
    my_param_text(&p, SPAN("again"));
    begin(pool, &a, "select ?", &p);
    await(&a);
    assert_string_equal(a.text, "again");
    my_params_free(&p);
}

static void numbers_are_read_as_such(void **state)
{
    (void)state;
    struct ask a = ask("select -7 as i, 2.25 as f, null as n");
    assert_string_equal(a.text, "-7|2.25|~");
    assert_string_equal(ask("select @@time_zone").text, "+00:00");
}

static void many_rows_come_whole(void **state)
{
    (void)state;
    struct ask a = ask("select seq, repeat('y', seq % 200) from seq_1_to_5000");
    assert_int_equal(a.status, 0);
    assert_int_equal(a.rows, 5000);
}

static void of_several_results_the_last_with_rows_counts(void **state)
{
    (void)state;
    ask("create or replace table t.several (n int primary key)");
    ask("create or replace procedure t.several() begin select 1, 2; "
        "insert into t.several values (1), (2), (3); select 'last'; end");
    struct ask a = ask("call t.several()");
    assert_int_equal(a.status, 0);
    assert_int_equal(a.cols, 1);
    assert_string_equal(a.text, "last");
    a = ask("update t.several set n = n + 10");
    assert_int_equal(a.affected, 3);
    assert_int_equal(a.rows, 0);
}

// ---- failures ----

static void failures_have_the_codes_that_decide_about_retries(void **state)
{
    (void)state;
    ask("create or replace table t.one (id int primary key)");
    ask("insert into t.one values (1)");
    ask("create or replace procedure t.complain() signal sqlstate '45000' set message_text = "
        "'no'");
    assert_fails("selec", QE_PG_FAILED, 1064);
    assert_fails("insert into t.one values (1)", QE_PG_DATA, 1062);
    assert_fails("call t.complain()", QE_PG_DATA, 1644);
    assert_int_equal(ask("select 1").status, 0);
    assert_int_equal(my_pool_conns(pool), 1); // none of these cost the connection
}

static void a_statement_that_takes_too_long_is_ended_by_the_server(void **state)
{
    struct ask slow;

    (void)state;
    struct my_pool *limited = open_limited(server.url, 1, 500);
    begin(limited, &slow, "select count(md5(a.seq)) from seq_1_to_100000 a, seq_1_to_100000 b",
          NULL);
    await(&slow);
    assert_int_equal(slow.status, QE_PG_RETRY);
    assert_int_equal(slow.number, 1969);
    assert_int_equal(my_pool_conns(limited), 1); // it did not cost the connection
    my_pool_close(limited, on_closed, NULL);
}

static void an_unreachable_server_is_reported(void **state)
{
    const struct {
        const char *url, *why;
    } cases[] = {
        {"mysql://queen:wasp@localhost/t?socket=%s/s", "Access denied"},
        {"mysql://queen:bee@localhost/nowhere?socket=%s/s", "Unknown database"},
        {"mysql://queen:bee@localhost/t?socket=%s/nobody", "Can't connect"},
        {"mysql://queen:bee@127.0.0.1:1/t", "Can't connect"},
        {"mysql://queen:bee@no.such.host.invalid/t", "the host has no address"},
    };
    struct ask a, b;
    char url[200];

    (void)state;
    for (unsigned i = 0; i < countof(cases); i++) {
        const char *at = strstr(cases[i].url, "%s");
        snprintf(url, sizeof url, "%.*s%s%s", (int)(at ? at - cases[i].url : 200), cases[i].url,
                 at ? server.dir : "", at ? at + 2 : "");
        struct my_pool *p = open_at(url, 2);
        begin(p, &a, "select 1", NULL);
        begin(p, &b, "select 1", NULL);
        await(&a);
        await(&b);
        assert_int_equal(a.status, QE_PG_AWAY);
        assert_int_equal(b.status, QE_PG_AWAY);
        if (!strstr(a.text, cases[i].why))
            fail_msg("%s: %s", url, a.text);
        assert_string_equal(my_pool_error(p), a.text);
        assert_false(my_pool_is_up(p));
        unsigned before = n_closed;
        my_pool_close(p, on_closed, NULL);
        while (n_closed == before)
            uv_run(&loop, UV_RUN_ONCE);
    }
}

// ---- connections ----

// The first address of "two.test" refuses connections; the second is that of the server.
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct addrinfo *second = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!node || strcmp(node, "two.test") != 0)
        return real(node, service, hints, found);
    int rc = real("127.0.0.2", service, hints, found);
    if (rc != 0 || (rc = real("127.0.0.1", service, hints, &second)) != 0)
        return rc;
    (*found)->ai_next = second;
    return 0;
}

static void each_address_of_a_name_is_tried(void **state)
{
    (void)state;
    pid_t relay;
    char url[100];
    struct ask a;

    snprintf(url, sizeof url, "mysql://queen:bee@two.test:%u/t",
             my_server_relay(&server, &relay));
    struct my_pool *named = open_at(url, 1);
    begin(named, &a, "select 7", NULL);
    await(&a);
    my_pool_close(named, on_closed, NULL);
    while (n_closed == 0)
        uv_run(&loop, UV_RUN_ONCE);
    kill(relay, SIGKILL);
    waitpid(relay, NULL, 0);
    assert_int_equal(a.status, 0);
    assert_string_equal(a.text, "7");
}

static void more_calls_than_connections_wait_their_turn(void **state)
{
    enum { N = 60 };
    static struct ask asks[N];

    (void)state;
    for (unsigned i = 0; i < N; i++)
        begin(pool, &asks[i], "select connection_id()", NULL);
    for (unsigned i = 0; i < N; i++) {
        await(&asks[i]);
        assert_int_equal(asks[i].status, 0);
        assert_in_range(my_pool_conns(pool), 1, MAX_CONNS);
    }
    assert_true(my_pool_is_up(pool));
    assert_true(my_pool_last_reply_us(pool) > 0);
}

static void idle_connections_are_closed_but_for_one(void **state)
{
    (void)state;
    clock_freeze(1000, 1000);
    fill_pool();
    clock_advance_us(61 * 1000 * 1000);
    while (my_pool_conns(pool) > 1)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(ask("select 1").status, 0);
}

// The deadline is in the pool's clock; what the server does meanwhile takes longer than a test.
static void a_call_without_an_answer_costs_its_connection(void **state)
{
    struct ask lock, stuck;
    char id[ID];

    (void)state;
    clock_freeze(1000, 1000);
    struct my_pool *other = open_at(server.url, 1);
    begin(other, &lock, "select get_lock('held', 10)", NULL);
    await(&lock);
    note_connection(id);
    begin(pool, &stuck,
          "set statement max_statement_time = 0 for select get_lock('held', 1000)", NULL);
    do
        begin(other, &lock,
              "select count(*) from information_schema.processlist "
              "where state = 'User lock'",
              NULL),
            await(&lock);
    while (strcmp(lock.text, "1") != 0);
    clock_advance_us(DEADLINE_MS * 1000ull + 1000);
    await(&stuck);
    assert_int_equal(stuck.status, QE_PG_GONE);
    assert_string_not_equal(ask("select connection_id()").text, id);
    my_pool_close(other, on_closed, NULL);
}

// MySQL has no time limit for writes, and does not notice that the client has gone.
static void a_call_without_an_answer_ends_at_the_server(void **state)
{
    struct ask stuck, running;
    const char *count = "select count(*) from information_schema.processlist where info like "
                        "'%benchmark(%' and info not like '%processlist%'";
    time_t until;

    (void)state;
    clock_freeze(1000, 1000);
    struct my_pool *other = open_at(server.url, 1);
    begin(pool, &stuck,
          "set statement max_statement_time = 0 for "
          "select benchmark(1000000000000, md5('x'))",
          NULL);
    do
        begin(other, &running, count, NULL), await(&running);
    while (strcmp(running.text, "1") != 0);
    clock_advance_us(DEADLINE_MS * 1000ull + 1000);
    await(&stuck);
    assert_int_equal(stuck.status, QE_PG_GONE);
    until = time(NULL) + 30;
    do
        begin(other, &running, count, NULL), await(&running);
    while (strcmp(running.text, "0") != 0 && time(NULL) < until);
    my_pool_close(other, on_closed, NULL);
    assert_string_equal(running.text, "0");
}

static void a_call_that_waits_too_long_for_a_connection_is_refused(void **state)
{
    struct ask first, second, third;

    (void)state;
    clock_freeze(1000, 1000);
    struct my_pool *one = open_at(server.url, 1);
    begin(one, &first, "select get_lock('queue', 10)", NULL);
    await(&first);
    begin(pool, &third,
          "set statement max_statement_time = 0 for select get_lock('queue', 1000)",
          NULL); // other connections are not concerned
    third.call.deadline_ms = 10 * DEADLINE_MS;
    begin(one, &first, "set statement max_statement_time = 0 for select sleep(0.3)", NULL);
    first.call.deadline_ms = 10 * DEADLINE_MS;
    begin(one, &second, "select 2", NULL);
    while (first.call.sent_us == 0)
        uv_run(&loop, UV_RUN_ONCE);
    clock_advance_us(DEADLINE_MS * 1000ull + 1000);
    await(&second);
    assert_int_equal(second.status, QE_PG_RETRY);
    await(&first);
    assert_int_equal(first.status, 0);
    my_pool_close(one, on_closed, NULL); // and with it the lock
    await(&third);
    assert_string_equal(third.text, "1");
}

static void kill_connection(const char id[ID])
{
    char sql[64];

    snprintf(sql, sizeof sql, "kill %s", id);
    assert_int_equal(ask_apart(sql).status, 0);
}

static void a_connection_that_died_while_idle_is_not_noticed(void **state)
{
    char id[ID];

    (void)state;
    note_connection(id);
    kill_connection(id);
    struct ask a = ask("select connection_id()");
    assert_int_equal(a.status, 0);
    assert_string_not_equal(a.text, id);
}

#define FOREVER "set statement max_statement_time = 0 for select sleep(1000)"

static void one_that_dies_under_a_call_is(void **state)
{
    struct ask stuck;
    char id[ID];

    (void)state;
    note_connection(id);
    begin(pool, &stuck, FOREVER, NULL);
    await_sleep(id);
    kill_connection(id);
    await(&stuck);
    assert_int_equal(stuck.status, QE_PG_GONE);
    assert_int_equal(ask("select 1").status, 0);
}

static void a_server_that_dies_and_comes_back_is_found_again(void **state)
{
    struct ask stuck;
    char id[ID];

    (void)state;
    note_connection(id);
    begin(pool, &stuck, FOREVER, NULL);
    await_sleep(id);
    my_server_kill(&server);
    await(&stuck);
    assert_int_equal(stuck.status, QE_PG_GONE);
    assert_int_equal(ask("select 1").status, QE_PG_AWAY);
    assert_false(my_pool_is_up(pool));
    my_server_start(&server);
    assert_int_equal(ask("select 1").status, 0);
    assert_true(my_pool_is_up(pool));
    assert_string_equal(my_pool_error(pool), "");
}

// ---- the end ----

static void closing_refuses_waiting_calls_and_lets_the_others_finish(void **state)
{
    static struct ask asks[MAX_CONNS + 5];
    struct ask late;

    (void)state;
    fill_pool(); // or a connection that is open early could answer several calls
    for (unsigned i = 0; i < countof(asks); i++)
        begin(pool, &asks[i], "select sleep(0.1)", NULL);
    while (asks[MAX_CONNS - 1].call.sent_us == 0)
        uv_run(&loop, UV_RUN_ONCE);
    my_pool_close(pool, on_closed, NULL);
    begin(pool, &late, "select 1", NULL);
    pool = NULL;
    for (unsigned i = 0; i < countof(asks); i++) {
        await(&asks[i]);
        assert_int_equal(asks[i].status, i < MAX_CONNS ? 0 : QE_STOPPING);
    }
    await(&late);
    assert_int_equal(late.status, QE_STOPPING);
    while (n_closed == 0)
        uv_run(&loop, UV_RUN_ONCE);
}

static void closing_while_it_dials_waits_for_that(void **state)
{
    struct ask a;

    (void)state;
    begin(pool, &a, "select 1", NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    my_pool_close(pool, on_closed, NULL);
    pool = NULL;
    await(&a);
    assert_int_equal(a.status, QE_STOPPING);
    while (n_closed == 0)
        uv_run(&loop, UV_RUN_ONCE);
}

// ---- all of it at once ----

enum { USERS = 20, CALLS = 1500 };

struct user {
    struct ask ask;
    bool running;
};
static struct user users[USERS];
static unsigned n_left, n_good, n_gone;

static void next_call(struct user *u);

static void on_user_done(struct my_call *call, int status, const struct my_reply *r)
{
    struct user *u = call->owner;

    assert_true(u->running);
    u->running = false;
    assert_true(status == 0 || status == QE_PG_GONE);
    n_good += status == 0;
    n_gone += status == QE_PG_GONE;
    if (status == 0)
        assert_int_equal(my_reply_rows(r), 1);
    if (n_left > 0)
        next_call(u);
}

static void next_call(struct user *u)
{
    // Every eighth ends the connection it runs on.
    bool suicide = --n_left % 8 == 0;

    u->running = true;
    u->ask.statement = (struct my_statement){
        "test", suicide ? "kill connection_id()" : "select repeat('z', 300)", 0};
    u->ask.call =
        (struct my_call){.statement = &u->ask.statement, .done = on_user_done, .owner = u};
    my_pool_exec(pool, &u->ask.call);
}

static void connections_that_always_fail_do_not_affect_other_pools(void **state)
{
    (void)state;
    n_left = CALLS;
    n_good = n_gone = 0;
    for (unsigned i = 0; i < USERS; i++)
        next_call(&users[i]);
    while (n_good + n_gone < CALLS)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(n_gone, (CALLS + 7) / 8);
    assert_in_range(my_pool_conns(pool), 0, MAX_CONNS);
}

static int start(void **state)
{
    (void)state;
    my_server_new(&server);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    my_server_free(&server);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, open_pool, close_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(values_come_back_as_they_went),
        T(numbers_are_read_as_such),
        T(many_rows_come_whole),
        T(of_several_results_the_last_with_rows_counts),
        T(failures_have_the_codes_that_decide_about_retries),
        T(a_statement_that_takes_too_long_is_ended_by_the_server),
        T(an_unreachable_server_is_reported),
        T(each_address_of_a_name_is_tried),
        T(more_calls_than_connections_wait_their_turn),
        T(idle_connections_are_closed_but_for_one),
        T(a_call_without_an_answer_costs_its_connection),
        T(a_call_without_an_answer_ends_at_the_server),
        T(a_call_that_waits_too_long_for_a_connection_is_refused),
        T(a_connection_that_died_while_idle_is_not_noticed),
        T(one_that_dies_under_a_call_is),
        T(a_server_that_dies_and_comes_back_is_found_again),
        T(closing_refuses_waiting_calls_and_lets_the_others_finish),
        T(closing_while_it_dials_waits_for_that),
        T(connections_that_always_fail_do_not_affect_other_pools),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
