// breaker.h: is a tenant's database worth asking?  The rule alone, without a clock of its own.
//
//      CLOSED ── failures in a row ──► OPEN ── pause over ──► PROBING ── it answers ──► CLOSED
//                                        ▲                       │
//                                        └── pause doubles ──────┘
#ifndef QUEEN_TENANT_BREAKER_H
#define QUEEN_TENANT_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct breaker_conf {
    unsigned failures; // in a row, before it opens
    uint64_t pause_us; // before the first probe
    uint64_t max_pause_us;
};

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_PROBING };

struct breaker { // {0} is closed
    enum breaker_state state;
    unsigned failures;
    unsigned probes;    // that failed since it opened
    uint64_t opened_us; // when it opened
    uint64_t next_us;   // when to probe
    uint64_t n_opened;  // how often it has opened
};

// A use went well, or failed.  hard: nothing could be reached at all, no need for more proof.
// True: it has opened just now.
void breaker_good(struct breaker *b);
bool breaker_bad(struct breaker *b, const struct breaker_conf *c, bool hard, uint64_t now_us);

static inline bool breaker_is_closed(const struct breaker *b)
{
    return b->state == BREAKER_CLOSED;
}
// True: probe now, and report with breaker_probed().
bool breaker_is_due(struct breaker *b, uint64_t now_us);
void breaker_probed(struct breaker *b, const struct breaker_conf *c, bool good,
                    uint64_t now_us);

#endif
