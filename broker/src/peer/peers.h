// peers.h: notifies the other servers of this database by UDP.
//
// Everything works without it, by the change feed; with it a consumer that waits at one server
// is woken within milliseconds of a push at another.  Lost, doubled or forged datagrams cost at
// most a look into the database.
//
//      peers_open() on the acceptor's loop; peers_notify() from any thread; conf.on_note on the
//      loop
#ifndef QUEEN_PEER_PEERS_H
#define QUEEN_PEER_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"
#include "peer/datagram.h"
#include "peer/replay_window.h"

enum { PEERS_MAX = 64, PEER_HOST = 256, PEER_ADDRESS = 64 };

struct peers;
struct peers_conf {
    const char *peers;  // "host[:port],..."; an IPv6 address with a port in brackets
    const char *host;   // address to bind to; "": all
    unsigned port;      // ours, and of peers that give none
    const char *secret; // "": datagrams are not signed and not checked
    unsigned heartbeat_ms, dead_ms;
    unsigned receive_mb; // of the socket's buffer
    void (*on_note)(void *ctx,
                    const struct peer_note *note); // not of heartbeats, nor of ourselves
    void *ctx;
};

MUST_USE int peers_open(struct peers **m, uv_loop_t *loop, const struct peers_conf *conf,
                        struct fault *f);
// Any thread, until peers_close().  Neither blocks nor fails: a datagram that cannot be sent is
// counted as dropped.
void peers_notify(struct peers *m, enum peer_kind kind, span queue, span partition,
                  bool enabled);
// On the loop.  The memory stays until peers_free(): other threads may still notify.
void peers_close(struct peers *m);
void peers_free(struct peers *m); // after the loop has ended; NULL is fine

// A copy of the state, for any thread.
struct peer_view {
    char host[PEER_HOST];
    unsigned port;
    bool resolved, is_self;
    char address[PEER_ADDRESS];    // when resolved
    char learned[PEER_SENDER + 1]; // id of the server there; "": nothing received yet
};
struct peers_view {
    char server_id[PEER_SENDER + 1], session[PEER_SESSION + 1];
    unsigned port;
    uint64_t sent, received, dropped, bad_signatures, bad_sequences, stale, heartbeats,
        restarts;
    unsigned n_tracked, n_alive;
    unsigned n_peers;
    struct peer_view peer[PEERS_MAX];
};
void peers_view(struct peers *m, struct peers_view *view);

#endif
