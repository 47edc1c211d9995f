// link.h: one connection to a server, one request at a time.
//
//      open ─► look up ─► connect ─► (TLS) ─► ready ─► busy ─► ready ...
//                                               │        │
//                                               └────────┴──► closed (by us, by the server,
//                                               broken)
//
// A link that fails, or whose server does not keep it, closes itself; `gone` tells the owner,
// after which the link must not be touched.
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
    struct ssl_ctx_st *tls;        // the same; needed when the address says TLS
    bool insecure;
    unsigned connect_timeout_ms;
    size_t max_response_bytes;
    void (*gone)(struct link *l, void *ctx);  // it is closing
    void (*freed)(struct link *l, void *ctx); // nothing of it is left on the loop
    void *ctx;
};

struct link_outcome {
    struct queen_response *response; // given; NULL: there is no answer
    struct queen_error err;          // of the answer, too
    bool sent;                       // bytes of the request have left
    bool open;                       // the link can take the next request
};

typedef void (*link_done_cb)(const struct link_outcome *o, void *owner);

struct link *link_open(const struct link_conf *conf);

// Takes the bytes; they leave when the link is ready.  done is called once, later, unless the
// link is closed by link_close().  The answer to_head has no body.
void link_send(struct link *l, struct buf *bytes, bool to_head, link_done_cb done, void *owner);

// Is it open, idle, and has the server not closed it?  Asks the kernel.
bool link_is_ready(struct link *l);
void link_close(struct link *l); // done is not called; gone is
// Closes our side of the connection: no answer is wanted any more.  One that the server has
// sent already still comes (a pop's messages are then ours to give back), else the link fails.
// False: nothing of the request has been sent, so nothing can come; link_close() it.
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
