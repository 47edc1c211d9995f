// embed*.c: a real server, made, killed, brought back and stopped.
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <libpq-fe.h>

#include "base/clock.h"
#include "base/log.h"
#include "pg/embed.h"

static char top[64], dir[192];
static uv_loop_t loop;
static int n_ready, n_died, n_stopped;

static void on_ready(void *ctx) { (void)ctx, n_ready++; }
static void on_died(void *ctx, int status) { (void)ctx, (void)status, n_died++; }
static void on_stopped(void *ctx) { (void)ctx, n_stopped++; }

static void until(const int *count, int wanted)
{
    uint64_t end = clock_mono_us() + 120 * 1000 * 1000;
    while (*count < wanted && clock_mono_us() < end)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(*count, wanted);
}

static struct embed *prepare(void)
{
    struct embed *e = NULL;
    struct fault f = {0};
    if (embed_prepare(&(struct embed_conf){.data_dir = dir}, &e, &f) != 0)
        fail_msg("%s", f.text);
    return e;
}

static void ask(const char *conninfo, const char *sql, const char *expected)
{
    PGconn *pg = PQconnectdb(conninfo);
    PGresult *r = PQexec(pg, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(pg));
    if (expected != NULL)
        assert_string_equal(PQgetvalue(r, 0, 0), expected);
    PQclear(r);
    PQfinish(pg);
}

static int setup(void **state)
{
    (void)state;
    n_ready = n_died = n_stopped = 0;
    snprintf(top, sizeof top, "/tmp/queen-embed-XXXXXX");
    if (mkdtemp(top) == NULL || chmod(top, 0755) != 0)
        return -1;
    snprintf(dir, sizeof dir, "%s/deep/data", top);
    return uv_loop_init(&loop);
}

static int teardown(void **state)
{
    (void)state;
    char command[160];
    uv_run(&loop, UV_RUN_DEFAULT);
    snprintf(command, sizeof command, "rm -rf %s", top);
    int rc = system(command);
    return uv_loop_close(&loop) != 0 ? -1 : rc;
}

static const struct embed_events events = {on_ready, on_died};

// main() sets JWT_SECRET.
static void expect_no_secret_in_environment(pid_t pid)
{
    char path[64], text[65536];

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    assert_true(n > 0);
    assert_null(memmem(text, n, "JWT_SECRET", 10));
}

static void a_server_is_made_killed_brought_back_and_stopped(void **state)
{
    (void)state;
    struct embed *e = prepare();
    embed_start(e, &loop, events, NULL);
    until(&n_ready, 1);
    ask(embed_conninfo(e), "show fsync", "on");
    ask(embed_conninfo(e), "show listen_addresses", "");
    ask(embed_conninfo(e), "show max_connections", "250");
    ask(embed_conninfo(e), "show data_checksums", "on");
    ask(embed_conninfo(e), "show server_encoding", "UTF8");
    ask(embed_conninfo(e), "select count(*) from pg_file_settings where error is not null",
        "0");
    ask(embed_conninfo(e), "create table kept as select 42 as n", NULL);

    pid_t first = embed_pid(e);
    expect_no_secret_in_environment(first);
    assert_true(getsid(first) == first); // Ctrl-C does not reach it
    kill(first, SIGKILL);
    until(&n_died, 1);
    until(&n_ready, 2);
    assert_true(embed_pid(e) != first);
    ask(embed_conninfo(e), "select n from kept", "42");

    embed_stop(e, on_stopped, NULL);
    until(&n_stopped, 1);
    assert_int_equal(embed_pid(e), 0);
    embed_free(e);

    e = prepare(); // a second life of the broker, no initdb
    embed_start(e, &loop, events, NULL);
    until(&n_ready, 3);
    ask(embed_conninfo(e), "select n from kept", "42");
    embed_stop(e, on_stopped, NULL);
    until(&n_stopped, 2);
    embed_free(e);
}

static void a_second_broker_on_the_directory_is_refused(void **state)
{
    (void)state;
    struct embed *e = prepare(), *other = NULL;
    struct fault f = {0};
    char pid[16];
    assert_int_equal(embed_prepare(&(struct embed_conf){.data_dir = dir}, &other, &f), QE_CONF);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_non_null(strstr(f.text, "in use"));
    assert_non_null(strstr(f.text, pid));
    embed_free(e);
    embed_free(prepare()); // free again
}

static void an_unfinished_initdb_is_not_mistaken_for_a_cluster(void **state)
{
    (void)state;
    char command[640];
    snprintf(command, sizeof command,
             "mkdir -p %s/pg.tmp/base && echo 15 >%s/pg.tmp/PG_VERSION", dir, dir);
    assert_int_equal(system(command), 0);
    struct embed *e = prepare();
    embed_start(e, &loop, events, NULL);
    embed_stop(e, on_stopped, NULL); // at once, while it starts
    until(&n_stopped, 1);
    embed_free(e);
    snprintf(command, sizeof command, "test ! -e %s/pg.tmp && test -e %s/pg/PG_VERSION", dir,
             dir);
    assert_int_equal(system(command), 0);
}

// A broker in a child of its own, so that it can be killed.
static pid_t start_broker(int out)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uv_loop_t own;
    struct embed *e;
    uv_loop_init(&own);
    if (embed_prepare(&(struct embed_conf){.data_dir = dir}, &e, NULL) != 0)
        _exit(1);
    embed_start(e, &own, events, NULL);
    while (n_ready == 0)
        uv_run(&own, UV_RUN_ONCE);
    pid_t server = embed_pid(e);
    if (write(out, &server, sizeof server) != sizeof server)
        _exit(1);
    uv_run(&own, UV_RUN_DEFAULT);
    _exit(0);
}

static void a_killed_broker_takes_its_server_along(void **state)
{
    (void)state;
    int pipe_fds[2];
    pid_t server = 0;
    char path[256];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t broker = start_broker(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &server, sizeof server), sizeof server);
    snprintf(path, sizeof path, "%s/pg/postmaster.pid", dir);
    assert_int_equal(access(path, F_OK), 0);
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, server, 0), .events = POLLIN};
    assert_true(end.fd >= 0);
    kill(broker, SIGKILL);
    waitpid(broker, NULL, 0);
    assert_int_equal(poll(&end, 1, 30 * 1000), 1);
    close(end.fd);
    assert_int_equal(access(path, F_OK), -1); // a clean shutdown removes it
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void the_server_of_a_killed_broker_goes_before_the_next_comes(void **state)
{
    (void)state;
    int pipe_fds[2];
    pid_t server = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t broker = start_broker(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &server, sizeof server), sizeof server);
    kill(server, SIGSTOP); // make the orphan slow to leave
    kill(broker, SIGKILL);
    waitpid(broker, NULL, 0);
    assert_int_equal(kill(server, 0), 0);
    pid_t waker = fork();
    if (waker == 0) {
        usleep(500 * 1000);
        kill(server, SIGCONT);
        _exit(0);
    }

    uint64_t from = clock_mono_us();
    struct embed *e = prepare();
    assert_true(clock_mono_us() - from > 400 * 1000);
    waitpid(waker, NULL, 0);
    embed_start(e, &loop, events, NULL);
    until(&n_ready, 1);
    assert_int_equal(n_died, 0);
    embed_stop(e, on_stopped, NULL);
    until(&n_stopped, 1);
    embed_free(e);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void a_long_path_still_gets_a_socket(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s/%090d", top, 0);
    struct embed *e = prepare();
    assert_int_equal(strncmp(embed_socket_dir(e), "/tmp/queen-", 11), 0);
    struct stat st;
    assert_int_equal(stat(embed_socket_dir(e), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    embed_start(e, &loop, events, NULL);
    until(&n_ready, 1);
    ask(embed_conninfo(e), "select 1", "1");
    embed_stop(e, on_stopped, NULL);
    until(&n_stopped, 1);
    rmdir(embed_socket_dir(e));
    embed_free(e);
}

static void errors_are_explained(void **state)
{
    (void)state;
    struct embed *e = NULL;
    struct fault f = {0};
    struct embed_conf conf = {.data_dir = dir, .bin_dir = "/nonexistent"};
    assert_int_equal(embed_prepare(&conf, &e, &f), QE_CONF);
    assert_non_null(strstr(f.text, "QUEEN_PG_BIN"));
    if (geteuid() != 0)
        return;
    conf = (struct embed_conf){.data_dir = dir, .run_as = "no-such-user"};
    assert_int_equal(embed_prepare(&conf, &e, &f), QE_CONF);
    assert_non_null(strstr(f.text, "QUEEN_PG_USER"));
    assert_int_equal(chmod(top, 0700), 0);
    conf.run_as = NULL;
    assert_int_equal(embed_prepare(&conf, &e, &f), QE_CONF);
    assert_non_null(strstr(f.text, "may not enter"));
    assert_non_null(strstr(f.text, top));
}

int main(void)
{
    setenv("JWT_SECRET", "hush", 1);
    log_setup(LOG_OFF, LOG_TEXT);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_server_is_made_killed_brought_back_and_stopped),
        T(a_second_broker_on_the_directory_is_refused),
        T(an_unfinished_initdb_is_not_mistaken_for_a_cluster),
        T(a_killed_broker_takes_its_server_along),
        T(the_server_of_a_killed_broker_goes_before_the_next_comes),
        T(a_long_path_still_gets_a_socket),
        T(errors_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
