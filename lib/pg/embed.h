// embed.h: the embedded PostgreSQL, for a broker without PG_HOST.
//
//     embed_prepare ──► embed_start ──► on_ready ⇄ on_died ──► embed_stop ──► embed_free
//        (blocks)                            └─ restarted ─┘
//
// The data directory contains
//
//     queen.lock      flock()ed while a broker uses the directory; holds its pid
//     pg/             the cluster, created once by initdb (pg.tmp/ until it is complete)
//     run/            the Unix socket, 0700; no TCP port is opened
//     log/            the server's log, one file per weekday, overwritten after a week
//     postgresql.log  the server's output before it opens its log
//
// The server is a child process and ends with this one: the kernel sends it SIGINT (fast
// shutdown) when the thread that called embed_start() ends, so that must be the main thread.
// If the server of a killed broker still runs, it is stopped before a new one is started.
#ifndef QUEEN_PG_EMBED_H
#define QUEEN_PG_EMBED_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"

struct embed;

struct embed_conf {
    const char *data_dir; // created if missing
    const char *bin_dir;  // directory of postgres and initdb; NULL or "": PATH, then the newest
                          // installed
    const char *run_as;   // user to run as, only used when we are root; NULL or "": postgres
};

struct embed_events {
    void (*on_ready)(void *ctx); // accepts connections; also after each restart
    // status as from waitpid(); a restart follows; may be NULL
    void (*on_died)(void *ctx, int status);
};

// Blocks (initdb takes seconds). Locks the directory, creates the cluster if there is none,
// writes its settings. On success *e is given: embed_free().
MUST_USE int embed_prepare(const struct embed_conf *conf, struct embed **e, struct fault *f);

// Call once. Keeps the server running until embed_stop().
void embed_start(struct embed *e, uv_loop_t *loop, struct embed_events on, void *ctx);
// Clean shutdown: SIGINT, then SIGQUIT if that takes too long.  stopped is called once, later.
void embed_stop(struct embed *e, void (*stopped)(void *ctx), void *ctx);
// After stopped, or instead of embed_start.  Unlocks the directory.
void embed_free(struct embed *e);

pid_t embed_pid(const struct embed *e); // 0 while no server runs
const char *
embed_socket_dir(const struct embed *e); // the host of its connection string; borrowed
// "host=... user=postgres dbname=postgres"; borrowed until embed_free.
const char *embed_conninfo(const struct embed *e);

// Whether PostgreSQL's programs may inherit this "NAME=value". Others, such as JWT_SECRET and
// QUEEN_ENCRYPTION_KEY, may be secrets that they have no use for.
bool pg_child_may_see(const char *entry);

#endif
