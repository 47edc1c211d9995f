// server.c: the connections of one loop: object pools, end of turn, timeouts, shutdown.
#include "http/server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/http_int.h"
#include "net/tls_server.h"

// With ASan every request is an allocation of its own, so that ASan detects a handler that uses
// a request after its answer.
#if defined(__SANITIZE_ADDRESS__)
enum { KEEPS_SPARES = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { KEEPS_SPARES = 0 };
#else
enum { KEEPS_SPARES = 1 };
#endif
#else
enum { KEEPS_SPARES = 1 };
#endif
enum { MAX_SPARE = 1024, SPARE_BODY = 4096, SPARE_HEAD = 2048 };

// Life of a server, in order.
static void on_turn(uv_prepare_t *turn);
static void on_busy(uv_idle_t *busy);
static void on_sweep(uv_timer_t *sweep);
static void on_http_server_handle_closed(uv_handle_t *handle);
static void free_server(struct http_server *s);

static uint64_t sweep_every_ms(const struct http_server *s)
{
    uint64_t every = 1000;

    for (unsigned i = 0; i < N_PLACES; i++)
        if (s->timeout_ms[i] > 0 && s->timeout_ms[i] / 4 < every)
            every = s->timeout_ms[i] / 4;
    return every > 5 ? every : 5;
}

struct http_server *http_server_open(uv_loop_t *loop, struct http_server_conf conf)
{
    assert(conf.routes && conf.max_pipelined > 0 && conf.max_header_bytes > 0);

    struct http_server *s = mem_new(struct http_server);
    s->loop = loop;
    s->conf = conf;
    s->stats = conf.stats ? conf.stats : &s->own_stats;
    for (unsigned i = 0; i < N_PLACES; i++)
        TAILQ_INIT(&s->place[i]);
    TAILQ_INIT(&s->dirty);
    STAILQ_INIT(&s->jobs);
    STAILQ_INIT(&s->trash);
    STAILQ_INIT(&s->late);
    STAILQ_INIT(&s->spare);
    s->timeout_ms[PLACE_IDLE] = conf.idle_timeout_ms;
    s->timeout_ms[PLACE_RECEIVING] = conf.header_timeout_ms;
    s->timeout_ms[PLACE_HANDSHAKE] = conf.header_timeout_ms;
    s->timeout_ms[PLACE_WRITING] = conf.idle_timeout_ms;
    s->timeout_ms[PLACE_LINGERING] = HTTP_LINGER_MS;

    uv_prepare_init(loop, &s->turn);
    uv_idle_init(loop, &s->busy);
    uv_timer_init(loop, &s->sweep);
    s->turn.data = s->busy.data = s->sweep.data = s;
    s->n_handles = 3;
    uv_prepare_start(&s->turn, on_turn);
    uv_timer_start(&s->sweep, on_sweep, sweep_every_ms(s), sweep_every_ms(s));
    uv_unref((uv_handle_t *)&s->turn);
    uv_unref((uv_handle_t *)&s->sweep);
    return s;
}

void http_server_adopt(struct http_server *s, int fd, struct ssl_ctx_st *tls)
{
    if (s->closing)
        close(fd); // it was in flight when the server was closed
    else
        http_conn_open(s, fd, tls);
    tls_server_unref(tls);
}

const struct http_server_stats *http_server_stats(const struct http_server *s)
{
    return s->stats;
}

unsigned http_server_connections(const struct http_server *s) { return s->n_conns; }

// ---- pools ----

struct http_req *http_server_take_req(struct http_server *s)
{
    struct http_req *req = STAILQ_FIRST(&s->spare);

    if (req) {
        STAILQ_REMOVE_HEAD(&s->spare, link);
        s->n_spare--;
    } else {
        req = mem_new(struct http_req);
        arena_init(&req->arena);
        req->server = s;
    }
    req->msg.head.max = 4 * s->conf.max_header_bytes + 1024;
    req->msg.body.max = s->conf.max_body_bytes;
    req->arena.max = s->conf.max_request_bytes;
    return req;
}

// Keeps small buffers for the next request, so that a typical request allocates nothing.
static struct buf keep_small(struct buf *b, size_t limit)
{
    if (b->cap > limit)
        buf_free(b);
    return (struct buf){.ptr = b->ptr, .cap = b->cap};
}

void http_server_recycle(struct http_server *s, struct http_req *req)
{
    s->inflight -= req->charged;
    http_req_forget_identity(req);
    arena_deinit(&req->arena);
    buf_free(&req->answer);
    buf_free(&req->extra);
    if (!KEEPS_SPARES || s->n_spare >= MAX_SPARE || s->closing) {
        buf_free(&req->msg.head);
        buf_free(&req->msg.body);
        free(req);
        return;
    }
    struct buf head = keep_small(&req->msg.head, SPARE_HEAD);
    struct buf body = keep_small(&req->msg.body, SPARE_BODY);
    *req = (struct http_req){.server = s, .msg = {.head = head, .body = body}};
    arena_init(&req->arena);
    STAILQ_INSERT_HEAD(&s->spare, req, link);
    s->n_spare++;
}

struct http_parser *http_server_take_parser(struct http_server *s)
{
    if (s->n_parsers > 0)
        return s->parsers[--s->n_parsers];
    return http_parser_new((struct http_parser_limits){.max_head = s->conf.max_header_bytes,
                                                       .max_body = s->conf.max_body_bytes});
}

void http_server_return_parser(struct http_server *s, struct http_parser *p)
{
    if (s->n_parsers < sizeof s->parsers / sizeof s->parsers[0])
        s->parsers[s->n_parsers++] = p;
    else
        http_parser_free(p);
}

// ---- the end of a turn ----

// Answers are written just before the loop polls again, whichever phase of the loop produced
// them. The idle handle keeps the loop from sleeping until then; it is stopped before the loop
// computes its timeout.
void http_server_wake(struct http_server *s)
{
    if (!s->handles_closing)
        uv_idle_start(&s->busy, on_busy);
}

static void on_busy(uv_idle_t *busy) { (void)busy; }

void http_server_discard(struct http_server *s, struct http_req *req)
{
    STAILQ_INSERT_TAIL(&s->trash, req, link);
    http_server_wake(s);
}

static void refresh_date(struct http_server *s)
{
    uint64_t now_s = clock_wall_us() / 1000000;
    struct tm tm;

    if (now_s == s->date_s && s->date_len > 0)
        return;
    s->date_s = now_s;
    time_t t = (time_t)now_s;
    gmtime_r(&t, &tm);
    // Server processes run in the C locale: names of days and months are English.
    s->date_len =
        (unsigned)strftime(s->date, sizeof s->date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
}

static void empty_trash(struct http_server *s)
{
    struct http_req *req;

    while ((req = STAILQ_FIRST(&s->trash))) {
        STAILQ_REMOVE_HEAD(&s->trash, link);
        http_server_recycle(s, req);
    }
}

static void run_late_hooks(struct http_server *s)
{
    struct http_req_queue present = STAILQ_HEAD_INITIALIZER(present);
    struct http_req *req;

    STAILQ_CONCAT(&present, &s->late);
    while ((req = STAILQ_FIRST(&present))) {
        STAILQ_REMOVE_HEAD(&present, link);
        void (*gone)(struct http_req *, void *) = req->gone;
        req->gone = NULL;
        req->late = false;
        if (req->state == REQ_PENDING && gone)
            gone(req, req->gone_ctx);
        else if (req->state == REQ_ANSWERED)
            STAILQ_INSERT_TAIL(&s->trash, req, link);
    }
}

// Closes the connections that hold memory and have gone longest without progress, until the
// unsent answers are within the limit. One answer may exceed the limit by itself.
static void close_slow_readers(struct http_server *s)
{
    uint64_t now_s = clock_mono_us() / 1000000;
    struct http_conn *c;

    while (s->conf.max_unsent_bytes > 0 && s->backlog > s->conf.max_unsent_bytes) {
        c = TAILQ_FIRST(&s->place[PLACE_WRITING]);
        if (!c)
            c = TAILQ_FIRST(&s->place[PLACE_BLOCKED]);
        if (!c || c->dirty || c->backlog == s->backlog)
            break;
        counter_add(&s->stats->evicted, 1);
        s->n_evicted++;
        if (now_s != s->evicted_s) {
            log_warn("http.slow_readers_closed", "connections=%u unsent_bytes=%zu limit=%zu",
                     s->n_evicted, s->backlog, s->conf.max_unsent_bytes);
            s->evicted_s = now_s;
            s->n_evicted = 0;
        }
        http_conn_close(c);
    }
}

static void on_turn(uv_prepare_t *turn)
{
    struct http_server *s = turn->data;

    s->n_handshakes = 0;
    run_late_hooks(s);
    if (s->n_dirty > 0) {
        refresh_date(s);
        // A flush may detect a disconnected peer, whose hooks answer other requests: those are
        // written in the next turn.
        for (unsigned present = s->n_dirty; present > 0 && s->n_dirty > 0; present--)
            http_conn_flush(TAILQ_FIRST(&s->dirty));
    }
    close_slow_readers(s);
    empty_trash(s);
    if (s->n_dirty == 0 && STAILQ_EMPTY(&s->late) && STAILQ_EMPTY(&s->trash))
        uv_idle_stop(&s->busy);
    http_server_finish(s);
}

static void on_sweep(uv_timer_t *sweep)
{
    struct http_server *s = sweep->data;
    uint64_t now = uv_now(s->loop);

    for (unsigned i = 0; i < N_PLACES; i++) {
        struct http_conn *c;
        while (s->timeout_ms[i] > 0 && (c = TAILQ_FIRST(&s->place[i])) &&
               now - c->stamp_ms >= s->timeout_ms[i])
            http_conn_expire(c); // removes it from this place
    }
}

// ---- stopping ----

void http_server_drain(struct http_server *s)
{
    struct http_conn *c;

    s->draining = true;
    while ((c = TAILQ_FIRST(&s->place[PLACE_IDLE])) ||
           (c = TAILQ_FIRST(&s->place[PLACE_HANDSHAKE])))
        http_conn_close(c);
}

void http_server_close(struct http_server *s, void (*closed)(void *ctx), void *ctx)
{
    struct http_conn *c;

    assert(!s->closing);
    s->closing = true;
    s->closed = closed;
    s->closed_ctx = ctx;
    for (unsigned i = 0; i < N_PLACES; i++)
        while ((c = TAILQ_FIRST(&s->place[i])))
            http_conn_close(c);
    // Finish at the end of the turn, because a caller further up may still use a request.
    uv_ref((uv_handle_t *)&s->turn);
    http_server_wake(s);
}

void http_server_finish(struct http_server *s)
{
    if (!s->closing || s->handles_closing || s->n_pending > 0 || s->n_conns > 0 ||
        !STAILQ_EMPTY(&s->trash) || !STAILQ_EMPTY(&s->late))
        return;
    s->handles_closing = true;
    uv_close((uv_handle_t *)&s->turn, on_http_server_handle_closed);
    uv_close((uv_handle_t *)&s->busy, on_http_server_handle_closed);
    uv_close((uv_handle_t *)&s->sweep, on_http_server_handle_closed);
}

static void on_http_server_handle_closed(uv_handle_t *handle)
{
    struct http_server *s = handle->data;

    if (--s->n_handles == 0)
        free_server(s);
}

static void free_server(struct http_server *s)
{
    void (*closed)(void *) = s->closed;
    void *ctx = s->closed_ctx;
    struct http_req *req;

    while ((req = STAILQ_FIRST(&s->spare))) {
        STAILQ_REMOVE_HEAD(&s->spare, link);
        buf_free(&req->msg.head);
        buf_free(&req->msg.body);
        free(req);
    }
    while (s->n_parsers > 0)
        http_parser_free(s->parsers[--s->n_parsers]);
    free(s->cipher);
    free(s);
    if (closed)
        closed(ctx);
}
