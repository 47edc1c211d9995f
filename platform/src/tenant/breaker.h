// breaker.h: the rules of a circuit breaker for a tenant's database.  The caller passes the
// time.
//
//       CLOSED ── failures in a row ──► OPEN ── pause over ──► PROBING ── success ──► CLOSED
//                                         ▲                       │
//                                         └── pause doubles ──────┘
#ifndef QUEEN_TENANT_BREAKER_H
#define QUEEN_TENANT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct breaker_conf {
    unsigned failures; // consecutive failures that open it
    uint64_t pause_us; // before the first probe
    uint64_t max_pause_us;
};

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };

struct breaker { // {0} is closed
    enum breaker_state state;
    unsigned failures;
    unsigned probes;    // failed probes since it opened
    uint64_t opened_us; // time at which it opened
    uint64_t next_us;   // time of the next probe
    uint64_t n_opened;  // number of times that it opened
};

// Report a success or a failure.  hard: the database was unreachable, so one failure is enough.
// breaker_bad() returns true if the breaker opened with this call.
void breaker_good(struct breaker *b);
bool breaker_bad(struct breaker *b, const struct breaker_conf *c, bool hard, uint64_t now_us);

static inline bool breaker_is_closed(const struct breaker *b)
{
    return b->state == BREAKER_CLOSED;
}
// Returns true if a probe is due.  The caller probes and calls breaker_probed().
bool breaker_is_due(struct breaker *b, uint64_t now_us);
void breaker_probed(struct breaker *b, const struct breaker_conf *c, bool good,
                    uint64_t now_us);

#endif
