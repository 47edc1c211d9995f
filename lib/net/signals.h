// signals.h: what the outside world may ask of the process.
//
//      TERM, INT, HUP   stop: first cleanly, the second time at once
//      USR1             log a summary of the state
//      PIPE             nothing: a write to a gone peer is an error code
#ifndef QUEEN_NET_SIGNALS_H
#define QUEEN_NET_SIGNALS_H

#include <uv.h>

#include "base/attrs.h"

enum { SIGNALS_N = 4 };

struct signals { // in the owner's memory; all fields are its own
    uv_signal_t handle[SIGNALS_N];
    unsigned n_open;
    void (*on_stop)(void *ctx, int signum);
    void (*on_dump)(void *ctx);
    void (*closed)(void *ctx);
    void *ctx;
};

MUST_USE int signals_open(struct signals *s, uv_loop_t *loop,
                          void (*on_stop)(void *ctx, int signum), void (*on_dump)(void *ctx),
                          void *ctx);
void signals_close(struct signals *s, void (*closed)(void *ctx));

#endif
