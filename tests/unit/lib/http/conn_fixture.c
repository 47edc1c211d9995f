// conn_fixture.c: see conn_fixture.h.
#include "conn_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/err.h"

// ---- handlers ----

struct http_req *parked[512];

unsigned n_parked, n_gone, n_observed;

static int observed_status;

static void echo(struct http_req *req) { http_reply_json_span(req, 200, http_req_body(req)); }

void on_gone(struct http_req *req, void *ctx)
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

static void cut(struct http_req *req)
{
    http_reply_errf(req, QE_BAD_PARAM, "no \"%.*s\"", 2, "a\u0436");
}

static void nothing(struct http_req *req) { http_reply_empty(req, 204); }

static const char *const params[] = {"a", "n", "b", "filter", NULL};
#define ROUTE(fn, v, p)                       \
    static const struct http_route r_##fn = { \
        .verb = v, .path = p, .handle = fn, .query = params}
ROUTE(echo, HTTP_POST, "/echo");
ROUTE(park, HTTP_GET, "/park");
ROUTE(park_without_hook, HTTP_GET, "/park-without-hook");
ROUTE(park_lightly, HTTP_GET, "/park-lightly");
ROUTE(big, HTTP_GET, "/big");
ROUTE(ask, HTTP_GET, "/ask/:name");
ROUTE(be_away, HTTP_GET, "/fail");
ROUTE(cut, HTTP_GET, "/cut");
ROUTE(nothing, HTTP_GET, "/nothing");
static const struct http_route r_contract = {.verb = HTTP_GET,
                                             .path = "/contract",
                                             .handle = nothing,
                                             .query = params,
                                             .unknown = UNKNOWN_IGNORED};
static const struct http_route r_destroy = {.verb = HTTP_DELETE,
                                            .path = "/destroy",
                                            .handle = nothing,
                                            .query = params,
                                            .unknown = UNKNOWN_OR_EMPTY_REFUSED};
static const struct http_route *const table[] = {
    &r_echo,    &r_park, &r_park_without_hook, &r_park_lightly, &r_big,     &r_ask,
    &r_be_away, &r_cut,  &r_nothing,           &r_contract,     &r_destroy, NULL};

// ---- a server and one client ----

uv_loop_t loop;

static struct http_routes *routes;

struct http_server *server;

int client = -1;

bool was_closed;

struct buf got; // everything the client has read

bool got_eof;

static void observe(void *app, const struct http_route *route, int status, uint64_t us)
{
    (void)app, (void)route, (void)us;
    n_observed++;
    observed_status = status;
}

void connect_client(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    client = pair[0];
    http_server_adopt(server, pair[1], NULL);
}

void open_server(struct http_server_conf conf)
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

int setup(void **state)
{
    (void)state;
    n_parked = n_gone = n_observed = 0;
    was_closed = got_eof = false;
    got = (struct buf){0};
    routes = http_routes_new(table);
    return uv_loop_init(&loop);
}

void on_closed(void *ctx)
{
    (void)ctx;
    was_closed = true;
}

int teardown(void **state)
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

void turn(void) { uv_run(&loop, UV_RUN_NOWAIT); }

void read_answers(void)
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

void turns(unsigned n)
{
    while (n-- > 0) {
        turn();
        read_answers();
    }
}

void send_bytes(span text)
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

void send_text(const char *text) { send_bytes(span_of(text)); }

const char *got_text(void)
{
    assert_true(buf_reserve(&got, 1));
    got.ptr[got.len] = '\0';
    return got.ptr;
}

void forget(void) { buf_reset(&got); }

// Splits off the first answer; its body points into got.
int take_answer(span *body)
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

void assert_answer(int status, const char *body)
{
    span text;
    assert_int_equal(take_answer(&text), status);
    if (!span_eq(text, span_of(body)))
        fail_msg("body is %.*s, not %s", SPAN_ARG(text), body);
}

void assert_has(const char *text)
{
    if (!strstr(got_text(), text))
        fail_msg("no %s in %s", text, got_text());
}

// From one thing that happens to the next; the server's sweep always comes.
void let_pass(unsigned ms)
{
    uint64_t until = uv_hrtime() + ms * 1000000ULL;
    while (uv_hrtime() < until) {
        uv_run(&loop, UV_RUN_ONCE);
        read_answers();
    }
}

void wait_until_closed(unsigned ms)
{
    uint64_t until = uv_hrtime() + ms * 1000000ULL;
    while (!got_eof && uv_hrtime() < until) {
        uv_run(&loop, UV_RUN_ONCE);
        read_answers();
    }
    assert_true(got_eof);
}
