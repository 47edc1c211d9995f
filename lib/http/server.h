// server.h: HTTP connections of one loop.
//
// The acceptor hands over connected sockets; everything after that happens on this loop's
// thread.  What one read brings is parsed completely (pipelining), and all answers that
// are ready in one turn of the loop leave in one write per connection.
#ifndef QUEEN_HTTP_SERVER_H
#define QUEEN_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/metric.h"
#include "http/route.h"

struct http_server;

struct http_server_stats {
    struct counter accepted, closed, requests, bytes_in, bytes_out, refused;
};

// Threads of libuv that one loop uses for gzip at a time.
enum { HTTP_CODING_THREADS = 2 };

struct http_server_conf {
    const struct http_routes *routes; // borrowed
    void *app;                        // for handlers: http_req_app()
    size_t max_header_bytes;          // 431 above
    size_t max_body_bytes;            // 413 above
    size_t max_request_bytes;         // of a request's arena, beside its body; 0: no limit
    size_t max_inflight_bytes;  // bodies held by this loop at once; 429 above; 0: no limit
    unsigned max_pipelined;     // unanswered requests per connection before reading pauses
    unsigned header_timeout_ms; // from the first byte of a request to the end of its body
                                // without progress
    unsigned idle_timeout_ms;   // kept-alive connection without a request
    size_t gzip_min_bytes;      // answers from this size on are packed when asked for; 0: never
    void (*fallback)(struct http_req *req); // GET of a path without a route; NULL: 404
    // Called when the head of a request was answered: for metrics.  route may be NULL (404).
    void (*observe)(void *app, const struct http_route *route, int status, uint64_t us);
    // Asked before the handler of a route that is not public; NULL: nobody is.  false: the
    // guard has the request now; it answers it, or lets it go on later with http_req_admit().
    bool (*guard)(void *guard_ctx, struct http_req *req);
    void *guard_ctx;
    struct http_server_stats *stats; // borrowed for longer than the server lives; NULL: its own
};

struct http_server *http_server_open(uv_loop_t *loop, struct http_server_conf conf);
// Takes fd over: a connected, non-blocking stream socket.  After http_server_close() it is
// closed.
void http_server_adopt(struct http_server *s, int fd);
// Any thread may read the counters: accepted - closed is the number of open connections.
const struct http_server_stats *http_server_stats(const struct http_server *s);
unsigned http_server_connections(const struct http_server *s); // loop's thread only
// Answers from now on carry "Connection: close"; idle connections are closed, busy ones after
// their answer.
void http_server_drain(struct http_server *s);
// Closes every connection at once (on_gone hooks run); when the last unanswered request has
// been answered, frees s and calls closed.
void http_server_close(struct http_server *s, void (*closed)(void *ctx), void *ctx);

#endif
