// conn.c, output.c, reply.c, req.c over a socket pair and a real loop.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/err.h"
#include "http/req.h"
#include "http/server.h"

// ---- handlers ----

static struct http_req *parked[512];
static unsigned n_parked, n_gone, n_observed;
static int observed_status;

static void echo(struct http_req *req) { http_reply_json_span(req, 200, http_req_body(req)); }

static void on_gone(struct http_req *req, void *ctx)
{
    assert_true(http_req_is_gone(req));
    assert_ptr_equal(ctx, &n_gone);
    n_gone++;
}

static void park(struct http_req *req)
{
    http_req_on_gone(req, on_gone, &n_gone);
    parked[n_parked++] = req;
}

static void on_gone_answer(struct http_req *req, void *ctx)
{
    on_gone(req, ctx);
    http_reply_empty(req, 204);
}

static void park_lightly(struct http_req *req)
{
    http_req_on_gone(req, on_gone_answer, &n_gone);
}

static void park_without_hook(struct http_req *req) { parked[n_parked++] = req; }

static void big(struct http_req *req)
{
    struct buf body = {0};
    int64_t n = http_req_query_int(req, SPAN("n"), 0);

    assert_true(buf_reserve(&body, (size_t)n));
    memset(body.ptr, 'x', (size_t)n);
    body.len = (size_t)n;
    http_reply_text(req, 200, SPAN("text/plain"), &body);
}

static void ask(struct http_req *req)
{
    struct buf out = {0};
    span param;

    if (!http_req_param(req, 0, &param)) {
        http_reply_errf(req, QE_BAD_PARAM, "bad name \"%s\"", "x");
        return;
    }
    buf_printf(&out, "%.*s|%.*s|%lld|%d|%.*s", SPAN_ARG(param),
               SPAN_ARG(http_req_query(req, SPAN("a"))),
               (long long)http_req_query_int(req, SPAN("n"), -7),
               http_req_query_bool(req, SPAN("b"), true),
               SPAN_ARG(http_req_header(req, SPAN("x-token"))));
    http_reply_header(req, SPAN("X-Evil"), SPAN("a\r\nSet-Cookie: b"));
    http_reply_json(req, 200, &out);
}

static void be_away(struct http_req *req) { http_reply_err(req, QE_PG_AWAY); }
static void nothing(struct http_req *req) { http_reply_empty(req, 204); }

#define ROUTE(fn, v, p) \
    static const struct http_route r_##fn = {.verb = v, .path = p, .handle = fn}
ROUTE(echo, HTTP_POST, "/echo");
ROUTE(park, HTTP_GET, "/park");
ROUTE(park_without_hook, HTTP_GET, "/park-without-hook");
ROUTE(park_lightly, HTTP_GET, "/park-lightly");
ROUTE(big, HTTP_GET, "/big");
ROUTE(ask, HTTP_GET, "/ask/:name");
ROUTE(be_away, HTTP_GET, "/fail");
ROUTE(nothing, HTTP_GET, "/nothing");
static const struct http_route *const table[] = {
    &r_echo,    &r_park, &r_park_without_hook, &r_park_lightly, &r_big, &r_ask, &r_be_away,
    &r_nothing, NULL};

// ---- a server and one client ----

static uv_loop_t loop;
static struct http_routes *routes;
static struct http_server *server;
static int client = -1;
static bool was_closed;
static struct buf got; // everything the client has read
static bool got_eof;

static void observe(void *app, const struct http_route *route, int status, uint64_t us)
{
    (void)app, (void)route, (void)us;
    n_observed++;
    observed_status = status;
}

static void connect_client(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    client = pair[0];
    http_server_adopt(server, pair[1]);
}

static void open_server(struct http_server_conf conf)
{
    conf.routes = routes;
    conf.observe = observe;
    if (!conf.max_header_bytes)
        conf.max_header_bytes = 16384;
    if (!conf.max_body_bytes)
        conf.max_body_bytes = 64 << 20;
    if (!conf.max_pipelined)
        conf.max_pipelined = 128;
    server = http_server_open(&loop, conf);
    connect_client();
}

static int setup(void **state)
{
    (void)state;
    n_parked = n_gone = n_observed = 0;
    was_closed = got_eof = false;
    got = (struct buf){0};
    routes = http_routes_new(table);
    return uv_loop_init(&loop);
}

static void on_closed(void *ctx)
{
    (void)ctx;
    was_closed = true;
}

static int teardown(void **state)
{
    (void)state;
    http_server_close(server, on_closed, NULL);
    while (n_parked > 0)
        http_reply_empty(parked[--n_parked], 204);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(was_closed);
    if (client >= 0)
        close(client);
    buf_free(&got);
    http_routes_free(routes);
    return uv_loop_close(&loop);
}

static void turn(void) { uv_run(&loop, UV_RUN_NOWAIT); }

static void read_answers(void)
{
    for (;;) {
        assert_true(buf_reserve(&got, 65536));
        ssize_t n = recv(client, got.ptr + got.len, 65536, 0);
        if (n <= 0) {
            got_eof = got_eof || n == 0 || errno == ECONNRESET;
            return;
        }
        got.len += (size_t)n;
    }
}

static void turns(unsigned n)
{
    while (n-- > 0) {
        turn();
        read_answers();
    }
}

static void send_bytes(span text)
{
    while (text.len > 0) {
        ssize_t n = send(client, text.ptr, text.len, MSG_NOSIGNAL);
        if (n < 0) {
            assert_true(errno == EAGAIN);
            turns(1);
            continue;
        }
        text.ptr += n;
        text.len -= (size_t)n;
    }
}

static void send_text(const char *text) { send_bytes(span_of(text)); }

static const char *got_text(void)
{
    assert_true(buf_reserve(&got, 1));
    got.ptr[got.len] = '\0';
    return got.ptr;
}

static void forget(void) { buf_reset(&got); }

// Splits off the first answer; its body points into got.
static int take_answer(span *body)
{
    const char *text = got_text();
    const char *end = strstr(text, "\r\n\r\n");
    assert_non_null(end);
    const char *length = strstr(text, "Content-Length: ");
    size_t n = length && length < end ? strtoul(length + 16, NULL, 10) : 0;
    int status = atoi(text + 9);
    end += 4;
    assert_true(got.len >= (size_t)(end - text) + n);
    static struct buf keep;
    buf_reset(&keep);
    buf_put_bytes(&keep, end, n);
    *body = buf_span(&keep);
    size_t used = (size_t)(end - text) + n;
    memmove(got.ptr, got.ptr + used, got.len - used);
    got.len -= used;
    if (n == 0)
        buf_free(&keep);
    return status;
}

static void assert_answer(int status, const char *body)
{
    span text;
    assert_int_equal(take_answer(&text), status);
    if (!span_eq(text, span_of(body)))
        fail_msg("body is %.*s, not %s", SPAN_ARG(text), body);
}

static void assert_has(const char *text)
{
    if (!strstr(got_text(), text))
        fail_msg("no %s in %s", text, got_text());
}

#define HOST      "Host: h\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

// From one thing that happens to the next; the server's sweep always comes.
static void let_pass(unsigned ms)
{
    uint64_t until = uv_hrtime() + ms * 1000000ULL;
    while (uv_hrtime() < until) {
        uv_run(&loop, UV_RUN_ONCE);
        read_answers();
    }
}

static void wait_until_closed(unsigned ms)
{
    uint64_t until = uv_hrtime() + ms * 1000000ULL;
    while (!got_eof && uv_hrtime() < until) {
        uv_run(&loop, UV_RUN_ONCE);
        read_answers();
    }
    assert_true(got_eof);
}

// ---- tests ----

static void an_answer_carries_its_headers(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
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
    send_text("GET /ask/a%2Fb+c?x=1&%61=p+q%21&a=2&n=12abc&b=1 HTTP/1.1\r\n" HOST
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

static void unknown_paths_and_verbs_are_told_apart(void **state)
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
    assert_int_equal(n_parked, 4);
    for (int i = 0; i < 4; i++)
        http_reply_json_span(parked[i], 200, SPAN("1"));
    turns(3);
    assert_int_equal(n_parked, 10); // what had waited in the socket came in one read
    for (int i = 4; i < 10; i++)
        http_reply_json_span(parked[i], 200, SPAN("1"));
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

static void a_client_that_hangs_up_is_told_once(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park") GET("/park-lightly"));
    turns(2);
    close(client);
    client = -1;
    turn();
    turn();
    assert_int_equal(n_gone, 2);
    assert_int_equal(http_server_connections(server), 0);
    assert_true(http_req_is_gone(parked[0]));
    http_reply_json_span(parked[0], 200, SPAN("too late"));
    n_parked = 0;
    turn();
    assert_int_equal(n_gone, 2);
    assert_int_equal(n_observed, 0);
}

static void hanging_up_is_noticed_while_reading_is_paused(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.max_pipelined = 1});
    send_text(GET("/park"));
    turns(2);
    close(client);
    client = -1;
    turn();
    turn();
    assert_int_equal(n_gone, 1);
}

static void a_hook_set_after_the_peer_has_gone_still_runs(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park"));
    turns(2);
    close(client);
    client = -1;
    turn();
    assert_int_equal(n_gone, 1);
    http_req_on_gone(parked[0], on_gone, &n_gone);
    assert_int_equal(n_gone, 1); // not from inside
    turn();
    assert_int_equal(n_gone, 2);
    http_req_on_gone(parked[0], on_gone, &n_gone);
    http_reply_empty(parked[0], 204); // answered before its turn came
    n_parked = 0;
    turn();
    assert_int_equal(n_gone, 2);
}

static void no_hook_after_the_answer(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park"));
    turns(2);
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    close(client);
    client = -1;
    turn();
    turn();
    assert_int_equal(n_gone, 0);
}

static void answers_ready_at_the_end_of_input_still_leave(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/nothing") "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    shutdown(client, SHUT_WR);
    turns(4);
    assert_answer(204, "");
    assert_answer(200, "x");
    assert_true(got_eof);
}

static void a_request_under_way_is_answered_after_the_end_of_input(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park-without-hook") GET("/nothing"));
    shutdown(client, SHUT_WR);
    turns(4);
    assert_int_equal(n_parked, 1);
    http_reply_json_span(parked[0], 200, SPAN("{}"));
    n_parked = 0;
    turns(3);
    assert_answer(200, "{}");
    assert_answer(204, "");
    assert_true(got_eof);
    assert_int_equal(http_server_connections(server), 0);
}

static void a_hook_set_after_the_end_of_input_runs(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park-without-hook"));
    shutdown(client, SHUT_WR);
    turns(4);
    assert_int_equal(n_parked, 1);
    http_req_on_gone(parked[0], on_gone, &n_gone);
    assert_int_equal(n_gone, 0); // not from inside
    turns(2);
    assert_int_equal(n_gone, 1);
    assert_true(http_req_is_gone(parked[0]));
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(2);
    assert_int_equal(http_server_connections(server), 0);
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
    assert_answer(200, "ok"); // it came along: no need to ask
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

static void half_a_request_times_out(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.header_timeout_ms = 30, .idle_timeout_ms = 10000});
    send_text("POST /echo HTTP/1.1\r\nHos");
    wait_until_closed(2000);
    assert_has("Connection: close\r\n");
    assert_answer(408, "{\"error\":\"the request did not arrive in time\"}");
}

static void half_a_body_times_out_but_progress_does_not(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.header_timeout_ms = 100, .idle_timeout_ms = 10000});
    send_text("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n");
    for (int i = 0; i < 9; i++) {
        let_pass(30);
        send_text("x");
        turns(2);
    }
    assert_int_equal(got.len, 0);
    assert_false(got_eof);
    wait_until_closed(2000);
    assert_answer(408, "{\"error\":\"the request did not arrive in time\"}");
}

static void an_idle_connection_times_out_but_not_a_parked_one(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.header_timeout_ms = 20, .idle_timeout_ms = 40});
    send_text(GET("/park"));
    turns(2);
    let_pass(200);
    assert_false(got_eof);
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(2);
    assert_answer(204, "");
    assert_false(got_eof);
    wait_until_closed(2000);
    assert_int_equal(got.len, 0);
}

static void a_peer_that_never_reads_times_out(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.idle_timeout_ms = 40});
    send_text(GET("/big?n=8000000"));
    uint64_t until = uv_hrtime() + 2000000000ULL;
    while (http_server_connections(server) > 0 && uv_hrtime() < until)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(http_server_connections(server), 0);
}

static void draining_closes_idle_ones_and_busy_ones_after_their_answer(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    int idle = client;
    char byte;
    turns(1);
    connect_client();
    send_text(GET("/park"));
    turns(2);
    http_server_drain(server);
    turns(1);
    assert_int_equal(recv(idle, &byte, 1, 0), 0);
    close(idle);
    assert_false(got_eof);
    http_reply_json_span(parked[0], 200, SPAN("1"));
    n_parked = 0;
    turns(3);
    assert_has("Connection: close\r\n");
    assert_answer(200, "1");
    assert_true(got_eof);
}

static void answer_first(uv_timer_t *timer)
{
    (void)timer;
    http_reply_json_span(parked[--n_parked], 200, SPAN("timer"));
}

static void an_answer_from_a_timer_leaves_before_the_loop_sleeps(void **state)
{
    (void)state;
    static uv_timer_t timer; // closed by the teardown
    open_server((struct http_server_conf){0});
    send_text(GET("/park"));
    turns(2);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, answer_first, 1, 0);
    uv_run(&loop, UV_RUN_ONCE); // sleeps until the timer; the answer is made at the turn's end
    uv_run(&loop, UV_RUN_ONCE); // would sleep for ever
    read_answers();
    assert_answer(200, "timer");
    uv_close((uv_handle_t *)&timer, NULL);
}

static void a_socket_that_comes_too_late_is_closed(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    int first = client;
    http_server_close(server, on_closed, NULL);
    connect_client();
    turns(3);
    assert_true(got_eof);
    assert_true(was_closed);
    close(first);
    close(client);
    was_closed = got_eof = false;
    open_server((struct http_server_conf){0}); // for teardown
}

static void closing_waits_for_requests_in_the_hands_of_handlers(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park") GET("/park-lightly"));
    turns(2);
    http_server_close(server, on_closed, NULL);
    assert_int_equal(n_gone, 2);
    turns(3);
    assert_false(was_closed);
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(3);
    assert_true(was_closed);
    close(client);
    was_closed = false;
    open_server((struct http_server_conf){0}); // for teardown
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_answer_carries_its_headers),
        T(parameters_and_queries_are_decoded),
        T(unknown_paths_and_verbs_are_told_apart),
        T(head_is_get_without_the_body),
        T(a_hundred_pipelined_requests_are_answered_in_order),
        T(reading_pauses_at_the_pipelining_limit),
        T(requests_may_be_cut_anywhere),
        T(a_large_body_goes_in_and_out),
        T(a_large_chunked_body_goes_in_and_out),
        T(a_slow_reader_stops_being_read),
        T(a_client_that_hangs_up_is_told_once),
        T(hanging_up_is_noticed_while_reading_is_paused),
        T(a_hook_set_after_the_peer_has_gone_still_runs),
        T(no_hook_after_the_answer),
        T(answers_ready_at_the_end_of_input_still_leave),
        T(a_request_under_way_is_answered_after_the_end_of_input),
        T(a_hook_set_after_the_end_of_input_runs),
        T(close_is_honoured),
        T(http_1_0_is_served),
        T(continue_is_sent_when_the_body_waits_for_it),
        T(a_malformed_request_is_answered_after_its_elders),
        T(limits_are_answered),
        T(bodies_in_flight_are_limited),
        T(half_a_request_times_out),
        T(half_a_body_times_out_but_progress_does_not),
        T(an_idle_connection_times_out_but_not_a_parked_one),
        T(a_peer_that_never_reads_times_out),
        T(draining_closes_idle_ones_and_busy_ones_after_their_answer),
        T(an_answer_from_a_timer_leaves_before_the_loop_sleeps),
        T(a_socket_that_comes_too_late_is_closed),
        T(closing_waits_for_requests_in_the_hands_of_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
