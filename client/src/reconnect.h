// reconnect.h: decides when a processor re-establishes its connection.
//
//     healthy ──error──► 5 s ─► rebuild ─► 10 s ─► rebuild ─► 15 s ─► rebuild ──► watchdog
//        ▲                          │ worked                                │  every 60 s
//        └──────────────────────────┴───────────────────────────────────────┘
//
// The first layer is in pool.c: a connection is checked before it is used. This file has the
// second layer (three rebuilds) and the third (the watchdog). A stale connection is rebuilt as
// well: no event for 5 minutes although the queue has some.
//
// No clock is read here: every function takes the time as a parameter, so tests need none.
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

// A rebuild first tears down, then subscribes; reconnect_done() reports its result.
struct reconnect_ops {
    void (*tear_down)(void *ctx); // close all connections and cancel their calls
    void (*subscribe)(void *ctx); // start from scratch; reconnect_done() reports the result
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

// An error occurred. Further errors have no effect until it is resolved.
void reconnect_error(struct reconnect *h, uint64_t now_ms);
// An event has arrived: the connection works.
void reconnect_event(struct reconnect *h, uint64_t now_ms);
// The queue was checked: whether it has events that should have arrived.
void reconnect_look(struct reconnect *h, bool has_events, uint64_t now_ms);
// Calls tear_down and subscribe when they are due.
void reconnect_tick(struct reconnect *h, uint64_t now_ms);
// The result of a subscribe.
void reconnect_done(struct reconnect *h, bool works, uint64_t now_ms);

#endif
