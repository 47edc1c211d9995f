// link.h: one connection to a server, one request at a time.
//
//     open ─► look up ─► connect ─► (TLS) ─► ready ─► busy ─► ready ...
//                                              │        │
//                                              └────────┴──► closed (by us, by the server,
//                                              broken)
//
// A link that fails, or that the server does not keep alive, closes itself. `gone` notifies
// the owner, which must not use the link afterwards.
#ifndef QUEEN_CLIENT_LINK_H
#define QUEEN_CLIENT_LINK_H

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "address.h"
#include "base/attrs.h"
#include "base/buf.h"
#include "queen/client.h"

struct link;
struct ssl_ctx_st;

struct link_conf {
    uv_loop_t *loop;
    const struct address *address; // borrowed as long as there are links
    struct ssl_ctx_st *tls;        // the same; required if the address uses TLS
    bool insecure;
    unsigned connect_timeout_ms;
    size_t max_response_bytes;
    void (*gone)(struct link *l, void *ctx);  // it is closing
    void (*freed)(struct link *l, void *ctx); // the loop holds no handle of it any more
    void *ctx;
};

struct link_outcome {
    struct queen_response *response; // given; NULL: no response
    struct queen_error err;          // also for a response
    bool sent;                       // at least a part of the request was sent
    bool open;                       // the link can take the next request
};

typedef void (*link_done_cb)(const struct link_outcome *o, void *owner);

struct link *link_open(const struct link_conf *conf);

// Takes the bytes; they are sent when the link is ready. done is called once, later, unless
// link_close() is called first. to_head: the response has no body.
void link_send(struct link *l, struct buf *bytes, bool to_head, link_done_cb done, void *owner);

// Whether it is open, idle, and not closed by the server. Checks the socket.
bool link_is_ready(struct link *l);
void link_close(struct link *l); // calls gone, but not done
// Closes our side of the connection, because the response is not needed any more. A response
// that the server has already sent is still delivered (its messages can then be released);
// otherwise the link fails. False: nothing was sent, so no response can come; call
// link_close().
MUST_USE bool link_hang_up(struct link *l);

// For the owner's lists.
struct link_slot {
    TAILQ_ENTRY(link_slot) entry;
    struct link *link;
    bool is_idle;
    bool is_parked; // lent for a request that may wait at the server
};
struct link_slot *link_slot(struct link *l);

#endif
