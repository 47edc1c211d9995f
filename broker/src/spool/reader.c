// reader.c: records back from the files, oldest first.
#include "spool/spool_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

static int settle_record(struct spool *s, struct spool_read *r);
static int open_file(struct spool *s, struct spool_file *file);
static int spool_reader_fill(struct spool *s, struct spool_read *r, struct spool_file *file);
static int save_progress(struct spool *s, const struct spool_file *file);
static int set_left_aside(struct spool *s, struct spool_read *r);
static void finish_file(struct spool *s, const struct spool_read *r, struct spool_file *file);
static void forget_kept(struct spool *s);
static void close_file(struct spool *s, const struct spool_file *file);
static void spool_reader_forget(struct spool *s, struct spool_file *file);

void reader_next(struct spool *s, struct spool_read *r)
{
    struct spool_file *file;
    int rc = set_left_aside(s, r);
    if (rc == 0 && r->settled)
        rc = settle_record(s, r);
    if (rc == 0 && s->keeping && !r->keep)
        forget_kept(s);
    if (rc == 0)
        s->keeping = r->keep;

    while (rc == 0 && r->n == 0 && (file = TAILQ_FIRST(&s->files))) {
        if (file == s->current)
            writer_complete(s);
        rc = open_file(s, file);
        if (rc == 0)
            rc = spool_reader_fill(s, r, file);
        if (rc == QE_NOT_FOUND) { // it was removed
            atomic_fetch_sub(&s->pending, file->n_records);
            rc = 0;
        }
        if (rc == 0 && r->n == 0)
            finish_file(s, r, file); // read to its end
    }
    r->status = rc;
    if (mailbox_post(r->to, &r->mail) != 0)
        BUG("a read outlived its caller");
}

// If a record cannot be set aside, the window stays: better twice than never.
static int settle_record(struct spool *s, struct spool_read *r)
{
    struct spool_file *file = r->file;
    int rc = 0;

    for (unsigned i = 0; i < r->n && rc == 0; i++) {
        if (!r->reasons[i])
            continue;
        rc = files_set_aside(s, spool_bytes(r, i), true, r->reasons[i]);
        if (rc == 0) {
            free(r->reasons[i]);
            r->reasons[i] = NULL;
        }
    }
    if (rc != 0)
        return rc;
    file->start = r->end;
    file->n_records = file->n_records > r->n ? file->n_records - r->n : 0;
    unsigned keep = r->max_records;
    struct mailbox *to = r->to;
    spool_release(r);
    r->max_records = keep;
    r->to = to;
    if (file->start >= file->size && file != s->current)
        finish_file(s, r, file);
    else if (!r->keep)
        rc = save_progress(s, file);
    return rc;
}

static int set_left_aside(struct spool *s, struct spool_read *r)
{
    struct spool_aside *a;
    int rc = 0;

    while (rc == 0 && r->aside.stqh_last && (a = STAILQ_FIRST(&r->aside))) {
        rc = files_set_aside(s, (span){a->bytes, a->len}, true, a->reason);
        if (rc != 0)
            break;
        STAILQ_REMOVE_HEAD(&r->aside, link);
        free(a->bytes);
        free(a->reason);
        free(a);
    }
    return rc;
}

static void finish_file(struct spool *s, const struct spool_read *r, struct spool_file *file)
{
    if (!r->keep) {
        spool_reader_forget(s, file);
        return;
    }
    close_file(s, file);
    TAILQ_REMOVE(&s->files, file, link);
    TAILQ_INSERT_TAIL(&s->kept, file, link);
}

// All records of these files are stored now.
static void forget_kept(struct spool *s)
{
    struct spool_file *file;

    while ((file = TAILQ_FIRST(&s->kept))) {
        TAILQ_REMOVE(&s->kept, file, link);
        TAILQ_INSERT_HEAD(&s->files, file, link);
        spool_reader_forget(s, file);
    }
    if (s->reading)
        (void)save_progress(s, s->reading);
}

// Not synced: it only saves work after a crash of this process.  After a crash of the machine
// the database recognises the records as duplicates.
static int save_progress(struct spool *s, const struct spool_file *file)
{
    char bytes[SPOOL_PROGRESS_BYTES];
    struct buf out = {.ptr = bytes, .cap = sizeof bytes, .max = sizeof bytes};

    spool_put_progress(&out, file->start);
    if (s->reading == file &&
        pwrite(s->read_fd, bytes, sizeof bytes, SPOOL_PROGRESS_AT) != (ssize_t)sizeof bytes)
        log_warn("spool.progress_failed", "file=%s error=\"%s\"", file->name, strerror(errno));
    return 0;
}

static int open_file(struct spool *s, struct spool_file *file)
{
    if (s->reading == file)
        return 0;
    if (s->read_fd >= 0)
        close(s->read_fd);
    s->reading = NULL;
    s->read_fd = openat(s->dir_fd, file->name, O_RDWR | O_CLOEXEC);
    if (s->read_fd < 0) {
        log_error("spool.open_failed", "file=%s records=%llu error=\"%s\"", file->name,
                  (unsigned long long)file->n_records, strerror(errno));
        return errno == ENOENT ? QE_NOT_FOUND : QE_BUFFER_FAILED;
    }
    s->reading = file;
    return 0;
}

static void spool_reader_add(struct spool_read *r, const struct spool_record *record,
                             uint64_t at)
{
    if (r->n == r->cap) {
        r->cap = r->cap > 0 ? r->cap * 2 : 128;
        r->records = mem_realloc(r->records, r->cap * sizeof *r->records);
        r->reasons = mem_realloc(r->reasons, r->cap * sizeof *r->reasons);
        r->at = mem_realloc(r->at, r->cap * sizeof *r->at);
    }
    r->records[r->n] = *record;
    r->reasons[r->n] = NULL;
    r->at[r->n++] = at;
}

// Damage in the middle: unreadable bytes are kept for an operator, and reading continues.
static int set_aside(struct spool *s, struct spool_file *file, uint64_t size, span bytes)
{
    char why[160];

    snprintf(why, sizeof why, "damaged: %s, byte %llu", file->name,
             (unsigned long long)file->start);
    log_error("spool.damaged", "file=%s at=%llu bytes=%llu", file->name,
              (unsigned long long)file->start, (unsigned long long)size);
    int rc = files_set_aside(s, (span){bytes.ptr, (size_t)size}, false, why);
    if (rc == 0)
        file->start += size;
    return rc;
}

static int spool_reader_fill(struct spool *s, struct spool_read *r, struct spool_file *file)
{
    size_t want = SPOOL_WINDOW_BYTES;

    while (r->n == 0 && file->start < file->size) {
        uint64_t left = file->size - file->start, size, used = 0;
        size_t n = left < want ? (size_t)left : want;
        struct spool_record record;
        enum files_step step = STEP_END;

        buf_reset(&r->bytes);
        int rc = files_read(s->read_fd, file->start, n, &r->bytes);
        if (rc != 0) {
            log_error("spool.read_failed", "file=%s error=\"%s\"", file->name, strerror(errno));
            return rc;
        }
        while (r->n < r->max_records) {
            span rest = {r->bytes.ptr + used, r->bytes.len - (size_t)used};
            step = files_step(rest, left - n, &record, &size);
            if (step != STEP_RECORD)
                break;
            spool_reader_add(r, &record, used);
            used += size;
        }
        if (r->n > 0) {
            r->bytes.len = (size_t)used;
            r->end = file->start + used;
            r->file = file;
            return 0;
        }
        if (step == STEP_MORE) {
            want = (size_t)size;
        } else if (step == STEP_SKIP || step == STEP_REST) {
            rc = set_aside(s, file, step == STEP_REST ? n : size, buf_span(&r->bytes));
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

static void close_file(struct spool *s, const struct spool_file *file)
{
    if (s->reading == file) {
        close(s->read_fd);
        s->read_fd = -1;
        s->reading = NULL;
    }
}

static void spool_reader_forget(struct spool *s, struct spool_file *file)
{
    close_file(s, file);
    // If it stays, it is replayed at the next start and every record found a duplicate.
    if (unlinkat(s->dir_fd, file->name, 0) != 0)
        log_warn("spool.delete_failed", "file=%s error=\"%s\"", file->name, strerror(errno));
    uint64_t size = file->size > SPOOL_HEADER_BYTES ? file->size - SPOOL_HEADER_BYTES : 0;
    atomic_fetch_sub(&s->bytes, size);
    files_remove(s, file);
}
