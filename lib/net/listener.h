// listener.h: one listening socket that passes accepted connections to a callback.
//
//     listener_open ──► accept ──► admit? ──► accepted(fd)
//
// Per turn of the loop at most LISTENER_BURST connections are accepted, so that a flood of new
// connections does not starve the existing ones. When the process has no descriptor left,
// waiting clients are disconnected and the listener pauses for a moment instead of spinning.
#ifndef QUEEN_NET_LISTENER_H
#define QUEEN_NET_LISTENER_H

#include <stdbool.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

enum { LISTENER_BURST = 64, LISTENER_REST_MS = 100 };

struct listener;

struct listener_conf {
    const char *host; // IPv4 or IPv6 literal (brackets allowed) or a name; NULL: all of IPv4
    unsigned port;    // 0: any free port
    int backlog;      // 0: 1024
    void *ctx;        // passed to the callbacks

    // Whether one more connection may be served. NULL: always. A refused one is closed at
    // once.
    bool (*admit)(void *ctx);
    // fd is given: connected, non-blocking, close-on-exec, TCP_NODELAY.
    void (*accepted)(void *ctx, int fd);
};

// conf is copied. On failure *l is NULL and f holds the reason.
MUST_USE int listener_open(struct listener **l, uv_loop_t *loop,
                           const struct listener_conf *conf, struct fault *f);
unsigned listener_port(const struct listener *l); // the actual port when conf.port was 0
// Appends the actual address: "127.0.0.1:6632" or "[::1]:6632".
void listener_put_address(const struct listener *l, struct buf *out);
bool listener_is_everywhere(const struct listener *l); // bound to 0.0.0.0 or ::
unsigned long
listener_refused(const struct listener *l); // connections refused so far; loop's thread only
// Stops accepting at once, then frees l and calls closed (may be NULL).
void listener_close(struct listener *l, void (*closed)(void *ctx), void *ctx);

#endif
