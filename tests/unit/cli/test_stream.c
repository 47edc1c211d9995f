// stream.c: where values end, whatever the pieces they arrive in.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "cli/stream.h"

// Reads text through a pipe; joins the values with bars.
static int read_all(const char *text, bool lines, char out[256], struct fault *f)
{
    struct stream s;
    span value;
    int fds[2], rc;

    out[0] = '\0';
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], text, strlen(text)), (ssize_t)strlen(text));
    close(fds[1]);
    stream_init(&s, fds[0], "pipe", lines);
    while ((rc = stream_next(&s, &value, f)) == 1) {
        strncat(out, value.ptr, value.len);
        strcat(out, "|");
    }
    if (rc == 0)
        assert_int_equal(stream_offset(&s), strlen(text));
    stream_deinit(&s);
    close(fds[0]);
    return rc;
}

static void values_end_where_they_end(void **state)
{
    static const struct {
        const char *text, *values;
    } cases[] = {
        {"", ""},
        {" \n\t ", ""},
        {"1", "1|"},
        {"1 22\n333", "1|22|333|"},
        {"{\"a\":1}{\"b\":2}", "{\"a\":1}|{\"b\":2}|"},
        {"\"a b\"\"c\"", "\"a b\"|\"c\"|"},
        {"\"}\\\"{\" [\"]\\\\\"]", "\"}\\\"{\"|[\"]\\\\\"]|"},
        {"true{} null[]", "true|{}|null|[]|"},
        {"{\n  \"a\": [1, {\"b\": []}]\n}\n", "{\n  \"a\": [1, {\"b\": []}]\n}|"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[256];
        struct fault f;
        assert_int_equal(read_all(cases[i].text, false, out, &f), 0);
        assert_string_equal(out, cases[i].values);
    }
}

static void a_mistake_is_reported_with_its_position(void **state)
{
    static const struct {
        const char *text, *before, *place;
    } cases[] = {
        {"{\"a\":}", "", "byte 5"},
        {"1 2 nonsense", "1|2|", "byte 4"},
        {"{\"a\": [1", "", "pipe is not JSON"},
        {"1 ]", "1|", "byte 2"},
        {"\"open", "", "pipe is not JSON"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[256];
        struct fault f = {0};
        assert_true(read_all(cases[i].text, false, out, &f) < 0);
        assert_string_equal(out, cases[i].before);
        assert_non_null(strstr(f.text, cases[i].place));
    }
}

static void lines_are_text_as_they_are(void **state)
{
    char out[256];
    struct fault f;
    (void)state;

    assert_int_equal(read_all("one\n\n{ two\r\nthree", true, out, &f), 0);
    assert_string_equal(out, "one||{ two|three|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_end_where_they_end),
        cmocka_unit_test(a_mistake_is_reported_with_its_position),
        cmocka_unit_test(lines_are_text_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
