// platform.h: the whole of `queen platform`.
//
//      bind ──► control database ──► parts start ──► serve ... signal ──► drain ──► parts stop
//                                                                    ──► pools ──► database
//
// One thread, one loop.  It must be the process's main thread (an embedded PostgreSQL dies with
// it).  Several processes share the work through the control database and the broker.
#ifndef QUEEN_PLATFORM_PLATFORM_H
#define QUEEN_PLATFORM_PLATFORM_H

#include "conf/platform.h"

enum platform_exit {
    PLATFORM_OK = 0,
    PLATFORM_BAD_CONF = 1,     // told on stderr in one line
    PLATFORM_CANNOT_START = 2, // the same
};

// Serves until a signal; returns the program's exit code.  conf is borrowed for the call;
// log_setup() has been called.
int platform_run(const struct platform_conf *conf);

#endif
