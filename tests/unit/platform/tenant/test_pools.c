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

// Requests a tenant, uses its pool, keeps it for a moment, requests again.
struct user {
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_call call;
    uv_timer_t pause;
    bool waiting;
};
static struct user users[USERS];
static unsigned n_told, n_good, n_refused, n_gone, n_running, n_left;
static const struct pg_statement probe = {"probe", "select current_database()", PG_UNPREPARED,
                                          NULL};

static void begin(struct user *u);

static void rest(struct user *u);
static void on_pause(uv_timer_t *pause) { begin(pause->data); }

static void on_call(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct user *u = call->owner;

    if (status == 0) { // of the requested tenant
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
                                                                 .directory_ms = 50,
                                                                 .directory_window_s = 60});
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

static void every_request_gets_one_result_whatever_fails(void **state)
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

static void closing_fails_waiting_requests(void **state)
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

// ---- with refs in the hands of the test ----

static struct tenant_ref *held[2];
static int held_status[2];

static void on_held(struct tenant_want *w, int status, struct tenant_ref *ref,
                    const struct fault *why)
{
    size_t i = w == &users[0].want ? 0 : 1;

    (void)why;
    held[i] = ref;
    held_status[i] = status;
}

static void hold_one(size_t i, const char *name)
{
    struct tenant_want *w = &users[i].want;

    held[i] = NULL;
    held_status[i] = 1;
    *w = (struct tenant_want){.got = on_held, .timeout_ms = 5000};
    tenant_get(pools, span_of(name), w);
    while (held_status[i] == 1)
        uv_run(&loop, UV_RUN_ONCE);
}

static void run_until(bool (*is_so)(void))
{
    uint64_t deadline = clock_mono_us() + 120000000;

    while (!is_so() && clock_mono_us() < deadline)
        uv_run(&loop, UV_RUN_ONCE);
    assert_true(is_so());
}

static void failures_of_one_holder_are_not_forgiven_by_another(void **state)
{
    (void)state;
    open_pools();
    for (unsigned round = 0; round < 2; round++) { // four failures; three open the breaker
        for (size_t i = 0; i < 2 && tenant_pools_stats(pools)->n_down == 0; i++)
            hold_one(i, "t2");
        for (size_t i = 0; i < 2; i++)
            if (held[i])
                tenant_ref_failed(held[i], QE_PG_GONE);
        for (size_t i = 0; i < 2; i++)
            if (held[i])
                tenant_put(held[i]);
    }
    assert_int_equal(tenant_pools_stats(pools)->breakers_opened, 1);
    close_pools();
}

static bool nobody_is_known(void) { return tenant_pools_stats(pools)->n_known == 0; }

static void a_change_that_no_look_has_seen_is_found_by_comparing(void **state)
{
    (void)state;
    open_pools();
    hold_one(0, "t3");
    assert_int_equal(held_status[0], 0);
    tenant_put(held[0]);
    // As if this process had been stopped for longer than the looks go back.
    free(pg_cluster_ask(&cluster,
                        "update platform.tenant set state = 'gone', revision = revision + 1, "
                        "changed_at = clock_timestamp() - interval '90 s' where name = 't3'"));
    run_until(nobody_is_known);
    hold_one(0, "t3");
    assert_int_equal(held_status[0], QE_TENANT_UNKNOWN);
    free(
        pg_cluster_ask(&cluster, "update platform.tenant set state = 'new' where name = 't3'"));
    hold_one(0, "t3");
    assert_int_equal(held_status[0], 0);
    tenant_put(held[0]);
    free(pg_cluster_ask(&cluster, "delete from platform.tenant where name = 't3'"));
    run_until(nobody_is_known);
    close_pools();
}

static void on_caller(uv_stream_t *server, int status)
{
    (void)server;
    (void)status;
}

static bool is_down(void) { return tenant_pools_stats(pools)->n_down == 1; }

static void a_tenant_that_is_removed_while_it_is_probed_is_forgotten(void **state)
{
    (void)state;
    uv_tcp_t deaf; // accepts connections and never answers
    struct sockaddr_storage at;
    int len = sizeof at;
    char sql[400];

    open_pools();
    uv_tcp_init(&loop, &deaf);
    uv_ip4_addr("127.0.0.1", 0, (struct sockaddr_in *)&at);
    assert_int_equal(uv_tcp_bind(&deaf, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&deaf, 16, on_caller), 0);
    uv_tcp_getsockname(&deaf, (struct sockaddr *)&at, &len);
    snprintf(sql, sizeof sql,
             "insert into platform.tenant (name, kind, url, database, made) values "
             "('deaf', 'postgresql', 'postgresql://postgres@127.0.0.1:%u/x', 'x', false)",
             (unsigned)ntohs(((struct sockaddr_in *)&at)->sin_port));
    free(pg_cluster_ask(&cluster, sql));
    hold_one(0, "deaf");
    assert_int_equal(held_status[0], QE_TENANT_DOWN);
    run_until(is_down);
    uint64_t until = clock_mono_us() + 300000; // the probe begins after 20 ms and takes 2 s
    while (clock_mono_us() < until)
        uv_run(&loop, UV_RUN_ONCE);
    free(pg_cluster_ask(&cluster, "delete from platform.tenant where name = 'deaf'"));
    tenant_changed(pools, SPAN("deaf"));
    run_until(nobody_is_known);
    uv_close((uv_handle_t *)&deaf, NULL);
    close_pools();
}

int main(void)
{
    log_setup(LOG_OFF, LOG_TEXT);
    pg_cluster_new(&cluster);
    make_tenants();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_name_is_not_kept),
        cmocka_unit_test(closing_fails_waiting_requests),
        cmocka_unit_test(every_request_gets_one_result_whatever_fails),
        cmocka_unit_test(failures_of_one_holder_are_not_forgiven_by_another),
        cmocka_unit_test(a_change_that_no_look_has_seen_is_found_by_comparing),
        cmocka_unit_test(a_tenant_that_is_removed_while_it_is_probed_is_forgotten),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pg_cluster_free(&cluster);
    return failed;
}
