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

enum heal_state { HEAL_HEALTHY, HEAL_WAITING, HEAL_REBUILDING, HEAL_WATCHDOG };

struct heal_conf {
    const unsigned *pauses_ms; // before the rebuilds of the second layer
    unsigned n_pauses;
    unsigned watchdog_ms;
    unsigned stale_ms;
};

// A rebuild: first torn down, then subscribed.  Both are told by heal_done().
struct heal_ops {
    void (*tear_down)(void *ctx); // forget all connections and what is under way on them
    void (*subscribe)(void *ctx); // start from scratch; the result is told by heal_done()
    void *ctx;
};

struct heal {
    struct heal_conf conf;
    struct heal_ops ops;
    enum heal_state state;
    unsigned n_failed; // rebuilds in a row
    uint64_t due_ms;   // WAITING, WATCHDOG: when the next one begins
    uint64_t last_event_ms;
    unsigned n_rebuilds;
};

extern const struct heal_conf heal_defaults; // 5 s, 10 s, 15 s; 60 s; 5 min

void heal_init(struct heal *h, const struct heal_conf *conf, struct heal_ops ops,
               uint64_t now_ms);

// Something went wrong.  While it is being dealt with, more of it changes nothing.
void heal_error(struct heal *h, uint64_t now_ms);
// An event has come: the connection works.
void heal_event(struct heal *h, uint64_t now_ms);
// A look at the queue: does it have events that we should have got?
void heal_look(struct heal *h, bool has_events, uint64_t now_ms);
// Calls tear_down and subscribe when their time has come.
void heal_tick(struct heal *h, uint64_t now_ms);
// Of a subscribe: did it work?
void heal_done(struct heal *h, bool works, uint64_t now_ms);

#endif
