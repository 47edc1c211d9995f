// Requests and answers: conn.c, output.c, reply.c, req.c over a socket pair and a real loop.
#include "conn_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/err.h"

static void an_answer_carries_its_headers(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.site = http_site_new(true, "", "", "")});
    send_text("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}");
    turns(2);
    assert_has("HTTP/1.1 200 OK\r\n");
    assert_has("Content-Type: application/json\r\n");
    assert_has("Access-Control-Allow-Origin: *\r\n");
    assert_has("Access-Control-Allow-Methods: GET, POST, PUT, DELETE, OPTIONS\r\n");
    assert_has("Access-Control-Allow-Headers: Content-Type, Authorization\r\n");
    assert_has("Date: ");
    assert_has(" GMT\r\n");
    assert_answer(200, "{}");
    assert_int_equal(got.len, 0);
    assert_int_equal(n_observed, 1);
    assert_int_equal(counter_get(&http_server_stats(server)->requests), 1);
}

static void parameters_and_queries_are_decoded(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text("GET /ask/a%2Fb+c?filter=1&%61=p+q%21&n=12abc&b=1 HTTP/1.1\r\n" HOST
              "X-TOKEN:  secret \r\n\r\n");
    turns(2);
    assert_has("X-Evil: a  Set-Cookie: b\r\n");
    assert_answer(200, "a/b+c|p q!|12|1|secret");
    send_text(GET("/ask/q?a=&n=&b=") GET("/ask/q?a=%zz&n=x&b=yes") GET("/ask/%zz")
                  GET("/ask/%ff") GET("http://host:1/ask/z?a=1#frag"));
    turns(2);
    assert_answer(200, "q||-7|1|");
    assert_answer(200, "q|%zz|-7|0|");
    assert_answer(400, "{\"error\":\"bad name \\\"x\\\"\"}");
    assert_answer(400, "{\"error\":\"bad name \\\"x\\\"\"}");
    assert_answer(200, "z|1|-7|1|");
}

static void unknown_paths_and_verbs_get_different_answers(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/nope"));
    turns(2);
    assert_answer(404, "{\"error\":\"not found\"}");
    send_text("PATCH /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    turns(2);
    assert_has("Allow: POST, OPTIONS\r\n");
    forget();
    send_text("OPTIONS /nope HTTP/1.1\r\n" HOST "\r\n" GET("/nothing") GET("/fail"));
    turns(2);
    assert_has("Access-Control-Max-Age: 86400\r\n");
    assert_null(strstr(got_text(), "Content-Length: 0"));
    assert_answer(204, "");
    assert_answer(204, "");
    assert_has("Retry-After: 1\r\n");
    assert_answer(503, "{\"error\":\"the database cannot be reached\"}");
}

static void unknown_query_parameters_are_refused(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/nothing?x=1") GET("/nothing?filt%65r=1&") GET("/contract?x=1")
                  GET("/contract?filtre=1"));
    turns(2);
    assert_answer(400,
                  "{\"error\":\"unknown query parameter \\\"x\\\"; known: a, n, b, filter\"}");
    assert_answer(204, "");
    assert_answer(204, "");
    assert_answer(400, "{\"error\":\"unknown query parameter \\\"filtre\\\"; did you mean "
                       "\\\"filter\\\"?\"}");
}

static void a_destructive_call_refuses_an_empty_filter(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text("DELETE /destroy?filter=1 HTTP/1.1\r\n" HOST
              "\r\nDELETE /destroy?filter= HTTP/1.1\r\n" HOST
              "\r\nDELETE /destroy?filter HTTP/1.1\r\n" HOST
              "\r\nDELETE /destroy?other=1 HTTP/1.1\r\n" HOST "\r\n");
    turns(2);
    assert_answer(204, "");
    assert_answer(400, "{\"error\":\"query parameter \\\"filter\\\" is empty\"}");
    assert_answer(400, "{\"error\":\"query parameter \\\"filter\\\" is empty\"}");
    assert_has("unknown query parameter");
}

static void head_is_get_without_the_body(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text("HEAD /big?n=100000 HTTP/1.1\r\n" HOST "\r\n" GET("/nope"));
    turns(2);
    assert_has("Content-Length: 100000\r\n");
    const char *second = strstr(got_text(), "\r\n\r\n") + 4;
    assert_int_equal(strncmp(second, "HTTP/1.1 404", 12), 0);
}

static void a_hundred_pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    struct buf all = {0};
    open_server((struct http_server_conf){0});
    for (int i = 0; i < 100; i++)
        buf_put_lit(&all, GET("/park"));
    send_bytes(buf_span(&all));
    buf_free(&all);
    turns(2);
    assert_int_equal(n_parked, 100);

    for (unsigned i = n_parked; i-- > 1;) { // backwards: nothing may leave yet
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        http_reply_json_span(parked[i], 200, span_of(text));
    }
    turns(2);
    assert_int_equal(got.len, 0);
    http_reply_json_span(parked[0], 200, SPAN("0"));
    n_parked = 0;
    turns(3);
    for (unsigned i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        assert_answer(200, text);
    }
    assert_int_equal(n_gone, 0);
}

static void reading_pauses_at_the_pipelining_limit(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.max_pipelined = 4});
    for (int i = 0; i < 10; i++) {
        send_text(GET("/park"));
        turns(1);
    }
    for (unsigned from = 0, to = 4; from < 10; from = to, to = to + 4 < 10 ? to + 4 : 10) {
        assert_int_equal(n_parked, to); // also when the rest has come in one read
        for (unsigned i = from; i < to; i++)
            http_reply_json_span(parked[i], 200, SPAN("1"));
        turns(3);
    }
    n_parked = 0;
    turns(2);
    for (int i = 0; i < 10; i++)
        assert_answer(200, "1");
}

static void requests_may_be_cut_anywhere(void **state)
{
    (void)state;
    const char *text = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"
                       "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                       "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n" GET("/ask/q?a=1");
    open_server((struct http_server_conf){0});
    for (size_t cut = 1; cut < strlen(text); cut++) {
        send_bytes((span){text, cut});
        turns(1);
        send_text(text + cut);
        turns(2);
        assert_answer(200, "hello");
        assert_answer(200, "abcde");
        assert_answer(200, "q|1|-7|1|");
        assert_int_equal(got.len, 0);
    }
    for (const char *p = text; *p; p++) {
        send_bytes((span){p, 1});
        turns(1);
    }
    turns(2);
    assert_answer(200, "hello");
    assert_answer(200, "abcde");
    assert_answer(200, "q|1|-7|1|");
}

static void large_body(bool chunked)
{
    enum { SIZE = 20 << 20 };
    struct buf text = {0};
    span body;
    char *bytes = malloc(SIZE);

    open_server((struct http_server_conf){0});
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)('a' + i * 7 % 26 + i % 3);
    if (chunked)
        buf_printf(&text,
                   "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%x\r\n",
                   SIZE);
    else
        buf_printf(&text, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", SIZE);
    buf_put_bytes(&text, bytes, SIZE);
    buf_put(&text, chunked ? SPAN("\r\n0\r\n\r\n") : SPAN_NONE);
    buf_put_lit(&text, GET("/nope"));
    send_bytes(buf_span(&text));
    buf_free(&text);
    for (int i = 0; i < 100000 && got.len < SIZE + 700; i++)
        turns(1);
    assert_int_equal(take_answer(&body), 200);
    assert_int_equal(body.len, SIZE);
    assert_memory_equal(body.ptr, bytes, SIZE);
    assert_answer(404, "{\"error\":\"not found\"}");
    free(bytes);
}

static void a_large_body_goes_in_and_out(void **state)
{
    (void)state;
    large_body(false);
}

static void a_large_chunked_body_goes_in_and_out(void **state)
{
    (void)state;
    large_body(true);
}

static void a_slow_reader_stops_being_read(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    for (int i = 0; i < 20; i++) {
        send_text(GET("/big?n=1000000"));
        turn();
        turn();
    }
    assert_in_range(n_observed, 4, 8); // 4 MB of backlog, not 20
    for (int i = 0; i < 5000 && n_observed < 20; i++)
        turns(1);
    turns(300);
    assert_int_equal(n_observed, 20);
    for (int i = 0; i < 20; i++) {
        span body;
        assert_int_equal(take_answer(&body), 200);
        assert_int_equal(body.len, 1000000);
        assert_int_equal(body.ptr[999999], 'x');
    }
    assert_int_equal(got.len, 0);
}

static void close_is_honoured(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text("GET /nothing HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n" GET("/nope"));
    turns(3);
    assert_has("Connection: close\r\n");
    assert_answer(204, "");
    assert_int_equal(got.len, 0); // the second was never read
    assert_true(got_eof);
}

static void http_1_0_is_served(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text("GET /nothing HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    turns(2);
    assert_has("Connection: keep-alive\r\n");
    assert_answer(204, "");
    send_text("GET /nothing HTTP/1.0\r\n\r\n");
    turns(3);
    assert_has("Connection: close\r\n");
    assert_true(got_eof);
}

static void continue_is_sent_when_the_body_waits_for_it(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text("POST /echo HTTP/1.1\r\n" HOST
              "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    turns(2);
    assert_string_equal(got_text(), "HTTP/1.1 100 Continue\r\n\r\n");
    forget();
    send_text("ok");
    turns(2);
    assert_answer(200, "ok");
    send_text("POST /echo HTTP/1.1\r\n" HOST
              "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok");
    turns(2);
    assert_answer(200, "ok"); // it came with the request
}

static void a_malformed_request_is_answered_after_its_elders(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park") "GET / HTTP/1.1\r\n\r\n" GET("/nothing"));
    turns(3);
    assert_int_equal(got.len, 0);
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(3);
    assert_answer(204, "");
    assert_has("Connection: close\r\n");
    assert_answer(400, "{\"error\":\"no Host header\"}");
    assert_int_equal(got.len, 0);
    assert_true(got_eof);
    assert_int_equal(http_server_connections(server), 1); // lingers: we may still be sending
    send_text("more");
    close(client);
    client = -1;
    turn();
    turn();
    assert_int_equal(http_server_connections(server), 0);
}

static void limits_are_answered(void **state)
{
    (void)state;
    char text[2048], fill[1000];
    memset(fill, 'a', sizeof fill);
    open_server((struct http_server_conf){.max_header_bytes = 500, .max_body_bytes = 1000});
    snprintf(text, sizeof text, "GET /%.600s HTTP/1.1\r\n" HOST "\r\n", fill);
    send_text(text);
    turns(3);
    assert_answer(414, "{\"error\":\"the address is too long\"}");
    close(client);
    connect_client();
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nX: %.600s\r\n\r\n", fill);
    send_text(text);
    turns(3);
    assert_answer(431, "{\"error\":\"the header block is too large\"}");
    close(client);
    connect_client();
    send_text("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1001\r\n\r\n");
    turns(3);
    assert_has("Connection: close\r\n");
    assert_answer(413, "{\"error\":\"the body is larger than this server accepts\"}");
    assert_int_equal(counter_get(&http_server_stats(server)->refused), 3);
}

static void bodies_in_flight_are_limited(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.max_inflight_bytes = 100});
    send_text("GET /park HTTP/1.1\r\n" HOST "Content-Length: 90\r\n\r\n");
    char fill[300];
    memset(fill, 'b', sizeof fill);
    send_bytes((span){fill, 90});
    turns(2);
    assert_int_equal(n_parked, 1);
    int first = client;
    connect_client();
    send_text("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 20\r\n\r\n");
    send_bytes((span){fill, 20});
    send_text("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n20\r\n");
    send_bytes((span){fill, 32});
    turns(1);
    send_text("\r\n0\r\n\r\n" GET("/nothing"));
    turns(2);
    assert_has("Retry-After: 1\r\n");
    assert_answer(429, "{\"error\":\"too many requests are pending; try again\"}");
    assert_answer(429, "{\"error\":\"too many requests are pending; try again\"}");
    assert_answer(204, ""); // the connection goes on
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(2);
    send_text("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 200\r\n\r\n"); // alone: may pass
    send_bytes((span){fill, 200});
    turns(2);
    span body;
    assert_int_equal(take_answer(&body), 200);
    close(first);
}

// A name in it may have been cut inside a character, which is no JSON.
static void an_error_is_always_utf8(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/cut"));
    turns(2);
    assert_answer(400, "{\"error\":\"no \\\"a?\\\"\"}");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_answer_carries_its_headers),
        T(an_error_is_always_utf8),
        T(parameters_and_queries_are_decoded),
        T(unknown_paths_and_verbs_get_different_answers),
        T(unknown_query_parameters_are_refused),
        T(a_destructive_call_refuses_an_empty_filter),
        T(head_is_get_without_the_body),
        T(a_hundred_pipelined_requests_are_answered_in_order),
        T(reading_pauses_at_the_pipelining_limit),
        T(requests_may_be_cut_anywhere),
        T(a_large_body_goes_in_and_out),
        T(a_large_chunked_body_goes_in_and_out),
        T(a_slow_reader_stops_being_read),
        T(close_is_honoured),
        T(http_1_0_is_served),
        T(continue_is_sent_when_the_body_waits_for_it),
        T(a_malformed_request_is_answered_after_its_elders),
        T(limits_are_answered),
        T(bodies_in_flight_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
