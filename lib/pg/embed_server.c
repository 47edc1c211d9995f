// embed_server.c: runs the embedded server: start, supervise, restart, stop.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pg/embed_int.h"

enum {
    LOOK_MS = 25,       // interval of checks while it starts
    PAUSE_MIN_MS = 100, // before a restart
    PAUSE_MAX_MS = 5000,
    LONG_RUN_US = 60000000, // after such a run a death counts as the first one
    MAX_EARLY_LOG = 4 << 20,
    QUIT_AFTER_MS = 30000, // a fast shutdown writes a checkpoint first
    KILL_AFTER_MS = 5000,
};

// Life of the server, in order.
static void embed_server_start(struct embed *e);
static void on_embed_timer(uv_timer_t *timer);
static void embed_server_look(struct embed *e);
static void on_sigchld(uv_signal_t *handle, int signum);
static void died(struct embed *e, int status);
static void insist(struct embed *e);
static void embed_server_finish(struct embed *e);
static void on_embed_server_handle_closed(uv_handle_t *handle);

// The cluster's postmaster.pid: pid on line 1, status on line 8 (as pg_ctl reads it).
static pid_t read_pid_file(const struct embed *e, char status[16])
{
    char path[PATH_MAX + 32], line[256];
    long pid = 0;

    status[0] = '\0';
    snprintf(path, sizeof path, "%s/postmaster.pid", e->pg);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return 0;
    for (int n = 1; fgets(line, sizeof line, f) != NULL; n++) {
        if (n == 1)
            pid = strtol(line, NULL, 10);
        if (n == 8)
            sscanf(line, "%15s", status);
    }
    fclose(f);
    return pid > 0 ? (pid_t)pid : 0;
}

// The pid may have been reused by another program. The working directory of a server is its
// cluster.
pid_t embed_other_server(const struct embed *e, char status[16])
{
    char link[64], cwd[PATH_MAX];
    pid_t pid = read_pid_file(e, status);

    if (pid == 0 || (kill(pid, 0) != 0 && errno == ESRCH))
        return 0;
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    ssize_t n = readlink(link, cwd, sizeof cwd - 1);
    if (n < 0)
        return 0; // it has exited, or belongs to another user
    cwd[n] = '\0';
    return strcmp(cwd, e->pg) == 0 ? pid : 0;
}

void embed_start(struct embed *e, uv_loop_t *loop, struct embed_events on, void *ctx)
{
    assert(e->state == EMBED_NEW);
    e->loop = loop;
    e->on = on;
    e->ctx = ctx;
    uv_signal_init(loop, &e->sigchld);
    uv_timer_init(loop, &e->timer);
    e->sigchld.data = e->timer.data = e;
    e->n_handles = 2;
    uv_signal_start(&e->sigchld, on_sigchld, SIGCHLD);
    embed_server_start(e);
}

static void make_early_log(const char *path)
{
    struct stat st;
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

    if (stat(path, &st) == 0 && st.st_size > MAX_EARLY_LOG)
        flags |= O_TRUNC;
    int fd = open(path, flags, 0640);
    if (fd < 0)
        log_warn("embed.log_failed", "path=\"%s\" error=\"%s\"", path, strerror(errno));
    else
        close(fd);
}

static void pause_then_start(struct embed *e)
{
    unsigned doublings = e->n_deaths < 7 ? e->n_deaths : 7;
    uint64_t ms = (uint64_t)PAUSE_MIN_MS << doublings;

    e->state = EMBED_PAUSED;
    e->n_deaths++;
    uv_timer_start(&e->timer, on_embed_timer, ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS, 0);
}

static void embed_server_start(struct embed *e)
{
    char program[PATH_MAX], log[PATH_MAX], pg[PATH_MAX], socket[160];

    snprintf(program, sizeof program, "%s/postgres", e->bin);
    snprintf(log, sizeof log, "%s/postgresql.log", e->data);
    snprintf(pg, sizeof pg, "%s", e->pg);
    snprintf(socket, sizeof socket, "unix_socket_directories=%s", e->socket_dir);
    make_early_log(log);
    // On the command line, so that no file can override it: private socket, no network.
    char *argv[] = {program,
                    (char[]){"-D"},
                    pg,
                    (char[]){"-c"},
                    socket,
                    (char[]){"-c"},
                    (char[]){"listen_addresses="},
                    (char[]){"-c"},
                    (char[]){"unix_socket_permissions=0700"},
                    (char[]){"-c"},
                    (char[]){"port=5432"},
                    NULL};
    pid_t pid = embed_spawn(e, argv, log, true);
    if (pid < 0) {
        log_error("embed.fork_failed", "error=\"%s\"", strerror(errno));
        pause_then_start(e);
        return;
    }
    e->pid = pid;
    e->started_us = clock_mono_us();
    e->state = EMBED_STARTING;
    log_info("embed.started", "pid=%d dir=\"%s\"", (int)pid, e->pg);
    uv_timer_start(&e->timer, on_embed_timer, LOOK_MS, LOOK_MS);
}

static void on_embed_timer(uv_timer_t *timer)
{
    struct embed *e = timer->data;

    switch (e->state) {
    case EMBED_STARTING:
        embed_server_look(e);
        break;
    case EMBED_PAUSED:
        embed_server_start(e);
        break;
    case EMBED_STOPPING:
        insist(e);
        break;
    default:
        break;
    }
}

static void embed_server_look(struct embed *e)
{
    char status[16];

    if (read_pid_file(e, status) != e->pid || strcmp(status, "ready") != 0)
        return;
    e->state = EMBED_READY;
    uv_timer_stop(&e->timer);
    log_info("embed.ready", "pid=%d after_ms=%llu", (int)e->pid,
             (unsigned long long)(clock_mono_us() - e->started_us) / 1000);
    e->on.on_ready(e->ctx);
}

static void on_sigchld(uv_signal_t *handle, int signum)
{
    struct embed *e = handle->data;
    int status;

    (void)signum;
    // Wait only for our own child; other children belong to other code.
    if (e->pid != 0 && waitpid(e->pid, &status, WNOHANG) == e->pid)
        died(e, status);
}

static void died(struct embed *e, int status)
{
    e->pid = 0;
    if (e->state == EMBED_STOPPING) {
        log_info("embed.stopped", "after_ms=%llu",
                 (unsigned long long)(clock_mono_us() - e->stopping_us) / 1000);
        embed_server_finish(e);
        return;
    }
    if (WIFSIGNALED(status))
        log_error("embed.crashed", "signal=%d log=\"%s/postgresql.log\"", WTERMSIG(status),
                  e->data);
    else
        log_error("embed.crashed", "exit=%d log=\"%s/postgresql.log\"", WEXITSTATUS(status),
                  e->data);
    if (clock_mono_us() - e->started_us > LONG_RUN_US)
        e->n_deaths = 0;
    pause_then_start(e);
    if (e->on.on_died != NULL)
        e->on.on_died(e->ctx, status);
}

void embed_stop(struct embed *e, void (*stopped)(void *ctx), void *ctx)
{
    assert(e->state != EMBED_NEW && e->state != EMBED_STOPPING && e->state != EMBED_OVER);
    e->state = EMBED_STOPPING;
    e->stopped = stopped;
    e->stopped_ctx = ctx;
    e->stopping_us = clock_mono_us();
    if (e->pid == 0) {
        embed_server_finish(e); // it was waiting for a restart
        return;
    }
    kill(e->pid, SIGINT);
    uv_timer_start(&e->timer, on_embed_timer, QUIT_AFTER_MS, KILL_AFTER_MS);
}

static void insist(struct embed *e)
{
    bool first = clock_mono_us() - e->stopping_us < (QUIT_AFTER_MS + KILL_AFTER_MS) * 1000ULL;

    log_warn("embed.stop_timeout", "pid=%d signal=%s", (int)e->pid, first ? "QUIT" : "KILL");
    kill(e->pid, first ? SIGQUIT : SIGKILL);
}

static void embed_server_finish(struct embed *e)
{
    uv_close((uv_handle_t *)&e->timer, on_embed_server_handle_closed);
    uv_close((uv_handle_t *)&e->sigchld, on_embed_server_handle_closed);
}

static void on_embed_server_handle_closed(uv_handle_t *handle)
{
    struct embed *e = handle->data;

    if (--e->n_handles > 0)
        return;
    e->state = EMBED_OVER;
    if (e->stopped != NULL)
        e->stopped(e->stopped_ctx);
}

pid_t embed_pid(const struct embed *e) { return e->pid; }
