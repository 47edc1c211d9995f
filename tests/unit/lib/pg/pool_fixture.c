// pool_fixture.c: see pool_fixture.h.
#include "pool_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

struct pg_cluster cluster;

uv_loop_t loop;

struct pg_pool *pool;

bool is_up, unprepared;

unsigned n_states;

const struct pg_statement add = {"add", "select $1::int8 + 1", 0, NULL};
const struct pg_statement divide = {"divide", "select 1 / $1::int4", 1, NULL};
const struct pg_statement nap = {"nap", "select pg_sleep($1::float8)", 2, NULL};
const struct pg_statement wide = {"wide", "select repeat('x', $1::int4), $2::bytea", 3, NULL};
const struct pg_statement nonsense = {"nonsense", "selekt", 130, NULL};
const struct pg_statement pid = {"pid", "select pg_backend_pid()", 5, NULL};
const struct pg_statement refusing = {
    "refusing", "do $$ begin raise 'no' using errcode = 'QN001'; end $$", 6, NULL};

const struct pg_statement insert_twice = {
    "insert_twice", "insert into deferred values (1), (1) returning n", 7, NULL};
const struct pg_statement insert_slow = {"insert_slow",
                                         "insert into slow values (1) returning n", 8, NULL};

void on_done(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct probe *p = call->owner;

    p->times++;
    p->status = status;
    snprintf(p->sqlstate, sizeof p->sqlstate, "%s", pg_reply_sqlstate(reply));
    snprintf(p->message, sizeof p->message, "%s", pg_reply_message(reply));
    if (pg_reply_rows(reply) == 1) {
        span first = pg_reply_bytes(reply, 0, 0);
        p->len0 = first.len;
        if (first.len == 8 || first.len == 4)
            p->value = pg_reply_i64(reply, 0, 0);
        if (pg_reply_cols(reply) > 1)
            p->len1 = pg_reply_bytes(reply, 0, 1).len;
    }
}

void exec(struct probe *p, const struct pg_statement *s)
{
    p->call =
        (struct pg_call){.statement = s, .params = &p->params, .done = on_done, .owner = p};
    p->times = 0;
    pg_pool_exec(pool, &p->call);
    assert_int_equal(p->times, 0); // never from inside
}

void until_done(struct probe *p)
{
    uint64_t end = clock_mono_us() + 120 * 1000 * 1000;
    while (p->times == 0 && clock_mono_us() < end)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(p->times, 1);
    pg_params_free(&p->params);
}

int ask(struct probe *p, const struct pg_statement *s)
{
    exec(p, s);
    until_done(p);
    return p->status;
}

int ask_add(int64_t v)
{
    struct probe p = {0};
    pg_param_i64(&p.params, v);
    int rc = ask(&p, &add);
    if (rc == 0)
        assert_int_equal(p.value, v + 1);
    return rc;
}

unsigned n_servers;

static void on_new_server(void *ctx)
{
    (void)ctx;
    n_servers++;
}

static void on_state(void *ctx, bool up)
{
    (void)ctx;
    is_up = up;
    n_states++;
}

const char *conninfo;

void open_pool(unsigned max, unsigned deadline_ms, bool pooled)
{
    struct pg_pool_conf conf = {.on_new_server = on_new_server,
                                .conninfo = conninfo,
                                .max_conns = max,
                                .keep_conns = 1,
                                .connect_timeout_ms = 2000,
                                .deadline_ms = deadline_ms,
                                .idle_close_ms = 300,
                                .pooler = pooled ? PG_POOLER_TRANSACTION : PG_POOLER_AUTO};
    is_up = false;
    n_states = n_servers = 0;
    pool = pg_pool_open(&loop, &conf, on_state, NULL);
}

int setup(void **state)
{
    unprepared = *state != NULL;
    conninfo = cluster.conninfo;
    return uv_loop_init(&loop);
}

void on_closed(void *ctx) { *(bool *)ctx = true; }

int teardown(void **state)
{
    (void)state;
    bool closed = false;
    pg_pool_close(pool, on_closed, &closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    return uv_loop_close(&loop);
}
