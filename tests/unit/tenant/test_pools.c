// pools.c against a real server, with random failures: connections are killed, rows change, the
// server goes away and comes back.  Run under the sanitizers by make check.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "pg/migrate.h"
#include "pg/pool.h"
#include "support/pg_cluster.h"
#include "tenant/pools.h"
#include "tenant/sql.gen.h"

enum { TENANTS = 8, MAX = 3, USERS = 40, GETS = 4000 };

static struct pg_cluster cluster;
static uv_loop_t loop;
static struct pg_pool *control;
static struct tenant_pools *pools;

static uint64_t seed = 11;
static unsigned rnd(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

// Asks for a tenant, uses its pool, holds it for a moment, asks again.
struct user {
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_call call;
    uv_timer_t pause;
    bool waiting;
};
static struct user users[USERS];
static unsigned n_told, n_good, n_refused, n_gone, n_running, n_left;
static const struct pg_statement probe = {"probe", "select current_database()", PG_UNPREPARED};

static void begin(struct user *u);

static void rest(struct user *u);
static void on_pause(uv_timer_t *pause) { begin(pause->data); }

static void on_call(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct user *u = call->owner;

    if (status == 0) { // of the tenant that was asked for
        span db = pg_reply_bytes(reply, 0, 0), name = tenant_ref_name(u->ref);
        assert_int_equal(db.len, name.len);
        assert_memory_equal(db.ptr, name.ptr, db.len);
        n_good++;
    } else {
        assert_true(status == QE_PG_GONE || status == QE_PG_AWAY);
        n_gone++;
    }
    tenant_ref_failed(u->ref, status);
    tenant_put(u->ref);
    u->ref = NULL;
    rest(u);
}

static void on_got(struct tenant_want *w, int status, struct tenant_ref *ref,
                   const struct fault *why)
{
    struct user *u = w->owner;

    assert_true(u->waiting);
    u->waiting = false;
    n_told++;
    const struct tenant_pools_stats *s = tenant_pools_stats(pools);
    assert_true(s->n_pools <= MAX);
    if (status != 0) {
        assert_null(ref);
        assert_non_null(strstr(why->text, "tenant t"));
        n_refused++;
        rest(u);
        return;
    }
    u->ref = ref;
    u->call = (struct pg_call){.statement = &probe, .done = on_call, .owner = u};
    pg_pool_exec(tenant_ref_pg(ref), &u->call);
}

static void rest(struct user *u)
{
    if (n_left == 0) {
        n_running--;
        return;
    }
    n_left--;
    uv_timer_start(&u->pause, on_pause, rnd(4), 0);
}

static void begin(struct user *u)
{
    char name[8];

    snprintf(name, sizeof name, "t%u", rnd(3) ? rnd(2) : rnd(TENANTS));
    u->want = (struct tenant_want){.got = on_got, .owner = u, .timeout_ms = 20 + rnd(400)};
    u->waiting = true;
    tenant_get(pools, span_of(name), &u->want);
    if (u->waiting && rnd(20) == 0) { // somebody hung up
        tenant_want_cancel(&u->want);
        u->waiting = false;
        rest(u);
    }
}

static void make_tenants(void)
{
    struct fault f;

    if (pg_migrate(cluster.conninfo, &pg_schema_platform, NULL, &f) != 0)
        fail_msg("%s", f.text);
    for (unsigned i = 0; i < TENANTS; i++) {
        char sql[400];
        snprintf(sql, sizeof sql, "create database t%u", i);
        free(pg_cluster_ask(&cluster, sql));
        snprintf(sql, sizeof sql,
                 "insert into platform.tenant (name, kind, url, database, made) values "
                 "('t%u', 'postgresql', 'postgresql://postgres@/t%u?host=%s', 't%u', false)",
                 i, i, cluster.dir, i);
        free(pg_cluster_ask(&cluster, sql));
    }
}

static void open_pools(void)
{
    uv_loop_init(&loop);
    control = pg_pool_open(&loop,
                           &(struct pg_pool_conf){.conninfo = cluster.conninfo,
                                                  .max_conns = 4,
                                                  .keep_conns = 1,
                                                  .connect_timeout_ms = 2000,
                                                  .deadline_ms = 10000,
                                                  .idle_close_ms = 10000},
                           NULL, NULL);
    pools = tenant_pools_open(&loop, &(struct tenant_pools_conf){.control = control,
                                                                 .max_pools = MAX,
                                                                 .idle_ms = 50,
                                                                 .wait_ms = 1000,
                                                                 .max_conns = 3,
                                                                 .connect_timeout_ms = 2000,
                                                                 .conn_idle_ms = 1000,
                                                                 .statement_timeout_ms = 5000,
                                                                 .health_after_ms = 5,
                                                                 .breaker_failures = 3,
                                                                 .probe_ms = 20,
                                                                 .directory_ms = 50});
}

static void on_pools_closed(void *ctx)
{
    (void)ctx;
    pg_pool_close(control, NULL, NULL);
}

static void close_pools(void)
{
    tenant_pools_close(pools, on_pools_closed, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void hurt(void)
{
    char sql[200];

    switch (rnd(3)) {
    case 0:
        snprintf(sql, sizeof sql,
                 "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                 "where datname = 't%u'",
                 rnd(TENANTS));
        free(pg_cluster_ask(&cluster, sql));
        break;
    case 1:
        snprintf(sql, sizeof sql, "t%u", rnd(TENANTS));
        tenant_changed(pools, span_of(sql));
        break;
    default:
        snprintf(sql, sizeof sql,
                 "update platform.tenant set revision = revision + 1, "
                 "changed_at = clock_timestamp() where name = 't%u'",
                 rnd(TENANTS));
        free(pg_cluster_ask(&cluster, sql));
    }
}

static void on_user_closed(uv_handle_t *handle) { (void)handle; }

static void everybody_is_told_once_whatever_fails(void **state)
{
    (void)state;
    open_pools();
    n_left = GETS;
    n_running = USERS;
    for (unsigned i = 0; i < USERS; i++) {
        uv_timer_init(&loop, &users[i].pause);
        users[i].pause.data = &users[i];
        begin(&users[i]);
    }
    uint64_t next = clock_mono_us(), outage = next + 1000000;
    bool was_away = false;
    while (n_running > 0) {
        uv_run(&loop, UV_RUN_ONCE);
        uint64_t now = clock_mono_us();
        if (now >= next) {
            hurt();
            next = now + 30000;
        }
        if (!was_away && now >= outage) {
            was_away = true;
            pg_cluster_stop(&cluster, "immediate");
            pg_cluster_start(&cluster);
        }
    }
    const struct tenant_pools_stats *s = tenant_pools_stats(pools);
    assert_true(n_told > GETS / 2 && n_good > GETS / 4);
    assert_true(s->evicted > 0 && s->replaced > 0);
    for (unsigned i = 0; i < USERS; i++)
        uv_close((uv_handle_t *)&users[i].pause, on_user_closed);
    close_pools();
}

static void closing_tells_those_who_wait(void **state)
{
    (void)state;
    open_pools();
    n_left = 0;
    n_running = USERS;
    n_told = 0;
    for (unsigned i = 0; i < USERS; i++) {
        struct user *u = &users[i];
        uv_timer_init(&loop, &u->pause);
        u->want = (struct tenant_want){.got = on_got, .owner = u, .timeout_ms = 5000};
        u->waiting = true;
        tenant_get(pools, i % 2 ? SPAN("t0") : SPAN("t1"), &u->want);
        uv_close((uv_handle_t *)&u->pause, NULL);
    }
    close_pools();
    assert_int_equal(n_told, USERS);
    assert_int_equal(n_running, 0);
}

static void an_unknown_name_is_not_kept(void **state)
{
    (void)state;
    open_pools();
    n_left = 0;
    n_running = 1;
    n_refused = 0;
    users[0].want = (struct tenant_want){.got = on_got, .owner = &users[0]};
    users[0].waiting = true;
    tenant_get(pools, SPAN("tantalus"), &users[0].want);
    while (n_running > 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(n_refused, 1);
    assert_int_equal(tenant_pools_stats(pools)->n_known, 0);
    close_pools();
}

int main(void)
{
    log_setup(LOG_OFF, LOG_TEXT);
    pg_cluster_new(&cluster);
    make_tenants();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_name_is_not_kept),
        cmocka_unit_test(closing_tells_those_who_wait),
        cmocka_unit_test(everybody_is_told_once_whatever_fails),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pg_cluster_free(&cluster);
    return failed;
}
