// replay_window.h: recognises datagrams that were received before.
//
// Sequence numbers of one sender and session may overtake one another by a little (several
// threads send). A window of 64 records which were received.  A new session of a known sender
// is a restart; sessions that have ended do not come back, so a recording of yesterday's
// datagrams is refused.
#ifndef QUEEN_PEER_REPLAY_WINDOW_H
#define QUEEN_PEER_REPLAY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "peer/datagram.h"

enum { REPLAY_WINDOWS_MAX = 64, REPLAY_WINDOW_ENDED = 4 };

struct replay_window {
    char sender[PEER_SENDER + 1];
    char session[PEER_SESSION + 1];
    char ended[REPLAY_WINDOW_ENDED][PEER_SESSION + 1]; // its last sessions before
    unsigned n_restarts;
    uint64_t top, seen;   // bit i of seen: top - i was received
    uint64_t received_us; // monotonic
};

struct replay_windows {
    struct replay_window server[REPLAY_WINDOWS_MAX];
    unsigned n;
    unsigned n_restarts;
};

// NULL: received before, of a session that has ended, or from more servers than we keep (the
// one silent longest makes room once it is dead).
const struct replay_window *replay_window_admit(struct replay_windows *h,
                                                const struct peer_note *note, uint64_t now_us,
                                                uint64_t dead_us);
unsigned replay_window_alive(const struct replay_windows *h, uint64_t now_us, uint64_t dead_us);

#endif
