// reconnect.h: what a processor does about its connection, as a matter of time only.
//
//      healthy ──error──► 5 s ─► rebuild ─► 10 s ─► rebuild ─► 15 s ─► rebuild ──► watchdog
//         ▲                          │ worked                                │  every 60 s
//         └──────────────────────────┴───────────────────────────────────────┘
//
// The first layer is below: a link is checked before it is used (pool.c).  This is the second
// (three rebuilds) and the third (the watchdog, of which there is one: it is a state).  And the
// stale check: no event for 5 minutes although the queue has some means rebuild, too.
//
// No clock in here: every function is told the time, so tests need none.
#ifndef QUEEN_CLIENT_HEAL_H
#define QUEEN_CLIENT_HEAL_H

#include <stdbool.h>
#include <stdint.h>

enum reconnect_state {
    RECONNECT_HEALTHY,
    RECONNECT_WAITING,
    RECONNECT_REBUILDING,
    RECONNECT_WATCHDOG
};

struct reconnect_conf {
    const unsigned *pauses_ms; // before the rebuilds of the second layer
    unsigned n_pauses;
    unsigned watchdog_ms;
    unsigned stale_ms;
};

// A rebuild: first torn down, then subscribed.  Both are told by reconnect_done().
struct reconnect_ops {
    void (*tear_down)(void *ctx); // forget all connections and what is under way on them
    void (*subscribe)(void *ctx); // start from scratch; the result is told by reconnect_done()
    void *ctx;
};

struct reconnect {
    struct reconnect_conf conf;
    struct reconnect_ops ops;
    enum reconnect_state state;
    unsigned n_failed; // rebuilds in a row
    uint64_t due_ms;   // WAITING, WATCHDOG: when the next one begins
    uint64_t last_event_ms;
    unsigned n_rebuilds;
};

extern const struct reconnect_conf reconnect_defaults; // 5 s, 10 s, 15 s; 60 s; 5 min

void reconnect_init(struct reconnect *h, const struct reconnect_conf *conf,
                    struct reconnect_ops ops, uint64_t now_ms);

// Something went wrong.  While it is being dealt with, more of it changes nothing.
void reconnect_error(struct reconnect *h, uint64_t now_ms);
// An event has come: the connection works.
void reconnect_event(struct reconnect *h, uint64_t now_ms);
// A look at the queue: does it have events that we should have got?
void reconnect_look(struct reconnect *h, bool has_events, uint64_t now_ms);
// Calls tear_down and subscribe when their time has come.
void reconnect_tick(struct reconnect *h, uint64_t now_ms);
// Of a subscribe: did it work?
void reconnect_done(struct reconnect *h, bool works, uint64_t now_ms);

#endif
