// server.h: the whole of `queen serve`.
//
//      bind ──► database ──► workers ──► accept ... signal ──► drain ──► close ──► end
//
// The calling thread becomes the acceptor: it owns the listening socket, the signals, the
// embedded PostgreSQL and the order of starting and stopping, and never serves a request.
// It must be the process's main thread (the embedded PostgreSQL dies with it).
#ifndef QUEEN_SERVER_SERVER_H
#define QUEEN_SERVER_SERVER_H

#include "base/attrs.h"
#include "base/err.h"
#include "conf/serve.h"

enum server_exit {
    SERVER_OK = 0,
    SERVER_BAD_CONF = 1,     // printed on stderr in one line
    SERVER_CANNOT_START = 2, // the same
};

// Serves until a signal; returns the program's exit code, one of enum server_exit.
// conf is borrowed for the call; log_setup() has been called.
int server_run(const struct serve_conf *conf);
// 0, or QE_CONF: the settings are invalid. Changes nothing.
MUST_USE int server_check(const struct serve_conf *conf, struct fault *f);

#endif
