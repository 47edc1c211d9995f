// log.c: one line per fact, in each shape; stderr is a pipe here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static int pipe_fd[2], real_stderr;
static char text[8192];

static int catch_stderr(void **state)
{
    (void)state;
    real_stderr = dup(STDERR_FILENO);
    clock_freeze(0, 1770091506123000);
    return pipe2(pipe_fd, O_NONBLOCK) || dup2(pipe_fd[1], STDERR_FILENO) < 0;
}

static int give_back_stderr(void **state)
{
    (void)state;
    clock_release();
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr), close(pipe_fd[0]), close(pipe_fd[1]);
    return 0;
}

static const char *logged(void)
{
    ssize_t n = read(pipe_fd[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void a_file_gets_logfmt_with_the_time(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("pool.open", "conns=%d host=%s", 3, "db1");
    assert_string_equal(logged(), "ts=2026-02-03T04:05:06.123Z level=info event=pool.open "
                                  "conns=3 host=db1\n");
}

static void a_full_pipe_never_blocks_and_drops_are_counted(void **state)
{
    (void)state;
    fcntl(pipe_fd[1], F_SETFL, 0); // as a service gets it: writing would block
    log_setup(LOG_INFO, LOG_TEXT);
    uint64_t before = log_dropped();
    for (unsigned i = 0; i < 4000; i++)
        log_info("much", "filler=\"%s\"", "a line that nobody reads at the moment");
    uint64_t dropped = log_dropped() - before;
    assert_true(dropped > 100 && dropped < 4000);

    // The short line about lost lines may fit before a longer one, so the sum of all counts is
    // checked.
    unsigned long long told = 0, lines;
    bool has_next = false;
    for (unsigned step = 0; step < 2; step++) {
        while (*logged()) { // the reader catches up
            for (const char *at = text; (at = strstr(at, "event=log.dropped lines=")); at++)
                told += sscanf(at, "event=log.dropped lines=%llu", &lines) == 1 ? lines : 0;
            has_next = has_next || strstr(text, "event=next n=1\n");
        }
        if (step == 0)
            log_info("next", "n=%d", 1);
    }
    assert_true(has_next);
    assert_int_equal(told, dropped);
    log_info("last", "n=%d", 2);
    assert_null(strstr(logged(), "log.dropped"));
}

static void lines_below_the_threshold_are_not_written(void **state)
{
    (void)state;
    log_setup(LOG_WARN, LOG_TEXT);
    log_info("quiet", "n=%d", 1);
    assert_string_equal(logged(), "");
    log_setup(LOG_OFF, LOG_TEXT);
    log_critical("quiet", "n=%d", 1);
    assert_string_equal(logged(), "");
}

static void json_has_fields_with_types_and_escapes(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_JSON);
    log_error("pg.fail", "n=%d ratio=0.5 id=007 ok=true error=\"%s\" tail=x", -4,
              "say \"no\" \\ more");
    assert_string_equal(
        logged(),
        "{\"ts\":\"2026-02-03T04:05:06.123Z\",\"level\":\"error\",\"event\":\"pg.fail\","
        "\"n\":-4,\"ratio\":0.5,\"id\":\"007\",\"ok\":true,"
        "\"error\":\"say \\\"no\\\" \\\\ more\",\"tail\":\"x\"}\n");
}

static void a_value_cannot_start_a_line_of_its_own(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("odd", "name=\"%s\"", "a\nlevel=critical\033[2J");
    const char *line = logged();
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    assert_null(strchr(line, '\033'));
}

// A message of libpq may contain all of these.
static const char hostile[] = "relation \"a b\" is away\nlevel=critical x=\"1\" y=\"2\\";

static void a_value_cannot_end_before_its_end(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("pg", "error=\"%s\" n=%d", hostile, 7);
    assert_string_equal(logged(), "ts=2026-02-03T04:05:06.123Z level=info event=pg "
                                  "error=\"relation \\\"a b\\\" is away\\nlevel=critical "
                                  "x=\\\"1\\\" y=\\\"2\\\\\" n=7\n");
    log_setup(LOG_INFO, LOG_JSON);
    log_info("pg", "error=\"%s\" n=%d", hostile, 7);
    assert_string_equal(logged(), "{\"ts\":\"2026-02-03T04:05:06.123Z\",\"level\":\"info\","
                                  "\"event\":\"pg\",\"error\":\"relation \\\"a b\\\" is away"
                                  "\\nlevel=critical x=\\\"1\\\" y=\\\"2\\\\\",\"n\":7}\n");
}

static void a_value_is_quoted_where_it_must_be(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("odd", "a=%s b=%.*s c=\"%s\" d=%s e=%d", "x y=1", 2, "zz\"z", "", "", 5);
    assert_non_null(strstr(logged(), " event=odd a=\"x y=1\" b=zz c=\"\" d= e=5\n"));
    log_info("said", "hello %s", "\"you\" n=1");
    assert_non_null(strstr(logged(), " event=said message=\"hello \\\"you\\\" n=1\"\n"));
    log_info("latin", "a=%s b=%s", "gr\xfc", "gr\xc3\xbc");
    assert_non_null(strstr(logged(), " a=\"gr?\" b=\"gr\xc3\xbc\"\n"));
}

static void a_line_that_is_too_long_is_cut_and_still_ends(void **state)
{
    (void)state;
    char big[6000];
    memset(big, '"', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("big", "v=%s", big);
    size_t n = strlen(logged());
    assert_in_range(n, 2900, 4096);
    assert_int_equal(text[n - 1], '\n');

    log_setup(LOG_INFO, LOG_JSON);
    log_info("big", "n=1 v=%s", big);
    n = strlen(logged());
    assert_in_range(n, 2900, 4096);
    assert_non_null(strstr(text, ",\"n\":1,\"v\":\"\\\""));
    assert_string_equal(text + n - 5, "\\\"\"}\n"); // an escape is not cut in half
}

static void levels_are_known_by_name(void **state)
{
    (void)state;
    enum log_level level;
    assert_true(log_parse_level(SPAN("WARN"), &level) && level == LOG_WARN);
    assert_true(log_parse_level(SPAN("off"), &level) && level == LOG_OFF);
    assert_false(log_parse_level(SPAN("loud"), &level));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, catch_stderr, give_back_stderr)
    const struct CMUnitTest tests[] = {
        T(a_file_gets_logfmt_with_the_time),
        T(a_full_pipe_never_blocks_and_drops_are_counted),
        T(lines_below_the_threshold_are_not_written),
        T(json_has_fields_with_types_and_escapes),
        T(a_value_cannot_start_a_line_of_its_own),
        T(a_value_cannot_end_before_its_end),
        T(a_value_is_quoted_where_it_must_be),
        T(a_line_that_is_too_long_is_cut_and_still_ends),
        cmocka_unit_test(levels_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
