// listener.h: one listening socket; connected sockets come out of a callback.
//
//      listener_open ──► accept ──► admit? ──► accepted(fd)
//
// Per turn of the loop at most LISTENER_BURST connections are accepted, so that a storm of them
// does not starve those that are served.  When the process has no descriptor left, waiting
// clients are turned away and the listener rests for a moment instead of spinning.
#ifndef QUEEN_NET_LISTENER_H
#define QUEEN_NET_LISTENER_H

#include <stdbool.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"

enum { LISTENER_BURST = 64, LISTENER_REST_MS = 100 };

struct listener;

struct listener_conf {
    const char *host; // IPv4 or IPv6 literal (brackets allowed) or a name; NULL: all of IPv4
    unsigned port;    // 0: any free one
    int backlog;      // 0: 1024
    void *ctx;        // for the callbacks

    // May one more connection be served?  NULL: always.  A refused one is closed at once.
    bool (*admit)(void *ctx);
    // fd is given: connected, non-blocking, close-on-exec, TCP_NODELAY.
    void (*accepted)(void *ctx, int fd);
};

// conf is copied.  On failure *l is NULL and f says what a person needs to know.
MUST_USE int listener_open(struct listener **l, uv_loop_t *loop,
                           const struct listener_conf *conf, struct fault *f);
unsigned listener_port(const struct listener *l); // the real one when conf.port was 0
unsigned long
listener_refused(const struct listener *l); // turned away so far; loop's thread only
// Stops accepting at once; then frees l and calls closed (may be NULL).
void listener_close(struct listener *l, void (*closed)(void *ctx), void *ctx);

#endif
