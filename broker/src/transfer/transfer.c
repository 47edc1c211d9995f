// transfer.c: pg_dump and psql as children, joined by a pipe, watched from a thread.
//
// We hold the writing end of the pipe as well: psql must not see the end of a dump that has
// failed, because it would commit what had come so far.  It is closed when pg_dump has ended
// well; else psql is killed and the target stays as it was.
//
// Passwords reach the children in their environment, never as arguments.
#include "transfer/transfer.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/sql.gen.h"
#include "pg/embed.h"

enum { MAX_TABLES = 64, MAX_ENV = 512 };
static const char missing[] =
    "pg_dump and psql are needed and not in PATH: install the package postgresql-client";

struct child {
    uv_process_t process;
    uv_pipe_t err;
    char *output; // of the status
    char chunk[1024];
    struct pg_transfer *owner;
    bool running;
    int64_t exit_code;
    int signal;
};

struct pg_transfer {
    char *source;
    const char *targets;
    unsigned stall_ms;
    uv_mutex_t lock; // guards status, running, since_us
    struct pg_transfer_status status;
    bool running, has_thread;
    uint64_t since_us, took_us;
    uv_thread_t thread;
    // of the thread
    char *target;
    char *tables[MAX_TABLES];
    unsigned n_tables;
    uv_loop_t loop;
    uv_async_t stop;
    uv_timer_t watch;
    uint64_t n_read, read_ms; // bytes that psql has read, and when that changed
    bool stalled;
    struct child dump, restore;
    int fds[2]; // of the pipe; -1: closed
    bool stopped;
};

static void transfer_run(void *arg);
static int spawn_both(struct pg_transfer *t, struct fault *f);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);
static void on_ended(uv_process_t *process, int64_t code, int signal);
static void on_transfer_watch(uv_timer_t *watch);
static void on_transfer_stop(uv_async_t *stop);
static void conclude(struct pg_transfer *t, const struct fault *f);

struct pg_transfer *pg_transfer_new(const struct pg_transfer_conf *conf)
{
    struct pg_transfer *t = mem_new(struct pg_transfer);

    t->source = mem_strndup(conf->source, strlen(conf->source));
    t->targets = conf->targets;
    t->stall_ms = conf->stall_ms;
    if (uv_mutex_init(&t->lock) != 0)
        BUG("no mutex");
    return t;
}

static void join(struct pg_transfer *t)
{
    if (!t->has_thread)
        return;
    uv_thread_join(&t->thread);
    t->has_thread = false;
    free(t->target);
    for (unsigned i = 0; i < t->n_tables; i++)
        free(t->tables[i]);
    t->n_tables = 0;
}

void pg_transfer_free(struct pg_transfer *t)
{
    uv_mutex_lock(&t->lock);
    if (t->running)
        uv_async_send(&t->stop);
    uv_mutex_unlock(&t->lock);
    join(t);
    uv_mutex_destroy(&t->lock);
    free(t->source);
    free(t);
}

const char *pg_transfer_source(const struct pg_transfer *t) { return t->source; }
const char *pg_transfer_targets(const struct pg_transfer *t) { return t->targets; }

static bool is_program(const char *name)
{
    span rest = span_of(getenv("PATH")), dir;
    char path[4096];

    while (str_split(&rest, ':', &dir)) {
        snprintf(path, sizeof path, "%.*s/%s", (int)dir.len, dir.ptr, name);
        if (dir.len > 0 && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

int pg_transfer_start(struct pg_transfer *t, const char *target, const char *const *tables,
                      unsigned n_tables, struct fault *f)
{
    if (!is_program("pg_dump") || !is_program("psql"))
        return fault_set(f, QE_NOT_SUPPORTED, "%s", missing);

    uv_mutex_lock(&t->lock);
    int rc = t->running ? fault_set(f, QE_BUSY, "a migration is running") : 0;
    if (rc == 0) {
        join(t); // of the last one, which has ended
        t->status = (struct pg_transfer_status){.phase = TRANSFER_DUMPING};
        t->since_us = clock_mono_us();
        t->stopped = t->stalled = false;
        t->n_read = 0;
        t->target = mem_strndup(target, strlen(target));
        for (unsigned i = 0; i < n_tables && t->n_tables < MAX_TABLES; i++)
            t->tables[t->n_tables++] = mem_strndup(tables[i], strlen(tables[i]));
        if (uv_loop_init(&t->loop) != 0 ||
            uv_async_init(&t->loop, &t->stop, on_transfer_stop) != 0 ||
            uv_timer_init(&t->loop, &t->watch) != 0)
            BUG("no loop");
        t->stop.data = t->watch.data = t;
        t->running = true;
        if (uv_thread_create(&t->thread, transfer_run, t) != 0)
            BUG("no thread");
        t->has_thread = true;
    }
    uv_mutex_unlock(&t->lock);
    return rc;
}

int pg_transfer_reset(struct pg_transfer *t)
{
    uv_mutex_lock(&t->lock);
    bool running = t->running;
    if (!running)
        t->status = (struct pg_transfer_status){.phase = TRANSFER_IDLE}, t->took_us = 0;
    uv_mutex_unlock(&t->lock);
    return running ? QE_BUSY : 0;
}

void pg_transfer_status(struct pg_transfer *t, struct pg_transfer_status *out)
{
    uv_mutex_lock(&t->lock);
    *out = t->status;
    out->seconds =
        (double)(t->running ? clock_mono_us() - t->since_us : t->took_us) / 1000000.0;
    uv_mutex_unlock(&t->lock);
}

// ---- the thread ----

static void transfer_close_handles(struct pg_transfer *t)
{
    uv_close((uv_handle_t *)&t->stop, NULL);
    uv_close((uv_handle_t *)&t->watch, NULL);
}

static void transfer_run(void *arg)
{
    struct pg_transfer *t = arg;
    struct fault f = {0};

    log_info("transfer.started", "excluded=%u", t->n_tables);
    if (spawn_both(t, &f) != 0 && t->dump.running)
        uv_process_kill(&t->dump.process, SIGKILL);
    t->read_ms = uv_now(&t->loop);
    uv_timer_start(&t->watch, on_transfer_watch, t->stall_ms / 4 + 1, t->stall_ms / 4 + 1);
    if (!t->dump.running && !t->restore.running)
        transfer_close_handles(t);
    uv_run(&t->loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < 2; i++)
        if (t->fds[i] >= 0)
            close(t->fds[i]);
    conclude(t, &f);
}

// The variables by which libpq takes the settings of a conninfo; free with free_env().
static char **env_of(const char *conninfo)
{
    char **env = mem_new_array(char *, MAX_ENV), line[4096];
    unsigned n = 0;
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);

    for (char **e = environ; *e && n < MAX_ENV / 2; e++)
        if (pg_child_may_see(*e))
            env[n++] = mem_strndup(*e, strlen(*e));
    for (PQconninfoOption *o = options; o && o->keyword; o++) {
        // Our sessions' settings are for probes, not for dumps.
        if (!o->envvar || !o->val || !*o->val || strcmp(o->keyword, "options") == 0)
            continue;
        snprintf(line, sizeof line, "%s=%s", o->envvar, o->val);
        env[n++] = mem_strndup(line, strlen(line));
    }
    PQconninfoFree(options);
    return env;
}

static void free_env(char **env)
{
    for (char **e = env; *e; e++)
        free(*e);
    free((void *)env);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct child *c = handle->data;

    (void)size;
    *buf = uv_buf_init(c->chunk, sizeof c->chunk);
}

static int spawn(struct pg_transfer *t, struct child *c, char **args, const char *conninfo,
                 int in, int out)
{
    uv_stdio_container_t io[3] = {
        {.flags = in < 0 ? UV_IGNORE : UV_INHERIT_FD, .data.fd = in},
        {.flags = out < 0 ? UV_IGNORE : UV_INHERIT_FD, .data.fd = out},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->err},
    };
    char **env = env_of(conninfo);
    uv_process_options_t options = {.file = args[0],
                                    .args = args,
                                    .env = env,
                                    .stdio = io,
                                    .stdio_count = 3,
                                    .exit_cb = on_ended};

    c->owner = t;
    c->process.data = c->err.data = c;
    uv_pipe_init(&t->loop, &c->err, 0);
    c->err.data = c;
    int rc = uv_spawn(&t->loop, &c->process, &options);
    free_env(env);
    if (rc != 0) {
        uv_close((uv_handle_t *)&c->process, NULL);
        uv_close((uv_handle_t *)&c->err, NULL);
        return rc;
    }
    c->process.data = c;
    c->running = true;
    return uv_read_start((uv_stream_t *)&c->err, on_alloc, on_read);
}

static int spawn_both(struct pg_transfer *t, struct fault *f)
{
    char table[MAX_TABLES][128], *dump[MAX_TABLES + 8], drop[256];
    unsigned n = 0;

    t->dump = (struct child){.output = t->status.dump_output};
    t->restore = (struct child){.output = t->status.restore_output};
    t->fds[0] = t->fds[1] = -1;
    if (uv_pipe(t->fds, 0, 0) != 0)
        return fault_set(f, QE_INTERNAL, "no pipe");

    dump[n++] = (char[]){"pg_dump"};
    dump[n++] = (char[]){"--no-password"};
    dump[n++] = (char[]){"--no-owner"};
    dump[n++] = (char[]){"--no-privileges"};
    dump[n++] = (char[]){"--schema=queen"};
    dump[n++] = (char[]){"--schema=queen_streams"};
    for (unsigned i = 0; i < t->n_tables; i++) {
        snprintf(table[i], sizeof table[i], "--exclude-table-data=%s", t->tables[i]);
        dump[n++] = table[i];
    }
    dump[n] = NULL;
    int rc = spawn(t, &t->dump, dump, t->source, -1, t->fds[1]);
    if (rc != 0)
        return fault_set(f, QE_INTERNAL, "pg_dump: %s", uv_strerror(rc));

    snprintf(drop, sizeof drop, "%s", pg_stmt_drop_schemas.text);
    char *restore[] = {(char[]){"psql"},
                       (char[]){"--no-password"},
                       (char[]){"--no-psqlrc"},
                       (char[]){"--quiet"},
                       (char[]){"--set"},
                       (char[]){"ON_ERROR_STOP=1"},
                       (char[]){"--command"},
                       drop,
                       (char[]){"--file"},
                       (char[]){"-"},
                       (char[]){"--single-transaction"},
                       NULL};
    rc = spawn(t, &t->restore, restore, t->target, t->fds[0], -1);
    close(t->fds[0]); // psql has it: when psql ends early, pg_dump must notice
    t->fds[0] = -1;
    return rc == 0 ? 0 : fault_set(f, QE_INTERNAL, "psql: %s", uv_strerror(rc));
}

// Keeps the end of the output of a program.
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct child *c = stream->data;

    if (n < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        return;
    }
    uv_mutex_lock(&c->owner->lock);
    size_t len = strlen(c->output), more = (size_t)n;
    if (len + more >= TRANSFER_OUTPUT) {
        size_t drop = len + more - (TRANSFER_OUTPUT - 1);
        memmove(c->output, c->output + drop, len - drop);
        len -= drop;
    }
    for (size_t i = 0; i < more; i++) // NUL ends the text, so none may stand in it
        c->output[len + i] = (char)(buf->base[i] ? buf->base[i] : ' ');
    c->output[len + more] = '\0';
    uv_mutex_unlock(&c->owner->lock);
}

static void on_ended(uv_process_t *process, int64_t code, int signal)
{
    struct child *c = process->data;
    struct pg_transfer *t = c->owner;

    c->running = false;
    c->exit_code = code;
    c->signal = signal;
    uv_close((uv_handle_t *)process, NULL);
    if (c == &t->dump) {
        if (code == 0 && signal == 0) {
            uv_mutex_lock(&t->lock);
            t->status.phase = TRANSFER_RESTORING;
            uv_mutex_unlock(&t->lock);
        } else if (t->restore.running) {
            uv_process_kill(&t->restore.process, SIGKILL);
        }
        close(t->fds[1]);
        t->fds[1] = -1;
    } else if (t->dump.running) {
        uv_process_kill(&t->dump.process, SIGTERM);
    }
    if (!t->dump.running && !t->restore.running)
        transfer_close_handles(t);
}

// Bytes that the process has read; 0: unknown.
static uint64_t bytes_read_by(int pid)
{
    unsigned long long n = 0;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/io", pid);
    FILE *in = fopen(path, "re");
    if (in && fscanf(in, "rchar: %llu", &n) != 1)
        n = 0;
    if (in)
        fclose(in);
    return n;
}

// A target that takes no more data would keep pg_dump waiting, and with it a snapshot of the
// source: vacuum could then free nothing. When pg_dump has ended, psql may take its time.
static void on_transfer_watch(uv_timer_t *watch)
{
    struct pg_transfer *t = watch->data;
    uint64_t now_ms = uv_now(&t->loop);

    if (!t->dump.running || !t->restore.running)
        return;
    uint64_t n = bytes_read_by(t->restore.process.pid);
    if (n == 0 || n != t->n_read) {
        t->n_read = n;
        t->read_ms = now_ms;
    } else if (now_ms - t->read_ms >= t->stall_ms) {
        t->stalled = true;
        uv_process_kill(&t->restore.process, SIGKILL);
        uv_process_kill(&t->dump.process, SIGKILL);
    }
}

static void on_transfer_stop(uv_async_t *stop)
{
    struct pg_transfer *t = stop->data;

    t->stopped = true;
    if (t->restore.running)
        uv_process_kill(&t->restore.process, SIGKILL);
    if (t->dump.running)
        uv_process_kill(&t->dump.process, SIGKILL);
}

static void conclude(struct pg_transfer *t, const struct fault *f)
{
    bool dumped = t->dump.exit_code == 0 && t->dump.signal == 0;
    bool restored = t->restore.exit_code == 0 && t->restore.signal == 0;
    struct pg_transfer_status *s = &t->status;

    uv_mutex_lock(&t->lock);
    if (t->stopped)
        snprintf(s->error, sizeof s->error, "the server was stopped");
    else if (f->code != 0)
        snprintf(s->error, sizeof s->error, "%s", f->text);
    else if (t->stalled)
        snprintf(s->error, sizeof s->error, "the target has accepted nothing for %u s",
                 t->stall_ms / 1000);
    else if (!restored && t->restore.signal != SIGKILL)
        snprintf(s->error, sizeof s->error, "psql ended with %d: %.180s",
                 (int)t->restore.exit_code, s->restore_output);
    else if (!dumped)
        snprintf(s->error, sizeof s->error, "pg_dump ended with %d: %.180s",
                 (int)t->dump.exit_code, s->dump_output);
    else if (!restored)
        snprintf(s->error, sizeof s->error, "psql was killed");
    s->phase = s->error[0] ? TRANSFER_ERROR : TRANSFER_COMPLETE;
    t->took_us = clock_mono_us() - t->since_us;
    uv_loop_close(&t->loop);
    t->running = false;
    if (s->phase == TRANSFER_ERROR)
        log_warn("transfer.failed", "detail=\"%s\"", s->error);
    else
        log_info("transfer.complete", "ms=%llu", (unsigned long long)(t->took_us / 1000));
    uv_mutex_unlock(&t->lock);
}
