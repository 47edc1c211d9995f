// fuzz_http.c: any bytes, cut anywhere, into a connection: no crash, no leak, no endless turn.
//
// The first byte seeds the cuts; the rest is what the client sends.  Handlers answer at once,
// at the end, or when the client has gone, by path.
//
// build: -DLLHTTP_STRICT_MODE=1 -I/usr/share/include/llhttp lib/http/*.c lib/json/*.c
// build: lib/net/tls_server.c lib/net/addresses.c /usr/share/llhttp/*.c -lz -lssl -lcrypto
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "http/http_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_WAITING = 4096 };

static uv_loop_t loop;
static struct http_routes *routes;
static struct http_req *waiting[MAX_WAITING];
static unsigned n_waiting;

static void at_once(struct http_req *req)
{
    span param = SPAN_NONE;
    struct buf out = {0};

    if (!http_req_param(req, 0, &param))
        param = SPAN("bad");
    buf_put(&out, param);
    buf_put(&out, http_req_query(req, SPAN("q")));
    buf_put_i64(&out, http_req_query_int(req, SPAN("n"), 1));
    buf_put(&out, http_req_header(req, SPAN("x")));
    buf_put(&out, http_req_body(req));
    http_reply_header(req, SPAN("X-Back"), http_req_header(req, SPAN("x")));
    http_reply_json(req, 200, &out);
}

static void later(struct http_req *req)
{
    if (n_waiting < MAX_WAITING)
        waiting[n_waiting++] = req;
    else
        http_reply_err(req, QE_BUSY);
}

static void on_gone(struct http_req *req, void *ctx)
{
    (void)ctx;
    http_reply_empty(req, 204);
}

static void when_gone(struct http_req *req) { http_req_on_gone(req, on_gone, NULL); }

static const struct http_route r_now = {.verb = HTTP_GET, .path = "/a/:x", .handle = at_once};
static const struct http_route r_post = {.verb = HTTP_POST, .path = "/a/:x", .handle = at_once};
static const struct http_route r_later = {.verb = HTTP_GET, .path = "/l", .handle = later};
static const struct http_route r_gone = {.verb = HTTP_GET, .path = "/g", .handle = when_gone};
static const struct http_route *const table[] = {&r_now, &r_post, &r_later, &r_gone, NULL};

static void setup_once(void)
{
    if (routes)
        return;
    log_setup(LOG_OFF, LOG_TEXT);
    uv_loop_init(&loop);
    routes = http_routes_new(table);
}

static void swallow(int fd)
{
    char bytes[65536];

    while (recv(fd, bytes, sizeof bytes, 0) > 0) {
    }
}

// By the socket, as in life; the connection may close it at any time.
static void send_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno != EAGAIN) {
            return;
        }
        uv_run(&loop, UV_RUN_NOWAIT);
        swallow(fd);
        if (n < 0 && len > 0)
            return; // the server does not read any more
    }
}

static void answer_waiting(void)
{
    while (n_waiting > 0)
        http_reply_json_span(waiting[--n_waiting], 200, SPAN("{}"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int pair[2];

    if (size < 2)
        return 0;
    setup_once();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
        abort();
    struct http_server *s =
        http_server_open(&loop, (struct http_server_conf){.routes = routes,
                                                          .max_header_bytes = 1024,
                                                          .max_body_bytes = 4096,
                                                          .max_inflight_bytes = 2048,
                                                          .max_pipelined = 4,
                                                          .header_timeout_ms = 1000,
                                                          .idle_timeout_ms = 1000});
    http_server_adopt(s, pair[1], NULL);

    unsigned seed = data[0] * 2654435761U + 1;
    for (size_t at = 1; at < size;) {
        seed = seed * 1103515245U + 12345U;
        size_t step = data[0] == 0 ? size : 1 + (seed >> 16) % (data[0] + 1U);
        if (step > size - at)
            step = size - at;
        send_all(pair[0], data + at, step);
        at += step;
        if ((seed >> 8) % 4 == 0 && n_waiting > 0)
            http_reply_json_span(waiting[--n_waiting], 200, SPAN("[]"));
    }
    if (data[0] & 1)
        shutdown(pair[0], SHUT_WR);
    uv_run(&loop, UV_RUN_NOWAIT);
    answer_waiting();
    uv_run(&loop, UV_RUN_NOWAIT);
    swallow(pair[0]);
    http_server_close(s, NULL, NULL);
    answer_waiting(); // room for others came with the answers; a server waits for its handlers
    uv_run(&loop, UV_RUN_DEFAULT);
    close(pair[0]);
    return 0;
}
