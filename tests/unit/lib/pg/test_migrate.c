// migrate.c against a real server: once, twice, four at a time, and with schemas that do not
// fit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <uv.h>

#include "base/log.h"
#include "db/sql.gen.h"
#include "pg/conninfo.h"
#include "support/pg_cluster.h"

static struct pg_cluster cluster;

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static const struct pg_migration migrations[] = {
    {1, "first", "create table queen.a (n int); insert into queen.a values (1)", SHA_A},
    {2, "second", "alter table queen.a add m int; select pg_sleep(0.2)", SHA_A},
};
static const struct pg_object objects[] = {
    {"one", "create or replace function queen.one() returns int language sql as 'select 1'",
     SHA_A},
    {"two",
     "create or replace function queen.two() returns int language sql as 'select queen.one() + "
     "1'",
     SHA_A},
};
static const struct pg_schema schema = {migrations, 2, objects, 2, NULL};

static void expect(const char *sql, const char *value)
{
    char *got = pg_cluster_ask(&cluster, sql);
    assert_string_equal(got, value);
    free(got);
}

static int empty(void **state)
{
    (void)state;
    free(pg_cluster_ask(&cluster, "set client_min_messages = error; "
                                  "drop schema if exists queen, queen_streams cascade"));
    return 0;
}

static struct pg_migrate_result migrate(const struct pg_schema *s)
{
    struct pg_migrate_result r = {0};
    struct fault f = {0};
    if (pg_migrate(cluster.conninfo, s, &r, &f) != 0)
        fail_msg("%s", f.text);
    return r;
}

static void the_first_start_does_all_the_second_nothing(void **state)
{
    (void)state;
    struct pg_migrate_result r = migrate(&schema);
    assert_int_equal(r.n_migrations, 2);
    assert_int_equal(r.n_objects, 2);
    expect("select queen.two()", "2");
    r = migrate(&schema);
    assert_int_equal(r.n_migrations + r.n_objects, 0);
    expect("select count(*) from queen.a", "1");
}

static void a_changed_procedure_is_replaced_alone(void **state)
{
    (void)state;
    migrate(&schema);
    struct pg_object changed[] = {objects[0], objects[1]};
    changed[0].text =
        "create or replace function queen.one() returns int language sql as 'select 10'";
    changed[0].sha256 = SHA_B;
    struct pg_migrate_result r = migrate(&(struct pg_schema){migrations, 2, changed, 2, NULL});
    assert_int_equal(r.n_objects, 1);
    expect("select queen.two()", "11");
}

static void a_changed_migration_stops_the_start(void **state)
{
    (void)state;
    migrate(&schema);
    struct pg_migration changed[] = {migrations[0], migrations[1]};
    changed[1].sha256 = SHA_B;
    struct fault f = {0};
    assert_int_equal(
        pg_migrate(cluster.conninfo, &(struct pg_schema){changed, 2, NULL, 0, NULL}, NULL, &f),
        QE_PG_FAILED);
    assert_non_null(strstr(f.text, "0002_second"));
}

static void a_newer_database_is_left_alone(void **state)
{
    (void)state;
    migrate(&schema);
    struct pg_object old[] = {{"one", "select 1 / 0", SHA_B}};
    struct pg_migrate_result r = migrate(&(struct pg_schema){migrations, 1, old, 1, NULL});
    assert_true(r.newer);
    assert_int_equal(r.n_objects, 0);
    expect("select queen.two()", "2");
}

static void a_failed_migration_changes_nothing_and_names_its_place(void **state)
{
    (void)state;
    const struct pg_migration bad[] = {
        migrations[0], {2, "bad", "create table queen.b (n int);\n-- é\nselekt 1", SHA_A}};
    struct fault f = {0};
    assert_int_equal(
        pg_migrate(cluster.conninfo, &(struct pg_schema){bad, 2, NULL, 0, NULL}, NULL, &f),
        QE_PG_FAILED);
    assert_non_null(strstr(f.text, "migration 0002_bad (line 3): syntax error"));
    expect("select to_regclass('queen.b') is null", "t");
    expect("select max(version) from queen.schema_version", "1");
    migrate(&schema); // and the repaired program goes on from there
}

static void a_failing_procedure_changes_no_procedure(void **state)
{
    (void)state;
    const struct pg_object bad[] = {objects[0], {"bad", "selekt", SHA_A}};
    struct fault f = {0};
    assert_int_equal(pg_migrate(cluster.conninfo,
                                &(struct pg_schema){migrations, 2, bad, 2, NULL}, NULL, &f),
                     QE_PG_FAILED);
    expect("select to_regproc('queen.one') is null", "t");
    expect("select count(*) from queen.schema_objects", "0");
}

static void a_migration_that_commits_is_refused(void **state)
{
    (void)state;
    const struct pg_migration bad[] = {{1, "commits", "select 1; commit", SHA_A}};
    struct fault f = {0};
    assert_int_equal(
        pg_migrate(cluster.conninfo, &(struct pg_schema){bad, 1, NULL, 0, NULL}, NULL, &f),
        QE_PG_FAILED);
    assert_non_null(strstr(f.text, "transaction"));
}

static void a_missing_server_is_away(void **state)
{
    (void)state;
    struct fault f = {0};
    assert_int_equal(pg_migrate("host=/nonexistent", &schema, NULL, &f), QE_PG_AWAY);
    assert_true(f.text[0] != '\0');
}

static struct pg_migrate_result results[4];
static int codes[4];

static void one_broker(void *arg)
{
    int i = *(int *)arg;
    codes[i] = pg_migrate(cluster.conninfo, &schema, &results[i], NULL);
}

static void four_brokers_at_once_do_the_work_once(void **state)
{
    (void)state;
    uv_thread_t threads[4];
    static int index[4] = {0, 1, 2, 3};
    unsigned n = 0;
    memset(results, 0, sizeof results);
    for (int i = 0; i < 4; i++)
        uv_thread_create(&threads[i], one_broker, &index[i]);
    for (int i = 0; i < 4; i++) {
        uv_thread_join(&threads[i]);
        assert_int_equal(codes[i], 0);
        n += results[i].n_migrations + results[i].n_objects;
    }
    assert_int_equal(n, 4);
    expect("select queen.two()", "2");
}

// The current contents of sql/ must load, with the settings that the workers use.
static void the_schema_that_we_carry_loads(void **state)
{
    (void)state;
    struct fault f = {0};
    struct pg_conninfo info = {.hosts = cluster.dir,
                               .db = "postgres",
                               .user = "postgres",
                               .statement_timeout_ms = 1000,
                               .lock_timeout_ms = 500,
                               .probes_only = true};
    char *conninfo = pg_conninfo_format(&info);
    if (pg_migrate(conninfo, &pg_schema_queen, NULL, &f) != 0)
        fail_msg("%s", f.text);
    free(conninfo);
    struct pg_migrate_result r = migrate(&pg_schema_queen);
    assert_int_equal(r.n_migrations + r.n_objects, 0);
}

// The first upgrade after the first release: the baseline has data, then a program with one
// more migration and a changed procedure starts, then a program of the first release starts
// again.
static void an_upgrade_of_the_baseline_keeps_its_rows(void **state)
{
    (void)state;
    assert_int_equal(pg_schema_queen.n_migrations, 1);
    migrate(&pg_schema_queen);
    free(pg_cluster_ask(&cluster, "insert into queen.queues (name) values ('kept')"));

    const struct pg_migration upgrade[] = {
        pg_schema_queen.migrations[0],
        {2, "made_up", "alter table queen.queues add made_up int not null default 7", SHA_B},
    };
    const struct pg_object changed[] = {
        {"made_up",
         "create or replace function queen.made_up() returns int language sql as 'select "
         "sum(made_up)::int from queen.queues'",
         SHA_B},
    };
    struct pg_migrate_result r = migrate(&(struct pg_schema){upgrade, 2, changed, 1, NULL});
    assert_int_equal(r.n_migrations, 1);
    assert_int_equal(r.n_objects, 1);
    expect("select name || queen.made_up() from queen.queues", "kept7");

    r = migrate(&pg_schema_queen);
    assert_true(r.newer);
    assert_int_equal(r.n_migrations + r.n_objects, 0);
    expect("select name || queen.made_up() from queen.queues", "kept7");
}

static void the_books_are_kept_in_the_schema_that_is_named(void **state)
{
    (void)state;
    struct pg_schema elsewhere = {
        (const struct pg_migration[]){{1, "first", "create table visit.a (n int)", SHA_A}}, 1,
        NULL, 0, "visit"};
    assert_int_equal(migrate(&elsewhere).n_migrations, 1);
    assert_int_equal(migrate(&elsewhere).n_migrations, 0);
    expect("select count(*) from visit.schema_version", "1");
    expect("select to_regclass('queen.schema_version') is null", "t");
    free(
        pg_cluster_ask(&cluster, "set client_min_messages = error; drop schema visit cascade"));
}

int main(void)
{
    log_setup(LOG_OFF, LOG_TEXT);
    pg_cluster_new(&cluster);
#define T(f) cmocka_unit_test_setup(f, empty)
    const struct CMUnitTest tests[] = {
        T(the_first_start_does_all_the_second_nothing),
        T(a_changed_procedure_is_replaced_alone),
        T(a_changed_migration_stops_the_start),
        T(a_newer_database_is_left_alone),
        T(a_failed_migration_changes_nothing_and_names_its_place),
        T(a_failing_procedure_changes_no_procedure),
        T(a_migration_that_commits_is_refused),
        T(a_missing_server_is_away),
        T(four_brokers_at_once_do_the_work_once),
        T(the_schema_that_we_carry_loads),
        T(an_upgrade_of_the_baseline_keeps_its_rows),
        T(the_books_are_kept_in_the_schema_that_is_named),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pg_cluster_free(&cluster);
    return failed;
}
