// embed_int.h: declarations shared by the files of the embedded PostgreSQL.
#ifndef QUEEN_PG_EMBED_INT_H
#define QUEEN_PG_EMBED_INT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "pg/embed.h"

enum embed_state {
    EMBED_NEW,
    EMBED_STARTING,
    EMBED_READY,
    EMBED_PAUSED,
    EMBED_STOPPING,
    EMBED_OVER
};

struct embed {
    char data[PATH_MAX - 64]; // absolute
    char pg[PATH_MAX];        // data/pg
    char bin[PATH_MAX - 64];
    char socket_dir[108];
    char conninfo[256];
    int lock_fd;
    bool drops; // we are root and the server must run as another user
    uid_t uid;
    gid_t gid;

    // embed_server.c
    enum embed_state state;
    uv_loop_t *loop;
    uv_signal_t sigchld;
    uv_timer_t timer;
    unsigned n_handles;
    pid_t pid;
    unsigned n_deaths; // deaths since it last ran for long
    uint64_t started_us, stopping_us;
    struct embed_events on;
    void *ctx;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

// embed_child.c: runs a program as the server's user, in its own session, with an empty stdin
// and its output appended to log_path (NULL: ours). dies_with_us: SIGINT when this thread ends.
pid_t embed_spawn(const struct embed *e, char *const argv[], const char *log_path,
                  bool dies_with_us);
// The same, but waits for it; the exit status as from waitpid(), or -1.
int embed_run(const struct embed *e, char *const argv[], const char *log_path);
// Finds the directory on the way to path that the server's user may not enter; false: none.
bool embed_blocked_at(const struct embed *e, const char *path, char out[PATH_MAX]);

// embed_find.c: fills e->bin; major is that of an existing cluster, or 0.
MUST_USE int embed_find(struct embed *e, const char *wanted, int major, struct fault *f);

// embed_tune.c: writes pg/queen.conf for this machine.
MUST_USE int embed_tune(const struct embed *e, struct fault *f);

// embed_server.c: the pid of a server that runs on this cluster, 0 if none.
pid_t embed_other_server(const struct embed *e, char status[16]);

#endif
