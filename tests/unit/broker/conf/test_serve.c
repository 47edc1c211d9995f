// The settings of `queen serve`: precedence, errors that prevent start-up, warnings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/serve_int.h"

static struct serve_conf c;
static struct fault f;

#define ENV(...)  ((char *[]){(char[]){"HOME=/home/q"}, __VA_ARGS__ NULL})
#define ARGS(...) ((char *[]){__VA_ARGS__ NULL})
#define S(text)   ((char[]){text})

static int load(char *const args[], char *const env[])
{
    int n = 0;
    while (args[n])
        n++;
    return serve_conf_load(&c, n, args, env, &f);
}

static int unload(void **state)
{
    (void)state;
    serve_conf_deinit(&c);
    return 0;
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static void unset_settings_have_their_defaults(void **state)
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
    assert_int_equal(c.op[SERVE_PUSH].max_hold_ms, -1);
    assert_int_equal(serve_conf_pool_per_worker(&c), 50);
}

static void a_flag_overrides_the_environment_and_that_the_default(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--port"), S("7001"), S("--host=::1"), ),
                          ENV(S("PORT=7000"), S("NUM_WORKERS=4"), S("HOST="), )),
                     0);
    assert_int_equal(c.port, 7001);
    assert_int_equal(c.num_workers, 4);
    assert_string_equal(c.host, "::1");
}

static void an_empty_value_means_the_default(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--host="), ), ENV(S("PORT="), S("PG_USE_SSL="), )), 0);
    assert_int_equal(c.port, 6632);
    assert_string_equal(c.host, "");
    assert_false(c.pg_use_ssl);
}

static void an_error_names_the_invalid_value_and_the_valid_ones(void **state)
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

static void booleans_have_four_spellings_and_a_flag_without_value_is_true(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("PG_USE_SSL=1"), S("PG_SSL_REJECT_UNAUTHORIZED=0"), )),
                     0);
    assert_true(c.pg_use_ssl);
    assert_false(c.pg_ssl_reject_unauthorized);
    serve_conf_deinit(&c);
    assert_int_equal(
        load(ARGS(S("--pg-use-ssl"), S("--pg-ssl-reject-unauthorized=false"), ), ENV()), 0);
    assert_true(c.pg_use_ssl);
    assert_false(c.pg_ssl_reject_unauthorized);
}

static void the_name_of_the_contract_overrides_its_alias(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("POP_WAIT_MAX_INTERVAL_MS=1000"), )), 0);
    assert_int_equal(c.pop_wait_max_ms, 1000);
    serve_conf_deinit(&c);
    assert_int_equal(load(ARGS(), ENV(S("POP_WAIT_MAX_INTERVAL_MS=1000"),
                                      S("SIDECAR_POP_WAIT_MAX_MS=2000"), )),
                     0);
    assert_int_equal(c.pop_wait_max_ms, 2000);
}

static void every_setting_has_its_own_flag(void **state)
{
    (void)state;
    char seen[CONF_MAX_KEYS][CONF_FLAG_MAX];
    for (unsigned row = 0; row < serve_n_keys; row++) {
        conf_flag(&serve_table, &serve_keys[row], seen[row]);
        for (unsigned other = 0; other < row; other++)
            assert_string_not_equal(seen[row], seen[other]);
        char arg[200];
        strcpy(arg, seen[row]);
        strcat(arg, "=");
        strcat(arg, serve_keys[row].fallback);
        assert_int_equal(load(ARGS(arg, ), ENV()), 0);
        assert_int_equal(c.origin[row], CONF_FROM_FLAG);
        serve_conf_deinit(&c);
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

static void an_unknown_argument_is_an_error_with_a_hint(void **state)
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
    serve_conf_deinit(&c);
    assert_int_equal(load(ARGS(S("--log-level"), S("trace"), S("--dev"), ), ENV()), 0);
    assert_int_equal(c.log_level, LOG_TRACE);
}

static void each_action_has_its_flag(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(S("--help"), ), ENV()), 0);
    assert_int_equal(c.action, CONF_SHOW_HELP);
    serve_conf_deinit(&c);
    assert_int_equal(load(ARGS(S("--print-config"), S("--port=1"), ), ENV()), 0);
    assert_int_equal(c.action, CONF_SHOW_CONFIG);
}

static void defaults_that_depend_on_other_settings_are_computed(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("DB_STATEMENT_TIMEOUT=1000"), S("DB_POOL_SIZE=30"),
                                      S("NUM_WORKERS=4"), S("XDG_DATA_HOME=/x"), )),
                     0);
    assert_int_equal(c.inflight_deadline_ms, 6000);
    assert_int_equal(serve_conf_pool_per_worker(&c), 7);
    assert_string_equal(c.data_dir, "/x/queen");
    serve_conf_deinit(&c);
    assert_int_equal(load(ARGS(), (char *[]){S("HOME=/root"), NULL}), 0);
    assert_string_equal(c.data_dir, "/var/lib/queen");
    serve_conf_deinit(&c);
    assert_int_equal(
        load(ARGS(), ENV(S("LIBQUEEN_INFLIGHT_DEADLINE_MS=10"), S("DB_POOL_SIZE=1"), )), 0);
    assert_int_equal(c.inflight_deadline_ms, 2000);
    assert_int_equal(serve_conf_pool_per_worker(&c), 1);
}

// Returns the output of serve_conf_log(), which writes to stderr.
static const char *logged(void)
{
    static char text[4096];
    int fd[2], real = dup(STDERR_FILENO);
    assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
    dup2(fd[1], STDERR_FILENO);
    log_setup(LOG_INFO, LOG_TEXT);
    serve_conf_log(&c);
    dup2(real, STDERR_FILENO);
    ssize_t n = read(fd[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    close(fd[0]), close(fd[1]), close(real);
    return text;
}

static void an_unknown_name_is_logged_with_the_nearest_known_one(void **state)
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

static void names_without_effect_are_logged_in_one_line(void **state)
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

static void the_table_contains_no_setting_without_effect(void **state)
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
        serve_conf_deinit(&c);
    }
}

static void invalid_security_settings_are_errors(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("JWT_ENABLED=1"), S("JWT_ALGORITHM=eddsa"),
                                      S("QUEEN_ENCRYPTION_KEY=00ff"), )),
                     0);
    assert_true(c.jwt.enabled);
    assert_int_equal(c.jwt.algorithm, CONF_EDDSA);
    assert_string_equal(c.encryption_key, "00ff"); // lib/crypt checks it
    assert_string_equal(c.jwt.skip_paths, "/health,/metrics/prometheus,/metrics,/");
    assert_string_equal(c.jwt.roles_array_claim, "roles");
    assert_int_equal(c.jwt.clock_skew_s, 30);
    assert_int_equal(c.n_unknown, 0);
    serve_conf_deinit(&c);
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
    serve_conf_print(&c, &out);
    buf_putc(&out, '\0');
    assert_null(strstr(out.ptr, "hush"));
    buf_free(&out);
}

static void a_body_limit_below_the_contract_is_logged(void **state)
{
    (void)state;
    assert_int_equal(load(ARGS(), ENV(S("QUEEN_MAX_BODY_BYTES=1048576"), )), 0);
    assert_contains(logged(), "conf.small_body");
}

static void secrets_are_never_printed(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_int_equal(load(ARGS(), ENV(S("PG_PASSWORD=hunter2"), S("PORT=7000"), )), 0);
    serve_conf_print(&c, &out);
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
    serve_conf_help(&help);
    serve_conf_markdown(&page);
    buf_putc(&help, '\0');
    buf_putc(&page, '\0');
    for (unsigned row = 0; row < serve_n_keys; row++) {
        assert_contains(help.ptr, serve_keys[row].name);
        assert_contains(page.ptr, serve_keys[row].name);
    }
    buf_free(&help);
    buf_free(&page);
}

static char secret_path[] = "/tmp/queen-secret-XXXXXX";

// "NAME=path" of a new file with these contents and mode.
static char *file_with(const char *name, const char *text, size_t len, unsigned mode)
{
    static char entry[200];

    strcpy(secret_path + strlen(secret_path) - 6, "XXXXXX");
    int fd = mkstemp(secret_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    snprintf(entry, sizeof entry, "%s=%s", name, secret_path);
    return entry;
}

static void a_secret_may_come_from_a_file(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset;
    } secrets[] = {
        {"JWT_SECRET_FILE", offsetof(struct serve_conf, jwt.secret)},
        {"PG_PASSWORD_FILE", offsetof(struct serve_conf, pg_password)},
        {"QUEEN_SYNC_SECRET_FILE", offsetof(struct serve_conf, sync_secret)},
        {"QUEEN_ENCRYPTION_KEY_FILE", offsetof(struct serve_conf, encryption_key)},
        {"JWT_PUBLIC_KEY_FILE", offsetof(struct serve_conf, jwt.public_key)},
    };
    for (size_t i = 0; i < countof(secrets); i++) {
        char *entry = file_with(secrets[i].name, " two\nlines \r\n\n", 14, 0600);
        assert_int_equal(load(ARGS(), ENV(entry, )), 0);
        unlink(secret_path);
        assert_string_equal(*(const char **)((char *)&c + secrets[i].offset), " two\nlines ");
        assert_int_equal(c.n_unknown, 0);
        struct buf out = {0};
        serve_conf_print(&c, &out);
        buf_putc(&out, '\0');
        if (i < 4)
            assert_null(strstr(out.ptr, "two"));
        assert_contains(out.ptr, "# file");
        buf_free(&out);
        serve_conf_deinit(&c);
    }
    char *entry = file_with("", "from a file\n", 12, 0600);
    assert_int_equal(load(ARGS(S("--jwt-secret-file"), entry + 1, ), ENV()), 0);
    unlink(secret_path);
    assert_string_equal(c.jwt.secret, "from a file");
}

static void an_unusable_file_prevents_the_start_and_is_named(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, LOG_TEXT); // /tmp is open to everybody, which is a warning
    assert_int_equal(load(ARGS(), ENV(S("JWT_SECRET_FILE=/no/such"), )), QE_CONF);
    assert_contains(f.text, "JWT_SECRET_FILE");
    assert_contains(f.text, "/no/such");
    assert_int_equal(load(ARGS(), ENV(S("JWT_SECRET=a"), S("JWT_SECRET_FILE=/b"), )), QE_CONF);
    assert_contains(f.text, "must not both be set");
    assert_int_equal(load(ARGS(), ENV(S("PG_PASSWORD_FILE=/tmp"), )), QE_CONF);
    assert_int_equal(load(ARGS(), ENV(file_with("PG_PASSWORD_FILE", "\n\n", 2, 0600), )),
                     QE_CONF);
    assert_contains(f.text, "empty");
    unlink(secret_path);
    assert_int_equal(load(ARGS(), ENV(file_with("PG_PASSWORD_FILE", "hush\0et", 7, 0600), )),
                     QE_CONF);
    assert_null(strstr(f.text, "hush"));
    unlink(secret_path);
    static char large[65537];
    memset(large, 'x', sizeof large);
    assert_int_equal(
        load(ARGS(), ENV(file_with("PG_PASSWORD_FILE", large, sizeof large, 0600), )), QE_CONF);
    unlink(secret_path);
    // Only secrets have files.
    assert_int_equal(load(ARGS(S("--port-file=/x"), ), ENV()), QE_CONF);
    assert_int_equal(load(ARGS(), ENV(S("QUEEN_MAX_BODY_BYTES_FILE=/x"), )), 0);
    assert_int_equal(c.n_unknown, 1);
}

int main(void)
{
#define T(test) cmocka_unit_test_teardown(test, unload)
    const struct CMUnitTest tests[] = {
        T(unset_settings_have_their_defaults),
        T(a_flag_overrides_the_environment_and_that_the_default),
        T(an_empty_value_means_the_default),
        T(an_error_names_the_invalid_value_and_the_valid_ones),
        T(booleans_have_four_spellings_and_a_flag_without_value_is_true),
        T(the_name_of_the_contract_overrides_its_alias),
        T(every_setting_has_its_own_flag),
        T(pg_user_is_the_role_and_queen_pg_user_the_system_user),
        T(an_unknown_argument_is_an_error_with_a_hint),
        T(dev_means_debug_unless_a_level_is_given),
        T(each_action_has_its_flag),
        T(defaults_that_depend_on_other_settings_are_computed),
        T(an_unknown_name_is_logged_with_the_nearest_known_one),
        T(names_without_effect_are_logged_in_one_line),
        T(the_table_contains_no_setting_without_effect),
        T(invalid_security_settings_are_errors),
        T(keys_are_not_printed),
        T(a_body_limit_below_the_contract_is_logged),
        T(secrets_are_never_printed),
        T(help_and_markdown_name_every_setting),
        T(a_secret_may_come_from_a_file),
        T(an_unusable_file_prevents_the_start_and_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
