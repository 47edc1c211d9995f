// fuzz_cloudevents.c: any headers and any body to the routes that accept CloudEvents: no crash,
// one answer, and the broker gets only valid names, payloads and attributes.
//
// The first byte selects the route. Lines up to an empty one are headers, the rest is the body.
//
// build: -DLLHTTP_STRICT_MODE=1 -I/usr/share/include/llhttp broker/src/api/messages/cloudevents.c
// build: broker/src/api/messages/push.c broker/src/api/body.c broker/src/api/body_time.c
// build: broker/src/api/message_fields.c broker/src/api/trace_context.c broker/src/api/api.c
// build: broker/src/segment/keys.c broker/src/segment/codec.c lib/http/*.c lib/json/*.c
// build: lib/net/tls_server.c lib/net/addresses.c lib/trace/span.c /usr/share/llhttp/*.c -lz -lssl -lcrypto
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/api_int.h"
#include "api/partition_key.h"
#include "api/permission.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server.h"
#include "segment/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_route *const table[] = {&api_push, &api_push_queue,
                                                 &api_push_partition, NULL};
static const char *const heads[] = {
    "POST /api/v1/push HTTP/1.1\r\n", "POST /api/v1/push/queue/q HTTP/1.1\r\n",
    "POST /api/v1/push/queue/q%20%C3%A9/partition/p HTTP/1.1\r\n",
    "POST /api/v1/push/queue/%00/partition/%ff HTTP/1.1\r\n"};
static uv_loop_t loop;
static struct http_routes *routes;
static struct http_server *server;
static struct api api = {.max_items = 1000};
static struct push_op *given;
static bool out_of_order; // the broker fails some pushes

// ---- the broker ----

static void check_json(span text, enum js_type type)
{
    struct js j = js_read(text);

    if (type != JS_NONE && js_type_of(text) != type)
        BUG("a value of another type");
    js_skip(&j);
    if (js_finish(&j) != 0)
        BUG("not JSON: %.*s", (int)text.len, text.ptr);
}

static void check_item(const struct push_item *item)
{
    if (item->queue.len == 0 && !item->queue.ptr)
        BUG("no queue");
    if (!api_is_name(item->queue) || !api_is_name(item->partition) || !api_is_name(item->txid))
        BUG("a name that cannot be stored");
    if (item->partition.len == 0)
        BUG("no partition");
    check_json(item->payload, JS_NONE);
    if (item->meta.ptr)
        check_json(item->meta, JS_OBJECT);
    if (item->meta.len > SEGMENT_MAX_META)
        BUG("attributes that no segment has room for");
    if (item->when == PUSH_AFTER && item->when_us < 0)
        BUG("a delay in the past");
}

void broker_push(struct broker *b, struct push_op *op)
{
    (void)b;
    for (unsigned i = 0; i < op->n_items; i++) {
        check_item(&op->items[i]);
        op->items[i].status = (enum push_status)(PUSH_QUEUED + i % 3);
    }
    given = op;
}

const char *broker_pg_error(const struct broker *b)
{
    (void)b;
    return "";
}

void partition_keys_resolve(struct http_req *req, struct push_item *items, unsigned n,
                            void (*go)(void *ctx), void *ctx)
{
    (void)req, (void)items, (void)n;
    go(ctx);
}

void tracing_note_items(struct http_req *req, const struct push_item *items, unsigned n)
{
    (void)req, (void)items, (void)n;
}

void partition_keys_forget(struct api *a) { (void)a; }
void permission_forget(struct api *a) { (void)a; }
bool permission_check_items(struct http_req *req, const struct push_item *items, unsigned n)
{
    (void)req, (void)items, (void)n;
    return true;
}
void snapshot_deinit(struct snapshot *s) { (void)s; }

// ---- the request ----

static void setup_once(void)
{
    if (routes)
        return;
    log_setup(LOG_OFF, LOG_TEXT);
    uv_loop_init(&loop);
    routes = http_routes_new(table);
    server = http_server_open(&loop, (struct http_server_conf){.routes = routes,
                                                               .app = &api,
                                                               .max_header_bytes = 16384,
                                                               .max_body_bytes = 1 << 20,
                                                               .max_request_bytes = 1 << 20,
                                                               .max_pipelined = 1,
                                                               .header_timeout_ms = 1000,
                                                               .idle_timeout_ms = 1000});
}

// Lines of the input, with CRLF instead of LF; returns the rest.
static span put_headers(struct buf *out, span in)
{
    span line;

    while (str_split(&in, '\n', &line) && line.len > 0) {
        buf_put(out, line);
        buf_put_lit(out, "\r\n");
    }
    return in;
}

static void send_all(int fd, span bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n > 0)
            bytes = (span){bytes.ptr + n, bytes.len - (size_t)n};
        uv_run(&loop, UV_RUN_NOWAIT);
        if (n <= 0)
            return; // the server does not read any more
    }
}

static void answer_given(void)
{
    struct push_op *op = given;

    given = NULL;
    if (op)
        op->done(op, out_of_order ? QE_BUFFER_FAILED : 0);
}

static void check_answer(int fd)
{
    static char bytes[1 << 20];
    size_t len = 0;
    ssize_t n;

    while (len < sizeof bytes && (n = recv(fd, bytes + len, sizeof bytes - len, 0)) > 0)
        len += (size_t)n;
    char *body = len < sizeof bytes ? memmem(bytes, len, "\r\n\r\n", 4) : NULL;
    if (body && len > 12 && memcmp(bytes, "HTTP/1.1 201", 12) == 0) {
        body += 4;
        check_json((span){body, len - (size_t)(body - bytes)}, JS_ARRAY);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf request = {0}, headers = {0};
    int pair[2];

    if (size < 2)
        return 0;
    setup_once();
    span body = put_headers(&headers, (span){(const char *)data + 1, size - 1});
    buf_put(&request, span_of(heads[data[0] % countof(heads)]));
    buf_put_lit(&request, "Content-Length: ");
    buf_put_i64(&request, (int64_t)body.len);
    buf_put_lit(&request, "\r\n");
    buf_put(&request, buf_span(&headers));
    buf_put_lit(&request, "\r\n");
    buf_put(&request, body);
    out_of_order = data[0] & 128;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
        abort();
    http_server_adopt(server, pair[1], NULL);
    send_all(pair[0], buf_span(&request));
    uv_run(&loop, UV_RUN_NOWAIT);
    answer_given();
    uv_run(&loop, UV_RUN_NOWAIT);
    check_answer(pair[0]);
    close(pair[0]);
    while (http_server_connections(server) > 0) {
        uv_run(&loop, UV_RUN_NOWAIT);
        answer_given(); // of a second request in the body
    }
    buf_free(&request);
    buf_free(&headers);
    return 0;
}
