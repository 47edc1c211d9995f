// received.h: how much a socket has received, for limits on what a peer may send.
#ifndef QUEEN_NET_RECEIVED_H
#define QUEEN_NET_RECEIVED_H

#include <stdint.h>

// Bytes that arrived over a TCP connection since it was opened.  0 for other sockets.
uint64_t net_received(int fd);

#endif
