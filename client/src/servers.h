// servers.h: chooses the server for the next attempt.
//
// There are no health checks: a server that failed (5xx, connection) is avoided for a while,
// one that answered is healthy. If none is healthy, all are tried.
#ifndef QUEEN_CLIENT_SERVERS_H
#define QUEEN_CLIENT_SERVERS_H

#include <stdint.h>

#include "address.h"
#include "queen/client.h"
#include "ring.h"

struct server {
    struct address address;
    uint64_t sick_until_us; // 0: healthy
};

struct servers {
    struct server *list;
    unsigned n;
    unsigned next; // in turn
    enum queen_strategy strategy;
    uint64_t unhealthy_us;
    struct ring ring;
};

// urls: one or several, separated by commas.
MUST_USE int servers_init(struct servers *s, const char *urls, enum queen_strategy strategy,
                          unsigned unhealthy_ms, struct queen_error *err);
void servers_deinit(struct servers *s);

// tried: a bit per server (of the first 64) on which this call has already failed; those are
// chosen last. key SPAN_NONE: in turn.
unsigned servers_choose(struct servers *s, span key, uint64_t tried, uint64_t now_us);
void servers_note(struct servers *s, unsigned server, bool well, uint64_t now_us);

#endif
