// datagram.h: the format of notifications between servers of one database.
//
//      0  version 1 | kind | length of the body (2)
//      4  HMAC-SHA256 over everything but itself; zeros without a secret
//     36  sender, 32 bytes, zero padded
//     68  session, 16 bytes: start time and random digits, 15 characters and NUL
//     84  sequence (8)
//     92  a MessagePack map
//
// Numbers are big-endian.  A datagram is a hint to look into the database, never a fact: what a
// stranger sends can cost a look, not a message.
#ifndef QUEEN_PEER_DATAGRAM_H
#define QUEEN_PEER_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum { PEER_HEADER = 92, PEER_MAX_BODY = 1308, PEER_MAX = PEER_HEADER + PEER_MAX_BODY };
enum { PEER_SENDER = 32, PEER_SESSION = 16 };

enum peer_kind {
    PEER_AVAILABLE = 1,   // something was stored: queue, partition
    PEER_FREE = 2,        // a lease ended and something is left: queue
    PEER_HEARTBEAT = 3,   //
    PEER_CONFIGURED = 10, // queue
    PEER_DELETED = 11,    // queue
    PEER_PUSH_MODE = 40,  // a maintenance mode was switched
    PEER_POP_MODE = 41,
    PEER_KEYS = 50, // API keys were created or revoked
};

struct peer_note {
    uint8_t kind;                 // of enum peer_kind, or an unknown one
    char sender[PEER_SENDER + 1]; // NUL-terminated here
    char session[PEER_SESSION + 1];
    uint64_t sequence;
    uint64_t at_ms;        // the sender's clock
    span queue, partition; // SPAN_NONE: not given
    bool enabled;          // of a mode
};

// Returns the length; 0: the names do not fit.
size_t peer_encode(const struct peer_note *note, span secret, uint8_t out[PEER_MAX]);

enum peer_verdict { PEER_OK, PEER_MALFORMED, PEER_BAD_SIGNATURE };
// The spans of *note point into the datagram.
enum peer_verdict peer_decode(span datagram, span secret, struct peer_note *note);

#endif
