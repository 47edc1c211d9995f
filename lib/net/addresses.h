// addresses.h: limits per client address, shared by all threads without a lock.
//
// Addresses are counted in a fixed table by a seeded hash, so that memory does not grow with
// the number of clients. Two addresses that share a slot share its limits. An IPv6 client
// counts by its /64 network, because it can choose any address in it.
#ifndef QUEEN_NET_ADDRESSES_H
#define QUEEN_NET_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct addresses;

enum { ADDRESS_NONE = UINT16_MAX, ADDRESS_FAILURE_S = 10 };

struct addresses_conf {
    unsigned max_connections; // per address; 0: no limit
    unsigned max_failures;    // answers with 401 in ADDRESS_FAILURE_S; 0: no limit
};

// The address of the socket's peer in IPv6 form (IPv4 as ::ffff:a.b.c.d); false: it has none.
bool addresses_peer(int fd, uint8_t ip[16]);

struct addresses *addresses_new(const struct addresses_conf *conf);
void addresses_free(struct addresses *a); // a may be NULL

// Counts a connection of the socket's peer. False: it has too many. *slot is then, and for a
// socket without an address, ADDRESS_NONE.
bool addresses_enter(struct addresses *a, int fd, uint16_t *slot);
void addresses_leave(struct addresses *a, uint16_t slot);

// A request of the address was refused because of its token.
void addresses_note_failure(struct addresses *a, uint16_t slot, uint64_t now_s);
// Whether it had too many of them: its next requests are refused unread.
bool addresses_is_barred(const struct addresses *a, uint16_t slot, uint64_t now_s);

#endif
