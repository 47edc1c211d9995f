// platform.h: runs the program queen-platform.
//
//       bind ──► control database ──► parts start ──► serve ... signal ──► drain ──► parts stop
//                                                                     ──► pools ──► database
//
// One thread, one loop.  It must be the main thread of the process, because an embedded
// PostgreSQL dies with that thread.  Several processes share the work through the control
// database and the broker.
#ifndef QUEEN_PLATFORM_PLATFORM_H
#define QUEEN_PLATFORM_PLATFORM_H

#include "base/attrs.h"
#include "base/err.h"
#include "conf/platform.h"

enum platform_exit {
    PLATFORM_OK = 0,
    PLATFORM_BAD_CONF = 1,     // reported on stderr in one line
    PLATFORM_CANNOT_START = 2, // likewise
};

// Serves until a signal arrives and returns the exit code.  conf is borrowed for the call;
// log_setup() must have been called.
int platform_run(const struct platform_conf *conf);
// 0, or QE_CONF: the settings are invalid. Changes nothing.
MUST_USE int platform_check(const struct platform_conf *conf, struct fault *f);

#endif
