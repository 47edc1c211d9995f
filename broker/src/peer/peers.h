// peers.h: the other servers of this database, told by UDP what happens here.
//
// Everything works without it, by the change feed; with it a consumer that waits at one server
// is woken within milliseconds of a push at another.  Lost, doubled or forged datagrams cost at
// most a look into the database.
//
//      mesh_open() on the acceptor's loop; mesh_tell() from any thread; conf.heard on the loop
#ifndef QUEEN_PEER_MESH_H
#define QUEEN_PEER_MESH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"
#include "peer/datagram.h"
#include "peer/replay_window.h"

enum { MESH_MAX_PEERS = 64, MESH_HOST = 256, MESH_ADDRESS = 64 };

struct mesh;
struct mesh_conf {
    const char *peers;  // "host[:port],..."; an IPv6 address with a port in brackets
    unsigned port;      // ours, and of peers that give none
    const char *secret; // "": datagrams are not signed and not checked
    unsigned heartbeat_ms, dead_ms;
    unsigned receive_mb; // of the socket's buffer
    void (*heard)(void *ctx,
                  const struct peer_note *note); // not of heartbeats, nor of ourselves
    void *ctx;
};

MUST_USE int mesh_open(struct mesh **m, uv_loop_t *loop, const struct mesh_conf *conf,
                       struct fault *f);
// Any thread, until mesh_close().  Neither blocks nor fails: what cannot be sent is counted as
// dropped.
void mesh_tell(struct mesh *m, enum peer_kind kind, span queue, span partition, bool enabled);
// On the loop.  The memory stays for those who still tell, until mesh_free().
void mesh_close(struct mesh *m);
void mesh_free(struct mesh *m); // after the loop has ended; NULL is fine

// What there is to see, for any thread.
struct mesh_peer_view {
    char host[MESH_HOST];
    unsigned port;
    bool resolved, is_self;
    char address[MESH_ADDRESS];    // when resolved
    char learned[PEER_SENDER + 1]; // who answers there; "": nobody was heard from there yet
};
struct mesh_view {
    char server_id[PEER_SENDER + 1], session[PEER_SESSION + 1];
    unsigned port;
    uint64_t sent, received, dropped, bad_signatures, bad_sequences, heartbeats, restarts;
    unsigned n_tracked, n_alive;
    unsigned n_peers;
    struct mesh_peer_view peer[MESH_MAX_PEERS];
};
void mesh_view(struct mesh *m, struct mesh_view *view);

#endif
