// listeners.h: the listening sockets of a server: all addresses, plain and TLS.
//
// A server without authentication listens on loopback only, which is two sockets: 127.0.0.1 and
// ::1. A TLS port next to the plain one doubles them.
#ifndef QUEEN_NET_LISTENERS_H
#define QUEEN_NET_LISTENERS_H

#include <stdbool.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/listener.h"

enum { LISTENERS_MAX = 4 };

struct listeners_conf {
    const char *host;  // "": loopback, IPv4 and IPv6
    unsigned port;     // 0: any free port
    unsigned tls_port; // 0: none besides port
    bool tls;          // port speaks TLS
    void *ctx;         // passed to the callbacks
    bool (*admit)(void *ctx);
    // fd is given, see listener.h; tls: its port speaks TLS.
    void (*accepted)(void *ctx, int fd, bool tls);
};

struct listeners { // in the owner's memory; all fields are private
    struct listeners_conf conf;
    struct listener *plain[LISTENERS_MAX], *tls[LISTENERS_MAX];
    unsigned n_plain, n_tls;
};

// On failure nothing is open and f holds the reason. A machine without IPv6 listens on
// 127.0.0.1 only.
MUST_USE int listeners_open(struct listeners *l, uv_loop_t *loop,
                            const struct listeners_conf *conf, struct fault *f);
void listeners_close(struct listeners *l); // may be called for a zeroed struct
unsigned listeners_port(const struct listeners *l);
// Appends the URLs that it listens on: "http://127.0.0.1:6632 and http://[::1]:6632".
void listeners_put_urls(const struct listeners *l, struct buf *out);
// One URL that a client on this machine can use.
void listeners_put_local_url(const struct listeners *l, struct buf *out);

// Whether only programs on this machine can connect to that address. "": yes.
bool listeners_is_loopback(const char *host);

#endif
