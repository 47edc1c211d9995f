// args.c: options and arguments from a table.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "cli/args.h"

static const struct cli_option own[] = {
    {"batch", 'n', CLI_COUNT, "N", ""},      {"ack", 'a', CLI_FLAG, NULL, ""},
    {"wait", 'w', CLI_DURATION, "TIME", ""}, {"from", 0, CLI_TIME, "TIME", ""},
    {"group", 'g', CLI_TEXT, "NAME", ""},
};
static const struct cli_option common[] = {{"quiet", 'q', CLI_FLAG, NULL, ""}};

// Words by blanks; the copy lives until the next call.
static int parse(struct args *a, const char *line, struct fault *f)
{
    static char words[256];
    static char *argv[16];
    int argc = 0;

    strcpy(words, line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    *a = (struct args){.tables = {own, common}, .sizes = {countof(own), countof(common)}};
    return args_parse(a, argc, argv, f);
}

static void options_and_arguments_may_be_mixed(void **state)
{
    struct args a;
    struct fault f;
    (void)state;

    assert_int_equal(parse(&a, "x -aqn5 --group=g y -- -z", &f), 0);
    assert_int_equal(a.n_rest, 3);
    assert_string_equal(a.rest[2], "-z");
    assert_true(args_has(&a, "ack") && args_has(&a, "quiet"));
    assert_int_equal(args_count(&a, "batch", 1), 5);
    assert_string_equal(args_text(&a, "group"), "g");
    assert_int_equal(parse(&a, "-n 7 --group -", &f), 0);
    assert_int_equal(args_count(&a, "batch", 1), 7);
    assert_string_equal(args_text(&a, "group"), "-");
    assert_int_equal(parse(&a, "-", &f), 0);
    assert_int_equal(a.n_rest, 1);
    assert_int_equal(args_count(&a, "batch", 42), 42);
}

static void mistakes_are_reported(void **state)
{
    static const char *const wrong[] = {"--bacth 1", "-z",        "-n",       "-n x",
                                        "--ack=yes", "--wait 5y", "--from x", "--batch=-1"};
    struct args a;
    struct fault f;
    (void)state;

    for (size_t i = 0; i < countof(wrong); i++)
        assert_int_not_equal(parse(&a, wrong[i], &f), 0);
    assert_int_not_equal(parse(&a, "--bacth 1", &f), 0);
    assert_non_null(strstr(f.text, "--batch"));
}

static void arguments_are_counted(void **state)
{
    struct args a;
    struct fault f;
    (void)state;

    assert_int_equal(parse(&a, "x y", &f), 0);
    assert_int_equal(args_check_count(&a, "A B", &f), 0);
    assert_int_equal(args_check_count(&a, "A [B]", &f), 0);
    assert_int_equal(args_check_count(&a, "A...", &f), 0);
    assert_int_equal(args_check_count(&a, "[A]...", &f), 0);
    assert_int_not_equal(args_check_count(&a, "A B C", &f), 0);
    assert_non_null(strstr(f.text, "C"));
    assert_int_not_equal(args_check_count(&a, "A", &f), 0);
    assert_non_null(strstr(f.text, "\"y\""));
    assert_int_not_equal(args_check_count(&a, "", &f), 0);
}

static void durations_have_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {{"5", 5000},     {"1500ms", 1500}, {"0.5s", 500}, {"2m", 120000},
                {"1h", 3600000}, {"1d", 86400000}, {"0", 0}};
    static const char *const bad[] = {"", "s", "5y", "-1s", "1 s", "1e99d", "..s"};
    uint64_t ms;
    (void)state;

    for (size_t i = 0; i < countof(good); i++) {
        assert_true(args_read_ms(good[i].text, &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(args_read_ms(bad[i], &ms));
}

static void times_may_be_relative(void **state)
{
    static const struct {
        const char *line, *time;
    } cases[] = {
        {"--from now", "2026-02-03T04:05:06.000000Z"},
        {"--from -2h", "2026-02-03T02:05:06.000000Z"},
        {"--from +1d", "2026-02-04T04:05:06.000000Z"},
        {"--from 2026-01-31T08:00:00+01:00", "2026-01-31T07:00:00.000000Z"},
    };
    struct args a;
    struct fault f;
    char out[ARGS_TIME_SIZE];
    (void)state;

    clock_freeze(0, 1770091506000000);
    for (size_t i = 0; i < countof(cases); i++) {
        assert_int_equal(parse(&a, cases[i].line, &f), 0);
        assert_true(args_time(&a, "from", out));
        assert_string_equal(out, cases[i].time);
    }
    clock_release();
    assert_int_equal(parse(&a, "", &f), 0);
    assert_false(args_time(&a, "from", out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_arguments_may_be_mixed),
        cmocka_unit_test(mistakes_are_reported),
        cmocka_unit_test(arguments_are_counted),
        cmocka_unit_test(durations_have_units),
        cmocka_unit_test(times_may_be_relative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
