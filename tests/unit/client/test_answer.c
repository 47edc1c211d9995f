// Tests of answers: whole, in single bytes, chunked, packed, endless and broken ones.
#include "answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "http/gzip.h"

enum { MAX = 1000 };

static const char plain[] = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                            "X-Long:  a b \r\nContent-Length: 5\r\n\r\n[1,2]";

static void expect_plain(struct answer *a)
{
    struct queen_response *r = answer_take(a);

    assert_non_null(r);
    assert_int_equal(r->status, 201);
    assert_int_equal(r->body_len, 5);
    assert_string_equal(r->body, "[1,2]");
    assert_int_equal(r->n_headers, 3);
    assert_string_equal(queen_response_header(r, "content-type"), "application/json");
    assert_non_null(strstr(queen_response_header(r, "x-long"), "a b"));
    assert_null(queen_response_header(r, "nothing"));
    assert_true(answer_keeps_alive(a));
    queen_response_free(r);
}

static void one_connection_gives_one_answer_after_the_other(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    for (int i = 0; i < 3; i++) {
        answer_start(a, false);
        assert_false(answer_has_begun(a));
        assert_int_equal(answer_feed(a, plain, sizeof plain - 1), ANSWER_DONE);
        expect_plain(a);
    }
    answer_free(a);
}

static void bytes_may_come_one_by_one(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, false);
    for (size_t i = 0; i + 2 < sizeof plain; i++)
        assert_int_equal(answer_feed(a, plain + i, 1), ANSWER_MORE);
    assert_int_equal(answer_feed(a, plain + sizeof plain - 2, 1), ANSWER_DONE);
    expect_plain(a);
    answer_free(a);
}

static enum answer_state feed(struct answer *a, const char *text)
{
    return answer_feed(a, text, strlen(text));
}

static void chunks_are_joined_and_an_interim_answer_is_skipped(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, false);
    assert_int_equal(feed(a, "HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"), ANSWER_MORE);
    assert_int_equal(feed(a, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"),
                     ANSWER_DONE);
    struct queen_response *r = answer_take(a);
    assert_string_equal(r->body, "abcde");
    assert_int_equal(r->n_headers, 1);
    queen_response_free(r);
    answer_free(a);
}

// Trailers come after the body.  Nothing here needs them, and they must not be mixed up with
// the headers.
static void trailers_leave_the_headers_alone(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, false);
    assert_int_equal(feed(a,
                          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Last: 1\r\n\r\n"
                          "2;ext=1\r\nab\r\n0\r\nX-Sum: abc\r\nX-Last: 2\r\n\r\n"),
                     ANSWER_DONE);
    assert_true(answer_keeps_alive(a));
    struct queen_response *r = answer_take(a);
    assert_string_equal(r->body, "ab");
    assert_int_equal(r->n_headers, 2);
    assert_string_equal(r->headers[0].name, "transfer-encoding");
    assert_string_equal(r->headers[0].value, "chunked");
    assert_string_equal(r->headers[1].name, "x-last");
    assert_string_equal(r->headers[1].value, "1");
    queen_response_free(r);
    answer_free(a);
}

static void headers_and_trailers_have_a_limit(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);
    struct buf many = {0};

    for (unsigned i = 0; i < 20000; i++)
        buf_printf(&many, "X-%u: 0123456789\r\n", i);
    answer_start(a, false);
    assert_int_equal(feed(a, "HTTP/1.1 200 OK\r\n"), ANSWER_MORE);
    assert_int_equal(answer_feed(a, many.ptr, many.len), ANSWER_BAD);
    answer_start(a, false);
    assert_int_equal(feed(a, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"),
                     ANSWER_MORE);
    assert_int_equal(answer_feed(a, many.ptr, many.len), ANSWER_BAD);
    buf_free(&many);
    answer_free(a);
}

static void a_header_may_be_empty(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, false);
    assert_int_equal(feed(a, "HTTP/1.1 200 OK\r\nX-A:\r\nX-B: \r\nX-C: c\r\n"
                             "Content-Length: 0\r\n\r\n"),
                     ANSWER_DONE);
    struct queen_response *r = answer_take(a);
    assert_int_equal(r->n_headers, 4);
    assert_string_equal(queen_response_header(r, "x-a"), "");
    assert_string_equal(queen_response_header(r, "x-b"), "");
    assert_string_equal(queen_response_header(r, "x-c"), "c");
    queen_response_free(r);
    answer_free(a);
}

// Bytes behind an answer would be taken for the start of the next one.
static void a_connection_with_bytes_behind_the_answer_is_not_kept(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, false);
    assert_int_equal(
        feed(a, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n"),
        ANSWER_DONE);
    assert_false(answer_keeps_alive(a));
    struct queen_response *r = answer_take(a);
    assert_string_equal(r->body, "x");
    queen_response_free(r);
    answer_free(a);
}

static void an_answer_without_length_ends_with_the_connection(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, false);
    assert_int_equal(feed(a, "HTTP/1.0 200 OK\r\n\r\nhello"), ANSWER_MORE);
    assert_int_equal(answer_end(a), ANSWER_DONE);
    assert_false(answer_keeps_alive(a));
    struct queen_response *r = answer_take(a);
    assert_string_equal(r->body, "hello");
    queen_response_free(r);
    answer_free(a);
}

static void an_answer_that_is_cut_off_is_bad(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, false);
    assert_int_equal(feed(a, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), ANSWER_MORE);
    assert_true(answer_has_begun(a));
    assert_int_equal(answer_end(a), ANSWER_BAD);
    answer_start(a, false);
    assert_int_equal(feed(a, "SSH-2.0-OpenSSH\r\n"), ANSWER_BAD);
    answer_free(a);
}

static void no_body_may_be_larger_than_allowed(void **state)
{
    (void)state;
    struct answer *a = answer_new(4);

    answer_start(a, false);
    assert_int_equal(feed(a, plain), ANSWER_TOO_LARGE);
    answer_free(a);
}

static void the_answer_to_head_has_no_body(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);

    answer_start(a, true);
    assert_int_equal(feed(a, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), ANSWER_DONE);
    answer_free(a);
}

static struct queen_response *unpack(struct answer *a, span packed)
{
    struct buf all = {0};

    buf_printf(&all, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
               packed.len);
    buf_put(&all, packed);
    answer_start(a, false);
    assert_int_equal(answer_feed(a, all.ptr, all.len), ANSWER_DONE);
    buf_free(&all);
    return answer_take(a);
}

static void gzip_is_unpacked_within_the_limit(void **state)
{
    (void)state;
    struct answer *a = answer_new(MAX);
    struct buf packed = {0}, text = {0};

    for (int i = 0; i < MAX; i++)
        buf_putc(&text, 'x');
    assert_int_equal(gzip_pack(buf_span(&text), &packed), 0);
    struct queen_response *r = unpack(a, buf_span(&packed));
    assert_non_null(r);
    assert_int_equal(r->body_len, MAX);
    assert_int_equal(strlen(r->body), MAX);
    queen_response_free(r);

    buf_putc(&text, 'x');
    buf_reset(&packed);
    assert_int_equal(gzip_pack(buf_span(&text), &packed), 0);
    assert_null(unpack(a, buf_span(&packed)));
    assert_null(unpack(a, SPAN("this is not gzip")));
    buf_free(&packed);
    buf_free(&text);
    answer_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_connection_gives_one_answer_after_the_other),
        cmocka_unit_test(bytes_may_come_one_by_one),
        cmocka_unit_test(chunks_are_joined_and_an_interim_answer_is_skipped),
        cmocka_unit_test(trailers_leave_the_headers_alone),
        cmocka_unit_test(headers_and_trailers_have_a_limit),
        cmocka_unit_test(a_header_may_be_empty),
        cmocka_unit_test(a_connection_with_bytes_behind_the_answer_is_not_kept),
        cmocka_unit_test(an_answer_without_length_ends_with_the_connection),
        cmocka_unit_test(an_answer_that_is_cut_off_is_bad),
        cmocka_unit_test(no_body_may_be_larger_than_allowed),
        cmocka_unit_test(the_answer_to_head_has_no_body),
        cmocka_unit_test(gzip_is_unpacked_within_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
