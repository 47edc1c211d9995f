// embed.h: a PostgreSQL of our own, for a broker without PG_HOST.
//
//      embed_prepare ──► embed_start ──► on_ready ⇄ on_died ──► embed_stop ──► embed_free
//         (blocks)                            └─ restarted ─┘
//
// The data directory holds
//
//      queen.lock      flock()ed while a broker uses the directory; says which process
//      pg/             the cluster, made by initdb once (pg.tmp/ until it is finished)
//      run/            the Unix socket, 0700; no TCP port is opened
//      log/            the server's log, one file per weekday, overwritten after a week
//      postgresql.log  what it says before it opens its log
//
// The server is our child and dies with us: it gets SIGINT (fast shutdown) from the kernel when
// the thread that called embed_start ends, so that must be the main thread.  A server that
// outlived a killed broker is waited for, and asked to go, before another one is started.
#ifndef QUEEN_PG_EMBED_H
#define QUEEN_PG_EMBED_H

#include <sys/types.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"

struct embed;

struct embed_conf {
    const char *data_dir; // made if missing
    const char
        *bin_dir; // where postgres and initdb are; NULL or "": PATH, then the newest installed
    const char *run_as; // user, looked at only when we are root; NULL or "": postgres
};

struct embed_events {
    void (*on_ready)(void *ctx);            // takes connections; also after each restart
    void (*on_died)(void *ctx, int status); // as of waitpid(); a restart follows; may be NULL
};

// Blocks (initdb takes seconds).  Locks the directory, makes the cluster if there is none,
// writes its settings.  On success *e is given: embed_free().
MUST_USE int embed_prepare(const struct embed_conf *conf, struct embed **e, struct fault *f);

// Once per embed.  Keeps the server running until embed_stop.
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

#endif
