// writer.c: records onto stable storage, many requests per sync.
//
// A push is answered only after a sync. When a write or a sync fails, everything since the last
// sync is cut off again and refused, and the next request begins a new file.
#include "spool/spool_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { FLUSH_BYTES = 1 << 20, LOG_US = 1000000, PROBE_US = 1000000 };

static int spool_writer_begin(struct spool *s);
static int spool_writer_put(struct spool *s, const struct spool_write *w);
static int spool_writer_flush(struct spool *s);
static void commit(struct spool *s, struct spool_writes *open, int rc);
static void refuse_current(struct spool *s);

void writer_store(struct spool *s, struct spool_writes *writes)
{
    struct spool_writes open = STAILQ_HEAD_INITIALIZER(open);
    struct spool_write *w;

    while ((w = STAILQ_FIRST(writes))) {
        STAILQ_REMOVE_HEAD(writes, link);
        int rc = s->current ? 0 : spool_writer_begin(s);
        STAILQ_INSERT_TAIL(&open, w, link);
        if (rc == 0)
            rc = spool_writer_put(s, w);
        bool full = rc == 0 && s->current->n_records >= s->conf.events_per_file;
        if (rc != 0 || full || STAILQ_EMPTY(writes))
            commit(s, &open, rc);
        if (full && s->current)
            writer_complete(s);
    }
}

static int failure(void)
{
    return errno == ENOSPC || errno == EDQUOT ? QE_BUFFER_FULL : QE_BUFFER_FAILED;
}

// A full disk fails many requests a second; the log gets one line a second.
static void log_failure(struct spool *s, const char *event, const char *file, uint64_t n)
{
    uint64_t now = clock_mono_us();
    int saved = errno;

    if (s->logged_us != 0 && now - s->logged_us < LOG_US) {
        s->n_unlogged++;
        return;
    }
    log_error(event, "file=%s requests_refused=%llu error=\"%s\" unlogged=%llu", file,
              (unsigned long long)n, strerror(saved), (unsigned long long)s->n_unlogged);
    s->logged_us = now;
    s->n_unlogged = 0;
    errno = saved;
}

static int spool_writer_begin(struct spool *s)
{
    char name[SPOOL_NAME_BYTES];

    files_name(s, name);
    s->fd = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    // The name must survive, too.
    if (s->fd < 0 || fsync(s->dir_fd) != 0) {
        int rc = failure();
        log_failure(s, "spool.create_failed", name, 0);
        if (s->fd >= 0) {
            close(s->fd);
            unlinkat(s->dir_fd, name, 0);
        }
        return rc;
    }
    s->current = files_add(s, name);
    s->current->start = SPOOL_HEADER_BYTES;
    s->written = 0;
    buf_reset(&s->out);
    spool_put_header(&s->out);
    return 0;
}

static int spool_writer_put(struct spool *s, const struct spool_write *w)
{
    int rc = 0;

    s->current->n_records += w->n; // commit() takes them back if it fails
    for (unsigned i = 0; i < w->n && rc == 0; i++) {
        spool_put_record(&s->out, &w->records[i]);
        if (s->out.failed)
            return QE_BUFFER_FAILED;
        if (s->out.len >= FLUSH_BYTES)
            rc = spool_writer_flush(s);
    }
    return rc;
}

static int spool_writer_flush(struct spool *s)
{
    size_t done = 0;

    while (done < s->out.len) {
        ssize_t n = s->conf.disk->write(s->fd, s->out.ptr + done, s->out.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failure();
        done += (size_t)n;
    }
    s->written += s->out.len;
    buf_reset(&s->out);
    if (s->out.cap > (size_t)4 * FLUSH_BYTES) // one large message must not stay for ever
        buf_free(&s->out);
    return 0;
}

static void commit(struct spool *s, struct spool_writes *open, int rc)
{
    struct spool_write *w;
    uint64_t n = 0;

    STAILQ_FOREACH (w, open, link)
        n += w->n;
    if (rc == 0)
        rc = spool_writer_flush(s);
    if (rc == 0 && s->conf.disk->sync(s->fd) != 0)
        rc = failure();
    if (rc == 0) {
        s->current->size = s->written;
        s->last_us = clock_mono_us();
        atomic_fetch_add(&s->appended, n);
    } else {
        if (s->current) // else spool_writer_begin() has logged it
            log_failure(s, "spool.write_failed", s->current->name, n);
        atomic_fetch_add(&s->refused, n);
        if (s->current) {
            s->current->n_records = s->current->n_records > n ? s->current->n_records - n : 0;
            refuse_current(s);
        }
    }
    atomic_store(&s->healthy, rc == 0);
    while ((w = STAILQ_FIRST(open))) {
        STAILQ_REMOVE_HEAD(open, link);
        if (rc != 0) {
            atomic_fetch_sub(&s->bytes, w->bytes);
            spool_count(s, w->records, w->n, -1);
        }
        w->status = rc;
        if (mailbox_post(w->to, &w->mail) != 0)
            BUG("a write outlived its caller");
    }
}

// After a failed sync nothing is known about the pages: the file ends where it was last good.
static void refuse_current(struct spool *s)
{
    struct spool_file *file = s->current;

    buf_reset(&s->out);
    if (file->size <= SPOOL_HEADER_BYTES) {
        close(s->fd);
        s->fd = -1;
        s->current = NULL;
        unlinkat(s->dir_fd, file->name, 0);
        files_remove(s, file);
        return;
    }
    if (ftruncate(s->fd, (off_t)file->size) != 0)
        log_warn("spool.cut_failed", "file=%s error=\"%s\"", file->name, strerror(errno));
    writer_complete(s);
}

void writer_complete(struct spool *s)
{
    struct spool_file *file = s->current;
    char name[SPOOL_NAME_BYTES];

    if (!file)
        return;
    close(s->fd);
    s->fd = -1;
    s->current = NULL;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(file->name) - strlen(".tmp")), file->name);
    if (renameat(s->dir_fd, file->name, s->dir_fd, name) != 0)
        log_warn("spool.complete_failed", "file=%s error=\"%s\"", file->name, strerror(errno));
    else
        snprintf(file->name, sizeof file->name, "%s", name);
}

// After an outage there may be no write for days: health must not wait for one.
void writer_probe(struct spool *s)
{
    static const char name[] = ".probe";
    uint64_t now = clock_mono_us();

    if (s->healthy || (s->probed_us != 0 && now - s->probed_us < PROBE_US))
        return;
    s->probed_us = now;
    int fd = openat(s->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool works = s->conf.disk->write(fd, name, sizeof name) == (ssize_t)sizeof name &&
                 s->conf.disk->sync(fd) == 0;
    close(fd);
    unlinkat(s->dir_fd, name, 0);
    atomic_store(&s->healthy, works);
}

void writer_complete_idle(struct spool *s)
{
    if (s->current && clock_mono_us() - s->last_us >= s->conf.idle_ms * 1000ull)
        writer_complete(s);
}
