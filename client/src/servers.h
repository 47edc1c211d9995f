// servers.h: which server is asked next.
//
// No server is asked how it is: one that failed (5xx, connection) is left alone for a while,
// one that answered is well.  When none is well all are tried.
#ifndef QUEEN_CLIENT_SERVERS_H
#define QUEEN_CLIENT_SERVERS_H

#include <stdint.h>

#include "address.h"
#include "queen/client.h"
#include "ring.h"

struct server {
    struct address address;
    uint64_t sick_until_us; // 0: it is well
};

struct servers {
    struct server *list;
    unsigned n;
    unsigned next; // in turn
    enum queen_strategy strategy;
    uint64_t unhealthy_us;
    struct ring ring;
};

// urls: one or several with commas between.
MUST_USE int servers_init(struct servers *s, const char *urls, enum queen_strategy strategy,
                          unsigned unhealthy_ms, struct queen_error *err);
void servers_deinit(struct servers *s);

// tried: a bit for each server (of the first 64) that this call has failed on already; those
// are chosen last.  key SPAN_NONE: in turn.
unsigned servers_choose(struct servers *s, span key, uint64_t tried, uint64_t now_us);
void servers_note(struct servers *s, unsigned server, bool well, uint64_t now_us);

#endif
