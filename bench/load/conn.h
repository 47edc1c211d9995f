// conn.h: one keep-alive HTTP/1.1 connection, one request at a time.
//
//     open ──► put the request into out ──► start ──► flush ... ──► read ... ──► reply
//                   ▲                                                              │
//                   └──────────────────────────────────────────────────────────────┘
//
// Never blocks except in open. The caller waits for readiness (edge-triggered is enough: read
// and flush continue until the kernel has no more).
#ifndef QUEEN_CLI_BENCH_CONN_H
#define QUEEN_CLI_BENCH_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/span.h"

struct bench_addr {
    struct sockaddr_storage sa;
    socklen_t len;
    struct ssl_ctx_st *tls; // NULL: plain HTTP
    const char *host;       // that the certificate must name
};

struct bench_conn {
    int fd;             // -1: not open
    struct ssl_st *tls; // NULL: plain HTTP
    struct buf out;     // the request; filled by the caller between reply and start
    size_t out_done;
    struct buf in;
    struct buf joined; // body of a chunked answer
    size_t head_len;   // 0: the answer's head is not complete
    size_t body_len;
    int status;
    bool chunked, last; // last: the server closes after this answer
};

struct bench_reply {
    int status;
    span body; // borrowed until the next start or close
};

enum bench_conn_result { BENCH_CONN_MORE, BENCH_CONN_DONE }; // or a negative errno

// Resolves the name. Returns 0, or an error text from gai_strerror().
const char *bench_addr_find(struct bench_addr *a, const char *host, const char *port);

// c is {.fd = -1} or was closed.  Waits up to 5 s for the peer.  0 or -errno.
MUST_USE int bench_conn_open(struct bench_conn *c, const struct bench_addr *a);
void bench_conn_close(struct bench_conn *c);  // buffers stay for the next open
void bench_conn_deinit(struct bench_conn *c); // closes and frees

// Both: BENCH_CONN_*, or -errno (-EPROTO if the answer is not valid HTTP).
MUST_USE int bench_conn_start(struct bench_conn *c); // sends out
MUST_USE int bench_conn_flush(struct bench_conn *c);
MUST_USE int bench_conn_read(struct bench_conn *c, struct bench_reply *reply);

#endif
