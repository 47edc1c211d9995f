// server.h: the HTTP connections of one loop.
//
// The acceptor hands over connected sockets; everything after that happens on this loop's
// thread. Each read is parsed completely (pipelining). All answers that are ready in one turn
// of the loop are sent with one write per connection.
#ifndef QUEEN_HTTP_SERVER_H
#define QUEEN_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/metric.h"
#include "http/route.h"
#include "http/site.h"

struct http_server;
struct addresses;
struct ssl_ctx_st;

struct http_server_stats {
    struct counter accepted, closed, requests, bytes_in, bytes_out, refused;
    struct counter evicted; // closed because of max_unsent_bytes
    struct counter crowded; // closed because the address had too many connections
};

// Threads of libuv that one loop uses for gzip at a time.
enum { HTTP_CODING_THREADS = 2 };

struct http_server_conf {
    const struct http_routes *routes; // borrowed
    void *app;                        // for handlers: http_req_app()
    size_t max_header_bytes;          // a larger head is answered with 431
    size_t max_body_bytes;            // a larger body is answered with 413
    size_t max_request_bytes;   // limit of a request's arena, without its body; 0: no limit
    size_t max_unsent_bytes;    // limit of the answers that clients do not read; 0: no limit
    size_t max_inflight_bytes;  // limit of all bodies of this loop, 429 beyond it; 0: no limit
    unsigned max_pipelined;     // unanswered requests per connection before reading pauses
    unsigned header_timeout_ms; // for the whole head; a body must arrive at 1 KB/s or more,
                                // measured over this time
    unsigned idle_timeout_ms;   // for a kept-alive connection without a request
    struct http_site site;      // which web pages may send requests
    size_t gzip_min_bytes;      // answers from this size on are compressed on request; 0: never
    void (*fallback)(struct http_req *req); // for GET of a path without a route; NULL: 404
    // Called after each answer, for metrics. route may be NULL (404).
    void (*observe)(void *app, const struct http_route *route, int status, uint64_t us);
    // Called before the handler of each admitted request; NULL: never. It may set
    // http_req_set_trace(): traced is then called once, with the answer, also if the client has
    // disconnected.
    void (*begin)(void *app, struct http_req *req);
    void (*traced)(void *app, struct http_req *req, int status);
    // Called before the handler of a route that is not public; NULL: no check. false: the guard
    // has taken the request; it answers it, or admits it later with http_req_admit().
    bool (*guard)(void *guard_ctx, struct http_req *req);
    // Called at the head of a request with a body: whether the guard would refuse it. The body
    // is then discarded. NULL: the body is always kept.
    bool (*guard_refuses)(void *guard_ctx, struct http_req *req, bool *admitted);
    void *guard_ctx;
    // Called with the answer of every denied request (401, 403), and of every admitted
    // request that http_route_is_audited(), also if the client has disconnected. NULL: never.
    void (*audit)(void *audit_ctx, struct http_req *req, int status);
    void *audit_ctx;
    struct addresses *addresses;     // limits per client, shared by all servers; NULL: none
    unsigned body_timeout_ms;        // for the whole body; 0: no limit
    struct http_server_stats *stats; // borrowed for longer than the server lives; NULL: its own
};

struct http_server *http_server_open(uv_loop_t *loop, struct http_server_conf conf);
// Takes fd, a connected, non-blocking stream socket. After http_server_close() it is closed.
// tls: given (tls_server.h); NULL: plain HTTP.
void http_server_adopt(struct http_server *s, int fd, struct ssl_ctx_st *tls);
// Any thread may read the counters: accepted - closed is the number of open connections.
const struct http_server_stats *http_server_stats(const struct http_server *s);
unsigned http_server_connections(const struct http_server *s); // loop's thread only
// From now on answers carry "Connection: close"; idle connections are closed at once, busy ones
// after their answer.
void http_server_drain(struct http_server *s);
// Closes every connection at once (on_gone hooks run). When the last pending request has been
// answered, frees s and calls closed.
void http_server_close(struct http_server *s, void (*closed)(void *ctx), void *ctx);

#endif
