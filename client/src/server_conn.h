// server_conn.h: one connection to a server, one request at a time.
//
//     open ─► look up ─► connect ─► (TLS) ─► ready ─► busy ─► ready ...
//                                              │        │
//                                              └────────┴──► closed (by us, by the server,
//                                              broken)
//
// A connection that fails, or that the server does not keep alive, closes itself. `gone`
// notifies the owner, which must not use the connection afterwards.
#ifndef QUEEN_CLIENT_SERVER_CONN_H
#define QUEEN_CLIENT_SERVER_CONN_H

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "address.h"
#include "base/attrs.h"
#include "base/buf.h"
#include "queen/client.h"

struct server_conn;
struct ssl_ctx_st;

struct server_conn_conf {
    uv_loop_t *loop;
    const struct address *address; // borrowed as long as there are connections
    struct ssl_ctx_st *tls;        // the same; required if the address uses TLS
    bool insecure;
    unsigned connect_timeout_ms;
    size_t max_response_bytes;
    void (*gone)(struct server_conn *l, void *ctx);  // it is closing
    void (*freed)(struct server_conn *l, void *ctx); // the loop holds no handle of it any more
    void *ctx;
};

struct server_conn_outcome {
    struct queen_response *response; // given; NULL: no response
    struct queen_error err;          // also for a response
    bool sent;                       // at least a part of the request was sent
    bool open;                       // the connection can take the next request
};

typedef void (*server_conn_done_cb)(const struct server_conn_outcome *o, void *owner);

struct server_conn *server_conn_open(const struct server_conn_conf *conf);

// Takes the bytes; they are sent when the connection is ready. done is called once, later,
// unless server_conn_close() is called first. to_head: the response has no body.
void server_conn_send(struct server_conn *l, struct buf *bytes, bool to_head,
                      server_conn_done_cb done, void *owner);

// Whether it is open, idle, and not closed by the server. Checks the socket.
bool server_conn_is_ready(struct server_conn *l);
void server_conn_close(struct server_conn *l); // calls gone, but not done
// Closes our side of the connection, because the response is not needed any more. A response
// that the server has already sent is still delivered (its messages can then be released);
// otherwise the connection fails. False: nothing was sent, so no response can come; call
// server_conn_close().
MUST_USE bool server_conn_hang_up(struct server_conn *l);

// For the owner's lists.
struct conn_entry {
    TAILQ_ENTRY(conn_entry) entry;
    struct server_conn *conn;
    bool is_idle;
    bool is_parked; // lent for a request that may wait at the server
};
struct conn_entry *conn_entry(struct server_conn *l);

#endif
