// address.h: the list of peers as people write it, and addresses as text.
#ifndef QUEEN_PEER_ADDRESS_H
#define QUEEN_PEER_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/attrs.h"
#include "base/err.h"
#include "peer/peers.h"

struct peer_name {
    char host[PEER_HOST];
    unsigned port;
};

// "a, b:7000, [::1]:7001" -> names; those without a port get `port`.
MUST_USE int peer_names_parse(const char *list, unsigned port,
                              struct peer_name names[PEERS_MAX], unsigned *n, struct fault *f);

bool address_eq(const struct sockaddr_storage *a,
                const struct sockaddr_storage *b);                             // with the port
void address_format(const struct sockaddr_storage *a, char out[PEER_ADDRESS]); // without
socklen_t address_len(const struct sockaddr_storage *a);

#endif
