// signals.h: signals that the process handles.
//
//     TERM, INT, HUP   stop: the first one gracefully, the second at once
//     HUP              with on_reload: load files again instead
//     USR1             log a summary of the state
//     PIPE             ignored: a write to a closed peer returns an error code
#ifndef QUEEN_NET_SIGNALS_H
#define QUEEN_NET_SIGNALS_H

#include <uv.h>

#include "base/attrs.h"

enum { SIGNALS_N = 4 };

struct signals { // in the owner's memory; all fields are private
    uv_signal_t handle[SIGNALS_N];
    unsigned n_open;
    void (*on_stop)(void *ctx, int signum);
    void (*on_dump)(void *ctx);
    void (*on_reload)(void *ctx); // NULL: HUP stops the process
    void (*closed)(void *ctx);
    void *ctx;
};

MUST_USE int signals_open(struct signals *s, uv_loop_t *loop,
                          void (*on_stop)(void *ctx, int signum), void (*on_dump)(void *ctx),
                          void *ctx);
void signals_close(struct signals *s, void (*closed)(void *ctx));

#endif
