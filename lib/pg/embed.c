// embed.c: prepares the data directory of the embedded PostgreSQL: lock, initdb, socket.
#include "pg/embed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "pg/embed_int.h"

enum {
    MAX_SOCKET_DIR = 107 - 15, // leaves room for "/.s.PGSQL.5432" and a NUL
    ASK_AFTER_MS = 1000,
    INSIST_AFTER_MS = 20000,
    GIVE_UP_AFTER_MS = 30000
};

// Steps, in order.
static int make_data_dir(struct embed *e, const char *wanted, struct fault *f);
static int embed_take_lock(struct embed *e, struct fault *f);
static int choose_user(struct embed *e, const char *wanted, struct fault *f);
static int check_way(const struct embed *e, struct fault *f);
static int make_cluster(struct embed *e, struct fault *f);
static int make_socket_dir(struct embed *e, struct fault *f);
static int wait_for_other(const struct embed *e, struct fault *f);

int embed_prepare(const struct embed_conf *conf, struct embed **out, struct fault *f)
{
    struct embed *e = mem_new(struct embed);
    int major = 0, rc;

    e->lock_fd = -1;
    if ((rc = make_data_dir(e, conf->data_dir, f)) != 0 || (rc = embed_take_lock(e, f)) != 0 ||
        (rc = choose_user(e, conf->run_as, f)) != 0 || (rc = check_way(e, f)) != 0)
        goto out;

    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/PG_VERSION", e->pg);
    FILE *version = fopen(path, "re");
    if (version != NULL) {
        if (fscanf(version, "%d", &major) != 1)
            major = 0;
        fclose(version);
    }
    if ((rc = embed_find(e, conf->bin_dir, major, f)) != 0)
        goto out;
    if (major == 0 && (rc = make_cluster(e, f)) != 0)
        goto out;
    if ((rc = make_socket_dir(e, f)) != 0 || (rc = wait_for_other(e, f)) != 0 ||
        (rc = embed_tune(e, f)) != 0)
        goto out;
    snprintf(e->conninfo, sizeof e->conninfo, "host=%s user=postgres dbname=postgres",
             e->socket_dir);
    *out = e;
    return 0;
out:
    embed_free(e);
    return rc;
}

static int make_data_dir(struct embed *e, const char *wanted, struct fault *f)
{
    char path[PATH_MAX];

    if (strlen(wanted) + 64 >= sizeof e->data || strpbrk(wanted, "'\\\n\r") != NULL)
        return fault_set(f, QE_CONF,
                         "the data directory's path is too long or has a quote, backslash or "
                         "line end in it");
    snprintf(path, sizeof path, "%s", wanted);
    for (char *s = path + 1;; s++) {
        if (*s != '/' && *s != '\0')
            continue;
        char end = *s;
        *s = '\0';
        // 0755: the server's user must be able to enter it; private directories below are 0700.
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return fault_set(f, QE_CONF, "cannot create the data directory %.160s: %s", path,
                             strerror(errno));
        *s = end;
        if (end == '\0')
            break;
    }
    char *real = realpath(path, NULL);
    if (real == NULL || strlen(real) >= sizeof e->data) {
        free(real);
        return fault_set(f, QE_CONF, "%.160s: not usable as data directory", path);
    }
    snprintf(e->data, sizeof e->data, "%s", real);
    snprintf(e->pg, sizeof e->pg, "%s/pg", real);
    free(real);
    return 0;
}

// flock() instead of a pid file: the kernel releases it however the process ends.
static int embed_take_lock(struct embed *e, struct fault *f)
{
    char path[PATH_MAX], text[32] = "";

    snprintf(path, sizeof path, "%s/queen.lock", e->data);
    e->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (e->lock_fd < 0)
        return fault_set(f, QE_CONF, "cannot write to the data directory %.160s: %s", e->data,
                         strerror(errno));
    if (flock(e->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = read(e->lock_fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        text[strcspn(text, "\n")] = '\0';
        return fault_set(f, QE_CONF,
                         "the data directory %.120s is in use by another queen (process %s)",
                         e->data, text[0] != '\0' ? text : "unknown");
    }
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (ftruncate(e->lock_fd, 0) != 0 || pwrite(e->lock_fd, text, (size_t)n, 0) != n)
        return fault_set(f, QE_CONF, "cannot write %.160s: %s", path, strerror(errno));
    return 0;
}

static int choose_user(struct embed *e, const char *wanted, struct fault *f)
{
    const char *name = wanted != NULL && wanted[0] != '\0' ? wanted : "postgres";

    if (geteuid() != 0)
        return 0;
    const struct passwd *pw = getpwnam(name);
    if (pw == NULL)
        return fault_set(
            f, QE_CONF,
            "PostgreSQL does not run as root and there is no user %s: name one with "
            "QUEEN_PG_USER",
            name);
    if (pw->pw_uid == 0)
        return fault_set(f, QE_CONF, "QUEEN_PG_USER must not be root");
    e->drops = true;
    e->uid = pw->pw_uid;
    e->gid = pw->pw_gid;
    return 0;
}

static int check_way(const struct embed *e, struct fault *f)
{
    char at[PATH_MAX];

    if (!embed_blocked_at(e, e->data, at))
        return 0;
    return fault_set(f, QE_CONF,
                     "the database's user (uid %u) may not enter %.120s: chmod o+x it, choose "
                     "another data directory, or set QUEEN_PG_USER",
                     (unsigned)e->uid, at);
}

// Creates path, private to the server's user.
static int make_private(const struct embed *e, const char *path, struct fault *f)
{
    struct stat st;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fault_set(f, QE_CONF, "cannot create %.160s: %s", path, strerror(errno));
    // In /tmp another user may have created it before.
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) ||
        (st.st_uid != geteuid() && (!e->drops || st.st_uid != e->uid)))
        return fault_set(f, QE_CONF, "%.160s exists and is owned by another user", path);
    if (chmod(path, 0700) != 0 || (e->drops && lchown(path, e->uid, e->gid) != 0))
        return fault_set(f, QE_CONF, "cannot change the owner of %.160s: %s", path,
                         strerror(errno));
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

// Copies the last lines of a log into the fault.
static void read_tail(const char *path, char out[160])
{
    FILE *file = fopen(path, "re");

    out[0] = '\0';
    if (file == NULL)
        return;
    if (fseek(file, -150, SEEK_END) != 0)
        rewind(file);
    size_t n = fread(out, 1, 159, file);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (out[i] == '\n')
            out[i] = ' ';
    fclose(file);
}

static int append_include(const char *dir)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/postgresql.conf", dir);
    FILE *file = fopen(path, "ae");
    if (file == NULL)
        return -1;
    int rc = fputs("\ninclude_if_exists = 'queen.conf'\n", file) < 0 ? -1 : 0;
    return fclose(file) != 0 ? -1 : rc;
}

static void sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0)
        log_warn("embed.sync_failed", "path=\"%s\" error=\"%s\"", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

// An interrupted initdb leaves pg.tmp, never a pg that looks complete.
static int make_cluster(struct embed *e, struct fault *f)
{
    char part[PATH_MAX], program[PATH_MAX], log[PATH_MAX], tail[160];
    int rc;

    if (access(e->pg, F_OK) == 0)
        return fault_set(f, QE_CONF, "%.160s exists but is not a PostgreSQL cluster", e->pg);
    snprintf(part, sizeof part, "%s/pg.tmp", e->data);
    snprintf(program, sizeof program, "%s/initdb", e->bin);
    snprintf(log, sizeof log, "%s/initdb.log", e->data);
    if (nftw(part, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        return fault_set(f, QE_CONF, "cannot remove the unfinished %.160s: %s", part,
                         strerror(errno));
    if ((rc = make_private(e, part, f)) != 0)
        return rc;
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0)
        close(fd);

    log_info("embed.initdb", "dir=\"%s\" bin=\"%s\"", e->pg, e->bin);
    // Locale C: names sort by bytes, the same on every machine.
    char *argv[] = {program,
                    (char[]){"-D"},
                    part,
                    (char[]){"--username=postgres"},
                    (char[]){"--encoding=UTF8"},
                    (char[]){"--locale=C"},
                    (char[]){"--auth-local=trust"},
                    (char[]){"--auth-host=reject"},
                    (char[]){"--data-checksums"},
                    NULL};
    int status = embed_run(e, argv, log);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        read_tail(log, tail);
        return fault_set(f, QE_CONF, "initdb failed (%.60s): ...%s", log, tail);
    }
    if (append_include(part) != 0 || rename(part, e->pg) != 0)
        return fault_set(f, QE_CONF, "cannot finish %.160s: %s", e->pg, strerror(errno));
    sync_dir(e->data);
    return 0;
}

static uint64_t hash_of(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037); // FNV-1a

    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h;
}

// The path of a Unix socket must be short, and PostgreSQL treats a comma as a separator.
static int make_socket_dir(struct embed *e, struct fault *f)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    char path[PATH_MAX];
    int rc;

    snprintf(path, sizeof path, "%s/log", e->data);
    if ((rc = make_private(e, path, f)) != 0)
        return rc;
    int n = snprintf(e->socket_dir, sizeof e->socket_dir, "%s/run", e->data);
    if (n > MAX_SOCKET_DIR || e->data[strspn(e->data, plain)] != '\0')
        snprintf(e->socket_dir, sizeof e->socket_dir, "/tmp/queen-%016llx",
                 (unsigned long long)hash_of(e->data));
    return make_private(e, e->socket_dir, f);
}

// We hold the lock, so a server that still runs here has lost its broker.
static int wait_for_other(const struct embed *e, struct fault *f)
{
    char status[16];
    bool asked = false, insisted = false;
    uint64_t from = clock_mono_us();
    pid_t pid;

    while ((pid = embed_other_server(e, status)) != 0) {
        uint64_t ms = (clock_mono_us() - from) / 1000;
        if (ms > GIVE_UP_AFTER_MS)
            return fault_set(f, QE_CONF, "another PostgreSQL (process %d) is running on %.120s",
                             (int)pid, e->pg);
        if (ms > ASK_AFTER_MS && !asked) {
            log_warn("embed.stopping_leftover", "pid=%d signal=INT", (int)pid);
            kill(pid, SIGINT);
            asked = true;
        }
        if (ms > INSIST_AFTER_MS && !insisted) {
            log_warn("embed.stopping_leftover", "pid=%d signal=QUIT", (int)pid);
            kill(pid, SIGQUIT);
            insisted = true;
        }
        usleep(50 * 1000);
    }
    return 0;
}

void embed_free(struct embed *e)
{
    if (e == NULL)
        return;
    assert(e->state == EMBED_NEW || e->state == EMBED_OVER);
    if (e->lock_fd >= 0)
        close(e->lock_fd);
    free(e);
}

const char *embed_socket_dir(const struct embed *e) { return e->socket_dir; }
const char *embed_conninfo(const struct embed *e) { return e->conninfo; }
