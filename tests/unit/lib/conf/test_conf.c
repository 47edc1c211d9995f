// conf.c and show.c: who beats whom, what stops the start, what is only remarked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conf/conf_int.h"

static struct conf c;
static struct fault f;

#define ENV(...)  ((char *[]){(char[]){"HOME=/home/q"}, __VA_ARGS__ NULL})
#define ARGS(...) ((char *[]){__VA_ARGS__ NULL})
#define S(text)   ((char[]){text})

static int load(char *const args[], char *const env[])
{
    int n = 0;
    while (args[n])
        n++;
    return conf_load(&c, n, args, env, &f);
}

static int unload(void **state)
{
    (void)state;
    conf_deinit(&c);
    return 0;
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static void without_anything_the_defaults_hold(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV()), 0);
    assert_int_equal(c.action, CONF_RUN);
    assert_int_equal(c.port, 6632);
    assert_string_equal(c.host, "");
    assert_int_equal(c.num_workers, 2);
    assert_int_equal(c.log_level, LOG_INFO);
    assert_string_equal(c.pg_host, "");
    assert_int_equal(c.sidecar_micro_batch_wait_ms, 5);
    assert_true(c.pop_wait_backoff_multiplier == 3.0);
    assert_int_equal(c.pop_wait_max_ms, 5000);
    assert_int_equal(c.max_body_bytes, 104857600);
    assert_int_equal(c.inflight_deadline_ms, 35000);
    assert_string_equal(c.data_dir, "/home/q/.local/share/queen");
    assert_int_equal(c.op[CONF_PUSH].max_hold_ms, -1);
    assert_int_equal(conf_pool_per_worker(&c), 50);
}

static void a_flag_beats_the_environment_beats_the_default(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--port"), S("7001"), S("--host=::1"), ),
                          ENV(S("PORT=7000"), S("NUM_WORKERS=4"), S("HOST="), )),
                     0);
    assert_int_equal(c.port, 7001);
    assert_int_equal(c.num_workers, 4);
    assert_string_equal(c.host, "::1");
}

static void empty_means_default(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--host="), ), ENV(S("PORT="), S("PG_USE_SSL="), )), 0);
    assert_int_equal(c.port, 6632);
    assert_string_equal(c.host, "");
    assert_false(c.pg_use_ssl);
}

static void a_bad_value_is_named_with_what_it_should_be(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"PORT=abc",
         "PORT has the invalid value \"abc\"; it must be a whole number from 1 to 65535"},
        {"PORT=0", "\"0\""},
        {"PORT=65536", "\"65536\""},
        {"PORT=12x", "\"12x\""},
        {"PG_USE_SSL=yes", "true, 1, false or 0"},
        {"LOG_LEVEL=loud", "one of trace, debug"},
        {"QUEEN_CONCURRENCY_MODE=fast", "one of vegas, static"},
        {"DEFAULT_SUBSCRIPTION_MODE=newest", "one of all, new, new-only"},
        {"POP_WAIT_BACKOFF_MULTIPLIER=0.5", "SIDECAR_POP_WAIT_BACKOFF_MULTIPLIER"},
        {"QUEEN_MAX_BODY_BYTES=1e9", "QUEEN_MAX_BODY_BYTES"},
        {"QUEEN_VEGAS_MIN_LIMIT=100", "QUEEN_VEGAS_MAX_LIMIT"},
    };
    for (size_t i = 0; i < countof(bad); i++) {
        char *setting = strdup(bad[i][0]);
        assert_int_equal(load(ARGS(), ((char *[]){setting, NULL})), QE_CONF);
        assert_contains(f.text, bad[i][1]);
        assert_null(strchr(f.text, '\n'));
        free(setting);
    }
    assert_int_equal(load(ARGS(S("--port=x"), ), ENV()), QE_CONF);
    assert_contains(f.text, "PORT (--port) has the invalid value \"x\"");
}

static void booleans_have_four_spellings_and_a_bare_flag_is_true(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("PG_USE_SSL=1"), S("PG_SSL_REJECT_UNAUTHORIZED=0"), )),
                     0);
    assert_true(c.pg_use_ssl);
    assert_false(c.pg_ssl_reject_unauthorized);
    conf_deinit(&c);
    assert_int_equal(
        load(ARGS(S("--pg-use-ssl"), S("--pg-ssl-reject-unauthorized=false"), ), ENV()), 0);
    assert_true(c.pg_use_ssl);
    assert_false(c.pg_ssl_reject_unauthorized);
}

static void the_seeds_name_wins_over_its_alias(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("POP_WAIT_MAX_INTERVAL_MS=1000"), )), 0);
    assert_int_equal(c.pop_wait_max_ms, 1000);
    conf_deinit(&c);
    assert_int_equal(load(ARGS(), ENV(S("POP_WAIT_MAX_INTERVAL_MS=1000"),
                                      S("SIDECAR_POP_WAIT_MAX_MS=2000"), )),
                     0);
    assert_int_equal(c.pop_wait_max_ms, 2000);
}

static void every_setting_has_a_flag_of_its_own_that_sets_it(void **state)
{
    (void)state;
    char seen[CONF_MAX_KEYS][CONF_FLAG_MAX];
    for (unsigned row = 0; row < conf_n_keys; row++) {
        conf_flag(&conf_serve, &conf_keys[row], seen[row]);
        for (unsigned other = 0; other < row; other++)
            assert_string_not_equal(seen[row], seen[other]);
        char arg[200];
        strcpy(arg, seen[row]);
        strcat(arg, "=");
        strcat(arg, conf_keys[row].fallback);
        assert_int_equal(load(ARGS(arg, ), ENV()), 0);
        assert_int_equal(c.origin[row], CONF_FROM_FLAG);
        conf_deinit(&c);
    }
}

static void pg_user_is_the_role_and_queen_pg_user_the_system_user(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--pg-user"), S("role"), S("--queen-pg-user"), S("os"),
                               S("--queen-data-dir"), S("/d"), ),
                          ENV()),
                     0);
    assert_string_equal(c.pg_user, "role");
    assert_string_equal(c.pg_os_user, "os");
    assert_string_equal(c.data_dir, "/d");
}

static void odd_arguments_stop_the_start_with_a_hint(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--prot"), S("1"), ), ENV()), QE_CONF);
    assert_contains(f.text, "unknown option --prot; the nearest one is --port");
    assert_int_equal(load(ARGS(S("--port"), ), ENV()), QE_CONF);
    assert_contains(f.text, "--port needs a value");
    assert_int_equal(load(ARGS(S("6632"), ), ENV()), QE_CONF);
    assert_contains(f.text, "unexpected argument 6632");
}

static void dev_means_debug_unless_a_level_is_given(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--dev"), ), ENV(S("LOG_LEVEL=error"), )), 0);
    assert_int_equal(c.log_level, LOG_DEBUG);
    conf_deinit(&c);
    assert_int_equal(load(ARGS(S("--log-level"), S("trace"), S("--dev"), ), ENV()), 0);
    assert_int_equal(c.log_level, LOG_TRACE);
}

static void actions_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--help"), ), ENV()), 0);
    assert_int_equal(c.action, CONF_SHOW_HELP);
    conf_deinit(&c);
    assert_int_equal(load(ARGS(S("--print-config"), S("--port=1"), ), ENV()), 0);
    assert_int_equal(c.action, CONF_SHOW_CONFIG);
}

static void what_depends_is_worked_out(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("DB_STATEMENT_TIMEOUT=1000"), S("DB_POOL_SIZE=30"),
                                      S("NUM_WORKERS=4"), S("XDG_DATA_HOME=/x"), )),
                     0);
    assert_int_equal(c.inflight_deadline_ms, 6000);
    assert_int_equal(conf_pool_per_worker(&c), 7);
    assert_string_equal(c.data_dir, "/x/queen");
    conf_deinit(&c);
    assert_int_equal(load(ARGS(), (char *[]){S("HOME=/root"), NULL}), 0);
    assert_string_equal(c.data_dir, "/var/lib/queen");
    conf_deinit(&c);
    assert_int_equal(
        load(ARGS(), ENV(S("LIBQUEEN_INFLIGHT_DEADLINE_MS=10"), S("DB_POOL_SIZE=1"), )), 0);
    assert_int_equal(c.inflight_deadline_ms, 2000);
    assert_int_equal(conf_pool_per_worker(&c), 1);
}

// What conf_log() writes; stderr is a pipe meanwhile.
static const char *logged(void)
{
    static char text[4096];
    int fd[2], real = dup(STDERR_FILENO);
    assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
    dup2(fd[1], STDERR_FILENO);
    log_setup(LOG_INFO, LOG_TEXT);
    conf_log(&c);
    dup2(real, STDERR_FILENO);
    ssize_t n = read(fd[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    close(fd[0]), close(fd[1]), close(real);
    return text;
}

static void unknown_names_are_remarked_with_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("QUEEN_PUSH_MAX_HOLD=1"), S("SIDECAR_POOLSIZE=2"),
                                      S("OTHER=3"), S("QUEEN_URL=x"), S("QUEEN_BIN=y"), )),
                     0);
    assert_int_equal(c.n_unknown, 2);
    const char *text = logged();
    assert_contains(text, "name=\"QUEEN_PUSH_MAX_HOLD\" nearest=QUEEN_PUSH_MAX_HOLD_MS");
    assert_contains(text, "name=\"SIDECAR_POOLSIZE\" nearest=SIDECAR_POOL_SIZE");
    assert_null(strstr(text, "QUEEN_URL"));
}

static void names_without_use_are_listed_in_one_line(void **state)
{
    (void)state;
    assert_int_equal(
        load(ARGS(), ENV(S("SIDECAR_MAX_BATCH_SIZE=s"), S("RESPONSE_BATCH_MAX=odd"),
                         S("QUEEN_CACHE_PARTITION_MAX=a:1"), S("STATS_INTERVAL_MS="), )),
        0);
    const char *text = logged();
    assert_contains(
        text, "names=\"RESPONSE_BATCH_MAX SIDECAR_MAX_BATCH_SIZE QUEEN_CACHE_PARTITION_MAX\"");
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_int_equal(c.n_unknown, 0);
}

static void a_setting_that_acts_on_nothing_does_not_pretend_to(void **state)
{
    (void)state;
    static const char *const names[] = {
        "PARTITION_LOOKUP_RECONCILE_INTERVAL_MS", "QUEEN_CACHE_PARTITION_MAX",
        "QUEEN_TRANSACTION_PREFERRED_BATCH_SIZE", "QUEEN_TRANSACTION_MAX_HOLD_MS",
        "QUEEN_TRANSACTION_MAX_BATCH_SIZE",       "QUEEN_CUSTOM_MAX_BATCH_SIZE",
    };
    for (size_t i = 0; i < countof(names); i++) {
        char setting[80];
        snprintf(setting, sizeof setting, "%s=1", names[i]);
        assert_int_equal(load(ARGS(), ENV(setting, )), 0);
        assert_contains(logged(), names[i]);
        assert_int_equal(c.n_unknown, 0);
        conf_deinit(&c);
    }
}

static void security_settings_arrive_and_bad_ones_stop_the_start(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("JWT_ENABLED=1"), S("JWT_ALGORITHM=eddsa"),
                                      S("QUEEN_ENCRYPTION_KEY=00ff"), )),
                     0);
    assert_true(c.jwt.enabled);
    assert_int_equal(c.jwt.algorithm, CONF_EDDSA);
    assert_string_equal(c.encryption_key, "00ff"); // looked at by src/crypt
    assert_string_equal(c.jwt.skip_paths, "/health,/metrics/prometheus,/metrics,/");
    assert_string_equal(c.jwt.roles_array_claim, "roles");
    assert_int_equal(c.jwt.clock_skew_s, 30);
    assert_int_equal(c.n_unknown, 0);
    conf_deinit(&c);
    assert_int_equal(load(ARGS(), ENV(S("JWT_ENABLED=yes"), )), QE_CONF);
    assert_contains(f.text, "JWT_ENABLED has the invalid value");
    assert_int_equal(load(ARGS(), ENV(S("JWT_ALGORITHM=none"), )), QE_CONF);
    assert_contains(f.text, "JWT_ALGORITHM has the invalid value");
}

static void keys_are_not_printed(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_int_equal(
        load(ARGS(), ENV(S("JWT_SECRET=hush1"), S("QUEEN_ENCRYPTION_KEY=hush2"), )), 0);
    conf_print(&c, &out);
    buf_putc(&out, '\0');
    assert_null(strstr(out.ptr, "hush"));
    buf_free(&out);
}

static void a_body_limit_below_the_promise_is_remarked(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("QUEEN_MAX_BODY_BYTES=1048576"), )), 0);
    assert_contains(logged(), "conf.small_body");
}

static void secrets_are_never_shown(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_int_equal(load(ARGS(), ENV(S("PG_PASSWORD=hunter2"), S("PORT=7000"), )), 0);
    conf_print(&c, &out);
    buf_putc(&out, '\0');
    assert_null(strstr(out.ptr, "hunter2"));
    assert_contains(out.ptr, "(secret)");
    assert_contains(out.ptr, "# environment");
    assert_contains(out.ptr, "vegas");
    buf_free(&out);
}

static void help_and_markdown_name_every_setting(void **state)
{
    (void)state;
    struct buf help = {0}, page = {0};
    conf_help(&help);
    conf_markdown(&page);
    buf_putc(&help, '\0');
    buf_putc(&page, '\0');
    for (unsigned row = 0; row < conf_n_keys; row++) {
        assert_contains(help.ptr, conf_keys[row].name);
        assert_contains(page.ptr, conf_keys[row].name);
    }
    buf_free(&help);
    buf_free(&page);
}

int main(void)
{
#define T(test) cmocka_unit_test_teardown(test, unload)
    const struct CMUnitTest tests[] = {
        T(without_anything_the_defaults_hold),
        T(a_flag_beats_the_environment_beats_the_default),
        T(empty_means_default),
        T(a_bad_value_is_named_with_what_it_should_be),
        T(booleans_have_four_spellings_and_a_bare_flag_is_true),
        T(the_seeds_name_wins_over_its_alias),
        T(every_setting_has_a_flag_of_its_own_that_sets_it),
        T(pg_user_is_the_role_and_queen_pg_user_the_system_user),
        T(odd_arguments_stop_the_start_with_a_hint),
        T(dev_means_debug_unless_a_level_is_given),
        T(actions_are_told_apart),
        T(what_depends_is_worked_out),
        T(unknown_names_are_remarked_with_the_nearest),
        T(names_without_use_are_listed_in_one_line),
        T(a_setting_that_acts_on_nothing_does_not_pretend_to),
        T(security_settings_arrive_and_bad_ones_stop_the_start),
        T(keys_are_not_printed),
        T(a_body_limit_below_the_promise_is_remarked),
        T(secrets_are_never_shown),
        T(help_and_markdown_name_every_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
