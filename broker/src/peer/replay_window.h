// replay_window.h: recognises datagrams that were received before.
//
// Sequence numbers of one sender and session may overtake one another by a little (several
// threads send). A window of 64 records which were received.
//
// A session begins with the time of its start, so that later sessions compare greater. A
// greater session of a known sender is a restart. A lower one is a recording and is refused:
// accepting it would silence the sender, whose own datagrams would then look old. It is
// accepted only when the sender has been silent long enough to be dead, because its clock may
// have been set back. Datagrams that are older or newer than PEER_FRESH_MS by our clock are
// refused, so that a recording is useless after a minute even for a server that has just
// started and knows no session.
#ifndef QUEEN_PEER_REPLAY_WINDOW_H
#define QUEEN_PEER_REPLAY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "peer/datagram.h"

enum { REPLAY_WINDOWS_MAX = 64, PEER_FRESH_MS = 60000 };
enum { SESSION_TIME_DIGITS = 11 }; // hexadecimal, milliseconds since 1970; the rest is random

struct replay_window {
    char sender[PEER_SENDER + 1];
    char session[PEER_SESSION + 1];
    uint64_t top, seen;   // bit i of seen: top - i was received
    uint64_t received_us; // monotonic
};

struct replay_windows {
    struct replay_window server[REPLAY_WINDOWS_MAX];
    unsigned n;
    unsigned n_restarts;
};

struct replay_clock {
    uint64_t now_us;  // monotonic
    uint64_t wall_ms; // since 1970
    uint64_t dead_us; // a sender that is silent for longer is dead
};

enum replay_verdict {
    REPLAY_NEW,
    REPLAY_OLD,   // received before, of an earlier session, or from more servers than we keep
                  // (the one silent longest makes room once it is dead)
    REPLAY_STALE, // the sender's clock and ours differ by more than PEER_FRESH_MS
};
enum replay_verdict replay_window_admit(struct replay_windows *h, const struct peer_note *note,
                                        const struct replay_clock *clock);
// Writes the time and 4 random digits.
void replay_session_make(char session[PEER_SESSION + 1], uint64_t wall_ms, uint16_t random);
unsigned replay_window_alive(const struct replay_windows *h, uint64_t now_us, uint64_t dead_us);

#endif
