// files.c: the directory: its lock, the files in it, and what an earlier process left.
#include "spool/spool_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"

static int make_dirs(const char *path);
static int spool_file_take_lock(struct spool *s, struct fault *f);
static int spool_file_find(struct spool *s, struct fault *f);
static int inspect(struct spool *s, const char *name, struct fault *f);
static int count_records(struct spool *s, struct spool_file *file, int fd);
static int set_file_aside(struct spool *s, const char *name, uint64_t size);
static void count_failed(struct spool *s);

int files_open(struct spool *s, struct fault *f)
{
    uint64_t begin_us = clock_mono_us();

    if (make_dirs(s->dir) != 0)
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s cannot be made: %s", s->dir,
                         strerror(errno));
    s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir_fd < 0)
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s: %s", s->dir, strerror(errno));
    int rc = spool_file_take_lock(s, f);
    if (rc != 0)
        return rc;
    if (mkdirat(s->dir_fd, "failed", 0700) != 0 && errno != EEXIST)
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s is not writable: %s", s->dir,
                         strerror(errno));
    s->failed_fd = openat(s->dir_fd, "failed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->failed_fd < 0)
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s/failed: %s", s->dir, strerror(errno));
    count_failed(s);
    rc = spool_file_find(s, f);
    if (rc == 0 && !TAILQ_EMPTY(&s->files))
        log_info("spool.found", "dir=%s files=%llu records=%llu bytes=%llu ms=%llu", s->dir,
                 (unsigned long long)s->n_files, (unsigned long long)s->pending,
                 (unsigned long long)s->bytes,
                 (unsigned long long)(clock_mono_us() - begin_us) / 1000);
    return rc;
}

static int make_dirs(const char *path)
{
    char *copy = mem_strndup(path, strlen(path));
    int rc = 0;

    for (char *at = copy + 1; rc == 0; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        bool last = *at == '\0';
        *at = '\0';
        if (mkdir(copy, last ? 0700 : 0755) != 0 && errno != EEXIST)
            rc = -1;
        if (last)
            break;
        *at = '/';
    }
    free(copy);
    return rc;
}

static int spool_file_take_lock(struct spool *s, struct fault *f)
{
    s->lock_fd = openat(s->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s is not writable: %s", s->dir,
                         strerror(errno));
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return fault_set(f, QE_CONF,
                     "FILE_BUFFER_DIR %s is in use by another process; each needs its own",
                     s->dir);
}

// ---- names ----

void files_name(struct spool *s, char out[SPOOL_NAME_BYTES])
{
    uint8_t id[16];
    char text[37] = "";

    id_uuid7(id);
    if (memcmp(id, s->last_id, 16) <= 0) { // the clock was set back: names rise all the same
        memcpy(id, s->last_id, 16);
        for (unsigned i = 16; i-- > 0 && ++id[i] == 0;)
            ;
    }
    memcpy(s->last_id, id, 16);
    id_format_uuid(id, text);
    snprintf(out, SPOOL_NAME_BYTES, "failover_%s.buf.tmp", text);
}

struct spool_file *files_add(struct spool *s, const char *name)
{
    struct spool_file *file = mem_new(struct spool_file);

    snprintf(file->name, sizeof file->name, "%s", name);
    TAILQ_INSERT_TAIL(&s->files, file, link);
    atomic_fetch_add(&s->n_files, 1);
    return file;
}

void files_remove(struct spool *s, struct spool_file *file)
{
    TAILQ_REMOVE(&s->files, file, link);
    atomic_fetch_sub(&s->n_files, 1);
    free(file);
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

static bool is_ours(const char *name)
{
    return strlen(name) < SPOOL_NAME_BYTES - 8 &&
           (ends_with(name, ".buf") || ends_with(name, ".buf.tmp"));
}

// By the id in the name, whatever the prefix: that is the order in which they were begun.
static const char *id_part(const char *name)
{
    const char *bar = strchr(name, '_');

    return bar ? bar + 1 : name;
}

static int by_age(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(id_part(*x), id_part(*y));
}

// ---- existing files ----

static int spool_file_find(struct spool *s, struct fault *f)
{
    DIR *dir = fdopendir(dup(s->dir_fd));
    struct dirent *entry;
    char **names = NULL;
    unsigned n = 0;
    int rc = 0;

    if (!dir)
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s: %s", s->dir, strerror(errno));
    while ((entry = readdir(dir)))
        if (is_ours(entry->d_name)) {
            names = mem_realloc(names, (n + 1) * sizeof *names);
            names[n++] = mem_strndup(entry->d_name, strlen(entry->d_name));
        }
    closedir(dir);
    if (n > 0)
        qsort(names, n, sizeof *names, by_age);
    for (unsigned i = 0; i < n; i++) {
        span id = {id_part(names[i]), 36};
        uint8_t parsed[16];
        if (strlen(id.ptr) > 36 && id_parse_uuid(id, parsed) &&
            memcmp(parsed, s->last_id, 16) > 0)
            memcpy(s->last_id, parsed, 16);
        if (rc == 0)
            rc = inspect(s, names[i], f);
        free(names[i]);
    }
    free(names);
    return rc;
}

static int inspect(struct spool *s, const char *name, struct fault *f)
{
    int fd = openat(s->dir_fd, name, O_RDWR | O_CLOEXEC);
    struct stat st;
    struct buf head = {0};
    uint64_t start = 0;

    if (fd < 0 || fstat(fd, &st) != 0) {
        int err = errno;
        if (fd >= 0)
            close(fd);
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s: %s: %s", s->dir, name, strerror(err));
    }
    uint64_t size = (uint64_t)st.st_size;
    bool is_tmp = ends_with(name, ".tmp");
    if (is_tmp && size <= SPOOL_HEADER_BYTES) { // nothing in it was ever answered
        close(fd);
        return unlinkat(s->dir_fd, name, 0) == 0
                   ? 0
                   : fault_set(f, QE_CONF, "%s/%s: %s", s->dir, name, strerror(errno));
    }
    size_t n = size < SPOOL_HEADER_BYTES ? (size_t)size : SPOOL_HEADER_BYTES;
    int rc = files_read(fd, 0, n, &head);
    bool good = rc == 0 && spool_read_header(buf_span(&head), &start);
    buf_free(&head);
    if (rc == 0 && !good) {
        close(fd);
        rc = set_file_aside(s, name, size);
        return rc == 0 ? 0
                       : fault_set(f, QE_CONF, "%s/failed: cannot move %s there", s->dir, name);
    }
    struct spool_file *file = files_add(s, name);
    file->size = size;
    file->start = start < size ? start : size;
    if (rc == 0)
        rc = count_records(s, file, fd);
    close(fd);
    if (rc != 0)
        return fault_set(f, QE_CONF, "FILE_BUFFER_DIR %s: %s cannot be read: %s", s->dir, name,
                         strerror(errno));
    if (is_tmp) { // complete now: we write to new files only
        char done[SPOOL_NAME_BYTES];
        snprintf(done, sizeof done, "%.*s", (int)(strlen(name) - strlen(".tmp")), name);
        if (renameat(s->dir_fd, name, s->dir_fd, done) == 0)
            snprintf(file->name, sizeof file->name, "%s", done);
    }
    atomic_fetch_add(&s->bytes,
                     file->size > SPOOL_HEADER_BYTES ? file->size - SPOOL_HEADER_BYTES : 0);
    return 0;
}

// A tail that cannot be a record is the write that the crash cut short: it was never answered.
static int cut_file(struct spool_file *file, int fd, uint64_t at)
{
    log_info("spool.cut", "file=%s at=%llu bytes=%llu", file->name, (unsigned long long)at,
             (unsigned long long)(file->size - at));
    if (ftruncate(fd, (off_t)at) != 0)
        return QE_BUFFER_FAILED;
    file->size = at;
    return 0;
}

static int count_records(struct spool *s, struct spool_file *file, int fd)
{
    uint64_t at = file->start, size;
    size_t want = SPOOL_WINDOW_BYTES;
    struct buf bytes = {0};
    struct spool_record r;
    int rc = 0;

    while (rc == 0 && at < file->size) {
        uint64_t left = file->size - at, used = 0;
        size_t n = left < want ? (size_t)left : want;
        enum files_step step;
        buf_reset(&bytes);
        rc = files_read(fd, at, n, &bytes);
        if (rc != 0)
            break;
        for (;;) {
            step = files_step((span){bytes.ptr + used, n - (size_t)used}, left - n, &r, &size);
            if (step != STEP_RECORD && step != STEP_SKIP)
                break;
            if (step == STEP_RECORD) {
                spool_count(s, &r, 1, 1);
                file->n_records++;
            }
            used += size;
        }
        at += used;
        want = step == STEP_MORE && used == 0 ? (size_t)size : SPOOL_WINDOW_BYTES;
        if (step == STEP_REST) {
            if (ends_with(file->name, ".tmp"))
                rc = cut_file(file, fd, at);
            break; // of a complete file the reader keeps it for people
        }
    }
    buf_free(&bytes);
    return rc;
}

enum files_step files_step(span bytes, uint64_t more, struct spool_record *r, uint64_t *size)
{
    struct spool_record next;
    uint64_t next_size;

    switch (spool_take_record(bytes, r, size)) {
    case SPOOL_RECORD:
        return STEP_RECORD;
    case SPOOL_END:
        return more > 0 ? STEP_MORE : STEP_END;
    case SPOOL_SHORT:
        return *size <= bytes.len + more ? STEP_MORE : STEP_REST;
    case SPOOL_DAMAGED:
        break;
    }
    // Its length may still be right: then a good record, or the end, follows.
    if (*size == 0 || *size > bytes.len)
        return STEP_REST;
    span rest = {bytes.ptr + *size, bytes.len - (size_t)*size};
    switch (spool_take_record(rest, &next, &next_size)) {
    case SPOOL_RECORD:
        return STEP_SKIP;
    case SPOOL_END:
        if (more == 0)
            return STEP_REST; // the last one: torn, or damaged; nothing follows either way
        *size += 1;
        return STEP_MORE;
    case SPOOL_SHORT:
        if (next_size <= rest.len + more) {
            *size += next_size;
            return STEP_MORE;
        }
        return STEP_REST;
    case SPOOL_DAMAGED:
        break;
    }
    return STEP_REST;
}

int files_read(int fd, uint64_t offset, size_t n, struct buf *out)
{
    if (!buf_reserve(out, n)) {
        errno = ENOMEM;
        return QE_NO_MEMORY;
    }
    while (n > 0) {
        ssize_t got = pread(fd, out->ptr + out->len, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            if (got == 0)
                errno = EIO; // shorter than it was
            return QE_BUFFER_FAILED;
        }
        out->len += (size_t)got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

// ---- failed/ ----

static int write_file(int dir_fd, const char *name, span head, span bytes)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, head.ptr, head.len) == (ssize_t)head.len;

    while (good && bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        good = n > 0;
        if (good) {
            bytes.ptr += n;
            bytes.len -= (size_t)n;
        }
    }
    good = good && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (good)
        return 0;
    log_error("spool.set_aside_failed", "file=%s error=\"%s\"", name, strerror(errno));
    unlinkat(dir_fd, name, 0);
    return QE_BUFFER_FAILED;
}

int files_set_aside(struct spool *s, span bytes, bool with_header, const char *reason)
{
    uint8_t id[16];
    char text[37] = "", name[SPOOL_NAME_BYTES];
    struct buf head = {0};

    id_uuid7(id);
    id_format_uuid(id, text);
    snprintf(name, sizeof name, "failover_%s.txt", text);
    int rc = write_file(s->failed_fd, name, span_of(reason), SPAN("\n"));
    if (rc != 0)
        return rc;
    snprintf(name, sizeof name, "failover_%s.%s", text, with_header ? "buf" : "damaged");
    if (with_header)
        spool_put_header(&head);
    rc = write_file(s->failed_fd, name, buf_span(&head), bytes);
    if (rc == 0) {
        fsync(s->failed_fd);
        log_error("spool.set_aside", "file=%s reason=\"%s\"", name, reason);
        atomic_fetch_add(&s->failed_files, 1);
        atomic_fetch_add(&s->failed_bytes, head.len + bytes.len);
    }
    buf_free(&head);
    return rc;
}

// Not one of ours (another program's, or a later version's): out of the way, untouched.
static int set_file_aside(struct spool *s, const char *name, uint64_t size)
{
    if (renameat(s->dir_fd, name, s->failed_fd, name) != 0)
        return QE_BUFFER_FAILED;
    log_warn("spool.foreign", "file=%s bytes=%llu why=\"not a buffer file of this version\"",
             name, (unsigned long long)size);
    atomic_fetch_add(&s->failed_files, 1);
    atomic_fetch_add(&s->failed_bytes, size);
    atomic_fetch_add(&s->failed_qos0, strncmp(name, "qos0_", 5) == 0);
    return 0;
}

static void count_failed(struct spool *s)
{
    DIR *dir = fdopendir(dup(s->failed_fd));
    struct dirent *entry;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (!is_ours(entry->d_name) && !ends_with(entry->d_name, ".damaged"))
            continue;
        if (fstatat(s->failed_fd, entry->d_name, &st, 0) != 0)
            continue;
        atomic_fetch_add(&s->failed_files, 1);
        atomic_fetch_add(&s->failed_bytes, (uint64_t)st.st_size);
        atomic_fetch_add(&s->failed_qos0, strncmp(entry->d_name, "qos0_", 5) == 0);
    }
    if (dir)
        closedir(dir);
}
