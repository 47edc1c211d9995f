// parser.c: valid and invalid requests, with the bytes cut anywhere.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/attrs.h"
#include "http/parser.h"

enum { MAX_HEAD = 512 };

static struct http_parser *parser;
static struct http_msg msg;

static void forget(void)
{
    buf_free(&msg.head);
    buf_free(&msg.body);
    msg = (struct http_msg){.head = {.max = 4 * MAX_HEAD + 1024}}; // as server.c does
}

static int setup(void **state)
{
    (void)state;
    parser =
        http_parser_new((struct http_parser_limits){.max_head = MAX_HEAD, .max_body = 1000});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    forget();
    http_parser_free(parser);
    return 0;
}

// Feeds text in pieces of step bytes, each in memory of its own; the last event.
static enum http_feed parse_in(span text, size_t step, size_t *rest)
{
    enum http_feed got = HTTP_FEED_MORE;
    size_t at = 0;

    forget();
    http_parser_start(parser, &msg);
    while (got == HTTP_FEED_MORE && at < text.len) {
        size_t len = text.len - at < step ? text.len - at : step, used;
        char *piece = test_malloc(len);
        memcpy(piece, text.ptr + at, len);
        got = http_parser_feed(parser, piece, len, &used);
        at += used;
        size_t here = used;
        while (got == HTTP_FEED_HEAD || (got == HTTP_FEED_MORE && here < len)) {
            got = http_parser_feed(parser, piece + here, len - here, &used);
            at += used;
            here += used;
        }
        test_free(piece);
    }
    *rest = text.len - at;
    return got;
}

static enum http_feed parse(const char *text)
{
    size_t rest;
    enum http_feed got = parse_in(span_of(text), strlen(text), &rest);

    for (size_t step = 1; step < 9; step++)
        assert_int_equal(parse_in(span_of(text), step, &rest), got);
    return got;
}

static void assert_refused(const char *text, int status)
{
    if (parse(text) != HTTP_FEED_BAD)
        fail_msg("accepted: %s", text);
    assert_int_equal(msg.bad_status, status);
    assert_non_null(msg.bad_text);
}

static span header(const char *name)
{
    span key, value;
    for (size_t at = 0; http_msg_next_header(&msg, &at, &key, &value);)
        if (span_eq(key, span_of(name)))
            return value;
    return SPAN_NONE;
}

#define HOST "Host: h\r\n"

static void a_request_is_read_at_every_cut(void **state)
{
    (void)state;
    const char *text = "POST /a?b=c HTTP/1.1\r\n" HOST "X-Empty:\r\nX-Two: a b \r\n"
                       "Content-Length: 5\r\n\r\nhello";
    size_t rest;

    for (size_t step = 1; step <= strlen(text); step++) {
        assert_int_equal(parse_in(span_of(text), step, &rest), HTTP_FEED_DONE);
        assert_int_equal(rest, 0);
        assert_true(span_eq(http_msg_target(&msg), SPAN("/a?b=c")));
        assert_true(span_eq(buf_span(&msg.body), SPAN("hello")));
        assert_true(span_eq(header("Host"), SPAN("h")));
        assert_true(span_eq(header("X-Two"), SPAN("a b")));
        assert_int_equal(header("X-Empty").len, 0);
        assert_int_equal(msg.verb, MSG_POST);
        assert_true(msg.keep_alive);
    }
}

static void chunks_are_joined_and_trailers_forgotten(void **state)
{
    (void)state;
    assert_int_equal(parse("PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"
                           "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nX-T: v\r\n\r\n"),
                     HTTP_FEED_DONE);
    assert_true(msg.chunked);
    assert_true(span_eq(buf_span(&msg.body), SPAN("abcdefg")));
    assert_null(header("X-T").ptr);
}

static void bytes_behind_a_request_are_left_alone(void **state)
{
    (void)state;
    size_t rest;
    const char *two = "GET /1 HTTP/1.1\r\n" HOST "\r\nGET /2 HTTP/1.1\r\n" HOST "\r\n";
    assert_int_equal(parse_in(span_of(two), strlen(two), &rest), HTTP_FEED_DONE);
    assert_int_equal(rest, strlen(two) / 2);
}

static void persistence_follows_version_and_header(void **state)
{
    (void)state;
    assert_int_equal(parse("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"),
                     HTTP_FEED_DONE);
    assert_false(msg.keep_alive);
    assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n"), HTTP_FEED_DONE);
    assert_false(msg.keep_alive);
    assert_true(msg.http10);
    assert_int_equal(parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), HTTP_FEED_DONE);
    assert_true(msg.keep_alive);
}

static void an_offer_to_upgrade_is_ignored(void **state)
{
    (void)state;
    assert_int_equal(parse("GET / HTTP/1.1\r\n" HOST "Connection: Upgrade, HTTP2-Settings\r\n"
                           "Upgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"),
                     HTTP_FEED_DONE);
}

static void folded_lines_are_refused(void **state)
{
    (void)state;
    assert_refused("GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n" HOST "X:\r\n\tb\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n" HOST "X: a\r\n \r\n\r\n", 400);
    assert_refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
                   400);
    // A body may look like one.
    assert_int_equal(parse("POST / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n\r\n x"),
                     HTTP_FEED_DONE);
}

static void smuggling_is_refused(void **state)
{
    (void)state;
#define POST "POST / HTTP/1.1\r\n" HOST
    assert_refused("GET / HTTP/1.1\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n" HOST "host: b\r\n\r\n", 400);
    assert_refused(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   400);
    assert_refused(POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
                   400);
    assert_refused(POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400);
    assert_refused(POST "Content-Length: +3\r\n\r\nabc", 400);
    assert_refused(POST "Content-Length: 3,3\r\n\r\nabc", 400);
    assert_refused(POST "Content-Length: 99999999999999999999\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: chunked\r\n\r\n1x\r\na\r\n0\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\nHost: h\n\n", 400);
    assert_refused("GET / HTTP/1.1\r\n" HOST "X: a\rY: b\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n" HOST "X: a\001b\r\n\r\n", 400);
    assert_refused("get / HTTP/1.1\r\n" HOST "\r\n", 400);
    assert_refused("CONNECT h:1 HTTP/1.1\r\n" HOST "\r\n", 405);
    assert_refused("\x16\x03\x01\x02\x00\x01", 400);
}

static void lines_that_proxies_read_differently_are_refused(void **state)
{
    (void)state;
    assert_refused("GET  / HTTP/1.1\r\n" HOST "\r\n", 400);
    assert_refused("GET /  HTTP/1.1\r\n" HOST "\r\n", 400);
    assert_refused("GET   /a   HTTP/1.1\r\n" HOST "\r\n", 400);
    assert_refused("GET / HTTP/1.1 \r\n" HOST "\r\n", 505);
    assert_refused("GET\t/ HTTP/1.1\r\n" HOST "\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n: a\r\n" HOST "\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n" HOST " : a\r\n\r\n", 400);
    assert_int_equal(parse("GET / HTTP/1.1\r\n" HOST "X: a  b\r\n\r\n"), HTTP_FEED_DONE);
}

static void other_versions_are_refused(void **state)
{
    (void)state;
    assert_refused("GET / HTTP/2.0\r\n" HOST "\r\n", 505);
    assert_refused("GET / HTTP/1.7\r\n" HOST "\r\n", 505);
    assert_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
}

static void each_limit_has_its_own_error(void **state)
{
    (void)state;
    char text[4096], fill[1100];
    memset(fill, 'a', sizeof fill);

    snprintf(text, sizeof text, "GET /%.600s HTTP/1.1\r\n" HOST "\r\n", fill);
    assert_refused(text, 414);
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "X: %.600s\r\n\r\n", fill);
    assert_refused(text, 431);
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n%.1001s", fill);
    assert_refused(text, 413);
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n%.1000s", fill);
    assert_int_equal(parse(text), HTTP_FEED_DONE);
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\n" HOST
             "Transfer-Encoding: chunked\r\n\r\n3e8\r\n%.1000s\r\n1\r\n",
             fill);
    assert_int_equal(parse(text), HTTP_FEED_MORE);
    strcat(text, "a");
    assert_refused(text, 413);
    snprintf(text, sizeof text,
             "POST / HTTP/1.1\r\n" HOST
             "Transfer-Encoding: chunked\r\n\r\n0\r\nT: %.600s\r\n\r\n",
             fill);
    assert_refused(text, 431);
}

// One read may bring more than the buffer of the head could ever hold.
static void a_header_beyond_the_buffer_is_too_large_not_lack_of_memory(void **state)
{
    (void)state;
    char text[20000], fill[16000];
    size_t rest;
    memset(fill, 'a', sizeof fill);

    for (int in_name = 0; in_name < 2; in_name++) {
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "%s%.16000s%s\r\n\r\n",
                 in_name ? "" : "X: ", fill, in_name ? ": x" : "");
        assert_int_equal(parse_in(span_of(text), strlen(text), &rest), HTTP_FEED_BAD);
        assert_int_equal(msg.bad_status, 431);
    }
}

static void a_dropped_body_is_read_to_its_end(void **state)
{
    (void)state;
    const char *text = "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET";
    size_t used;

    http_parser_start(parser, &msg);
    assert_int_equal(http_parser_feed(parser, text, strlen(text), &used), HTTP_FEED_HEAD);
    msg.drop_body = true;
    text += used;
    assert_int_equal(http_parser_feed(parser, text, strlen(text), &used), HTTP_FEED_DONE);
    assert_int_equal(used, 5);
    assert_int_equal(msg.body.len, 0);
}

static void bytes_read_in_place_are_not_copied(void **state)
{
    (void)state;
    const char *text = "POST / HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nabc";
    size_t used;

    http_parser_start(parser, &msg);
    assert_int_equal(http_parser_feed(parser, text, strlen(text), &used), HTTP_FEED_HEAD);
    assert_true(buf_reserve(&msg.body, 6));
    text += used;
    assert_int_equal(http_parser_feed(parser, text, strlen(text), &used), HTTP_FEED_MORE);
    const char *place = msg.body.ptr;
    memcpy(msg.body.ptr + 3, "def", 3);
    assert_int_equal(http_parser_feed(parser, msg.body.ptr + 3, 3, &used), HTTP_FEED_DONE);
    assert_ptr_equal(msg.body.ptr, place);
    assert_true(span_eq(buf_span(&msg.body), SPAN("abcdef")));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_request_is_read_at_every_cut),
        T(chunks_are_joined_and_trailers_forgotten),
        T(bytes_behind_a_request_are_left_alone),
        T(persistence_follows_version_and_header),
        T(an_offer_to_upgrade_is_ignored),
        T(folded_lines_are_refused),
        T(smuggling_is_refused),
        T(lines_that_proxies_read_differently_are_refused),
        T(other_versions_are_refused),
        T(each_limit_has_its_own_error),
        T(a_header_beyond_the_buffer_is_too_large_not_lack_of_memory),
        T(a_dropped_body_is_read_to_its_end),
        T(bytes_read_in_place_are_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
