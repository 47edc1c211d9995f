// str.c: numbers, pieces, UTF-8, escapes, distances and dates.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "base/attrs.h"
#include "base/str.h"

static void only_whole_decimal_numbers_are_numbers(void **state)
{
    (void)state;
    uint64_t u;
    int64_t i;
    assert_true(str_parse_u64(SPAN("18446744073709551615"), &u) && u == UINT64_MAX);
    assert_false(str_parse_u64(SPAN("18446744073709551616"), &u));
    assert_false(str_parse_u64(SPAN("99999999999999999999"), &u));
    assert_false(str_parse_u64(SPAN(""), &u));
    assert_false(str_parse_u64(SPAN("+1"), &u));
    assert_false(str_parse_u64(SPAN("1 "), &u));
    assert_true(str_parse_i64(SPAN("-9223372036854775808"), &i) && i == INT64_MIN);
    assert_true(str_parse_i64(SPAN("9223372036854775807"), &i) && i == INT64_MAX);
    assert_false(str_parse_i64(SPAN("9223372036854775808"), &i));
    assert_false(str_parse_i64(SPAN("-"), &i));
}

static void a_fraction_is_read_but_not_the_oddities_of_strtod(void **state)
{
    (void)state;
    double d;
    assert_true(str_parse_double(SPAN("2.5"), &d) && d == 2.5);
    assert_true(str_parse_double(SPAN("-1e3"), &d) && d == -1000);
    assert_false(str_parse_double(SPAN("inf"), &d));
    assert_false(str_parse_double(SPAN("0x10"), &d));
    assert_false(str_parse_double(SPAN(" 1"), &d));
    assert_false(str_parse_double(SPAN("1e999"), &d));
    assert_false(str_parse_double(SPAN(""), &d));
}

static void the_leading_integer_of_a_parameter_is_used(void **state)
{
    (void)state;
    int64_t v;
    assert_true(str_leading_i64(SPAN("15abc"), &v) && v == 15);
    assert_true(str_leading_i64(SPAN("-3.7"), &v) && v == -3);
    assert_false(str_leading_i64(SPAN("abc"), &v));
    assert_false(str_leading_i64(SPAN(""), &v));
}

static void comparing_and_trimming_is_about_ascii(void **state)
{
    (void)state;
    assert_true(str_eq_nocase(SPAN("Content-LENGTH"), SPAN("content-length")));
    assert_false(str_eq_nocase(SPAN("a["), SPAN("a{")));
    assert_true(str_starts(SPAN("QUEEN_X"), SPAN("QUEEN_")));
    assert_false(str_starts(SPAN("QU"), SPAN("QUEEN_")));
    assert_true(span_eq(str_trim(SPAN(" \t a b ")), SPAN("a b")));
    assert_int_equal(str_trim(SPAN("  ")).len, 0);
}

static void every_part_counts_also_the_empty_ones(void **state)
{
    (void)state;
    span rest = SPAN("a,,b,"), part;
    assert_true(str_split(&rest, ',', &part) && span_eq(part, SPAN("a")));
    assert_true(str_split(&rest, ',', &part) && part.len == 0);
    assert_true(str_split(&rest, ',', &part) && span_eq(part, SPAN("b")));
    assert_true(str_split(&rest, ',', &part) && part.len == 0);
    assert_false(str_split(&rest, ',', &part));
}

static void results_are_set_on_failure(void **state)
{
    (void)state;
    span none = SPAN_NONE, part = SPAN("left from before");
    assert_false(str_split(&none, ';', &part));
    assert_null(part.ptr);
    assert_int_equal(part.len, 0);

    uint64_t u = 7;
    int64_t i = 7;
    double d = 7;
    assert_false(str_parse_u64(SPAN("7x"), &u));
    assert_false(str_parse_i64(SPAN("x7"), &i));
    assert_false(str_parse_double(SPAN_NONE, &d));
    assert_true(u == 0 && i == 0 && d == 0);
    i = 7;
    assert_false(str_leading_i64(SPAN("x"), &i));
    assert_true(i == 0);
}

static void invalid_utf8_is_recognised(void **state)
{
    (void)state;
    assert_true(str_is_utf8(SPAN("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80")));
    assert_int_equal(str_utf8_chars(SPAN("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80")), 6);
    assert_false(str_is_utf8(SPAN("\xc0\x80")));         // overlong
    assert_false(str_is_utf8(SPAN("\xe0\x9f\xbf")));     // overlong
    assert_false(str_is_utf8(SPAN("\xed\xa0\x80")));     // surrogate
    assert_false(str_is_utf8(SPAN("\xf4\x90\x80\x80"))); // beyond U+10FFFF
    assert_false(str_is_utf8(SPAN("\xe2\x82")));         // cut
    assert_false(str_is_utf8(SPAN("\x80")));
    assert_false(str_is_utf8(SPAN("\xff")));
}

static void clean(const char *text, size_t size, const char *want)
{
    char out[64];

    memset(out, 'x', sizeof out);
    str_clean_utf8(out, size, span_of(text));
    assert_string_equal(out, want);
    assert_true(str_is_utf8(span_of(out)));
}

static void cleaned_text_is_utf8_and_cut_between_characters(void **state)
{
    (void)state;
    char same[] = "a\xff\xd0\xb6\xd0";

    clean("plain", 64, "plain");
    clean("", 1, "");
    clean("plain", 4, "pla");
    clean("\xd0\xb6\xd0\xb6", 64, "\xd0\xb6\xd0\xb6");
    clean("\xd0\xb6\xd0\xb6", 5, "\xd0\xb6\xd0\xb6");
    clean("\xd0\xb6\xd0\xb6", 4, "\xd0\xb6"); // no half of the second
    clean("\xd0\xb6", 2, "");
    clean("a\xf0\x9f\x98", 64, "a"); // was cut before
    clean("a\xe2", 64, "a");
    clean("a\xffz\x80z\xed\xa0\x80z", 64, "a?z?z???z");
    clean("a\xe2z", 64, "a?z");
    str_clean_utf8(same, sizeof same, span_of(same)); // in place
    assert_string_equal(same, "a?\xd0\xb6");
    str_clean_utf8(same, sizeof same, (span){"a\0b", 3});
    assert_string_equal(same, "a?b");
    str_clean_utf8(same, sizeof same, SPAN_NONE);
    assert_string_equal(same, "");
}

static void percent_escapes_are_undone_or_refused(void **state)
{
    (void)state;
    struct buf b = {0};
    assert_true(str_percent_decode(SPAN("a%2Fb+c%20"), true, &b));
    assert_true(span_eq(buf_span(&b), SPAN("a/b c ")));
    buf_reset(&b);
    assert_true(str_percent_decode(SPAN("a+b"), false, &b));
    assert_true(span_eq(buf_span(&b), SPAN("a+b")));
    assert_false(str_percent_decode(SPAN("%2"), false, &b));
    assert_false(str_percent_decode(SPAN("%zz"), false, &b));
    buf_free(&b);
}

static void distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(str_distance(SPAN("QUEEN_PUHS"), SPAN("QUEEN_PUSH")), 2);
    assert_int_equal(str_distance(SPAN(""), SPAN("abc")), 3);
    assert_int_equal(str_distance(SPAN("same"), SPAN("same")), 0);
}

static void dates_agree_with_the_c_library(void **state)
{
    (void)state;
    // Every 11 days and a bit, from the year 1 to 9999.
    for (int64_t s = -62135596800; s < 253402300799; s += 86400 * 11 + 4321) {
        char ours[STR_TS_US + 1] = {0}, theirs[80];
        struct tm tm;
        time_t t = (time_t)s;
        gmtime_r(&t, &tm);
        snprintf(theirs, sizeof theirs, "%04d-%02d-%02dT%02d:%02d:%02d.000042Z",
                 (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                 tm.tm_sec);
        str_format_ts_us(s * 1000000 + 42, ours);
        assert_string_equal(ours, theirs);
    }
}

static void dates_round_down_and_stay_in_four_digit_years(void **state)
{
    (void)state;
    char ms[STR_TS_MS + 1] = {0};
    str_format_ts_ms(-1, ms);
    assert_string_equal(ms, "1969-12-31T23:59:59.999Z");
    str_format_ts_ms(1770091506123999, ms);
    assert_string_equal(ms, "2026-02-03T04:05:06.123Z");
    str_format_ts_ms(INT64_MAX, ms);
    assert_memory_equal(ms, "9999-12-31T23:59:59", 19);
    str_format_ts_ms(INT64_MIN, ms);
    assert_memory_equal(ms, "0000-01-01T00:00:00", 19);
}

static void users_of_urls(void **state)
{
    static const char *const cases[][2] = {
        {"http://user:pass@host:1/x", "user:pass"},
        {"https://u@h", "u"},
        {"postgresql://a@b:c@h/d?x=@", "a@b:c"},
        {"http://@h", ""},
        {"http://h/x@y", NULL},
        {"http://h?x@y", NULL},
        {"http://h#@", NULL},
        {"mail@host", NULL},
        {"http://", NULL},
        {"", NULL},
    };

    (void)state;
    for (unsigned i = 0; i < countof(cases); i++) {
        span user = str_url_user(span_of(cases[i][0]));
        if (cases[i][1])
            assert_true(user.ptr && span_eq(user, span_of(cases[i][1])));
        else
            assert_null(user.ptr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_decimal_numbers_are_numbers),
        cmocka_unit_test(a_fraction_is_read_but_not_the_oddities_of_strtod),
        cmocka_unit_test(the_leading_integer_of_a_parameter_is_used),
        cmocka_unit_test(comparing_and_trimming_is_about_ascii),
        cmocka_unit_test(every_part_counts_also_the_empty_ones),
        cmocka_unit_test(results_are_set_on_failure),
        cmocka_unit_test(invalid_utf8_is_recognised),
        cmocka_unit_test(cleaned_text_is_utf8_and_cut_between_characters),
        cmocka_unit_test(percent_escapes_are_undone_or_refused),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(dates_agree_with_the_c_library),
        cmocka_unit_test(dates_round_down_and_stay_in_four_digit_years),
        cmocka_unit_test(users_of_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
