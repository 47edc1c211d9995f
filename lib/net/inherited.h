// inherited.h: listening sockets that systemd passes to the process (LISTEN_FDS).
#ifndef QUEEN_NET_INHERITED_H
#define QUEEN_NET_INHERITED_H

#include <sys/socket.h>

#include "base/attrs.h"
#include "base/err.h"

// The socket that listens on this address, non-blocking and close-on-exec, or -1. It is given:
// each one once.
int inherited_take(const struct sockaddr *address);
// Fails if a socket was passed that nobody took: its clients would wait for ever.
MUST_USE int inherited_check(struct fault *f);

#endif
