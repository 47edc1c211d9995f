// embed_tune.c: writes PostgreSQL settings for this machine.
//
// queen.conf is rewritten at each start and read after postgresql.conf. Settings from ALTER
// SYSTEM are read last and win.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "pg/embed_int.h"

#define MB UINT64_C(1048576)

// Memory available to this process: the machine's, or its container's.
static uint64_t memory_mb(void)
{
    uint64_t mb = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / MB;
    unsigned long long limit;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");

    if (f != NULL) {
        if (fscanf(f, "%llu", &limit) == 1 && limit / MB < mb)
            mb = limit / MB;
        fclose(f);
    }
    return mb;
}

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
    return v < low ? low : v > high ? high : v;
}

// Checked with the server itself, because LZ4 support is a compile-time option.
static bool accepts(const struct embed *e, const char *name, const char *value)
{
    char program[PATH_MAX], setting[96];

    snprintf(program, sizeof program, "%s/postgres", e->bin);
    snprintf(setting, sizeof setting, "%s=%s", name, value);
    char pg[PATH_MAX], option[64];
    snprintf(pg, sizeof pg, "%s", e->pg);
    snprintf(option, sizeof option, "%s", name);
    char *argv[] = {program, (char[]){"-D"}, pg,      (char[]){"-C"},
                    option,  (char[]){"-c"}, setting, NULL};
    int status = embed_run(e, argv, "/dev/null");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void put_settings(struct buf *b, const struct embed *e)
{
    uint64_t mb = memory_mb();

    buf_put_lit(
        b, "# Written by queen at each start; changes here are lost.  Use ALTER SYSTEM.\n\n"
           "# A confirmed message is on disk.\n"
           "fsync = on\n"
           "synchronous_commit = on\n"
           "full_page_writes = on\n\n");
    buf_printf(b,
               "shared_buffers = %lluMB\n"
               "effective_cache_size = %lluMB\n"
               "maintenance_work_mem = %lluMB\n",
               (unsigned long long)clamp(mb / 8, 128, 1024),
               (unsigned long long)clamp(mb / 2, 256, mb),
               (unsigned long long)clamp(mb / 64, 64, 512));
    buf_put_lit(b, "huge_pages = try\n"
                   "max_connections = 250\n"
                   "jit = off\n"
                   "track_io_timing = off\n"
                   "random_page_cost = 1.1\n"
                   "effective_io_concurrency = 200\n\n"
                   "# Few, long, smooth checkpoints: each one writes full-page images again.\n"
                   "wal_buffers = 16MB\n"
                   "min_wal_size = 1GB\n"
                   "max_wal_size = 4GB\n"
                   "checkpoint_timeout = 15min\n"
                   "checkpoint_completion_target = 0.9\n");
    if (accepts(e, "wal_compression", "lz4"))
        buf_put_lit(b, "wal_compression = lz4\n");
    if (accepts(e, "default_toast_compression", "lz4"))
        buf_put_lit(b, "default_toast_compression = lz4\n");
    buf_printf(b,
               "\nautovacuum = on\n"
               "autovacuum_naptime = 10s\n\n"
               "# One file per weekday, overwritten a week later.\n"
               "logging_collector = on\n"
               "log_directory = '%s/log'\n"
               "log_filename = 'postgresql-%%a.log'\n"
               "log_truncate_on_rotation = on\n"
               "log_rotation_age = 1d\n"
               "log_rotation_size = 0\n"
               "log_checkpoints = off\n"
               "log_timezone = 'UTC'\n"
               "timezone = 'UTC'\n",
               e->data);
}

int embed_tune(const struct embed *e, struct fault *f)
{
    char path[PATH_MAX + 32], part[PATH_MAX + 32];
    struct buf b = {0};
    int rc = 0;

    snprintf(path, sizeof path, "%s/queen.conf", e->pg);
    snprintf(part, sizeof part, "%s/queen.conf.part", e->pg);
    put_settings(&b, e);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (b.failed || fd < 0 || write(fd, b.ptr, b.len) != (ssize_t)b.len ||
        (e->drops && fchown(fd, e->uid, e->gid) != 0) || rename(part, path) != 0)
        rc = fault_set(f, QE_CONF, "cannot write %.200s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    buf_free(&b);
    return rc;
}
