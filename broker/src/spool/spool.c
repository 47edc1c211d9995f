// spool.c: the thread, the writes that it gets, and the counts that other threads read.
#include "spool/spool_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

static void *spool_run(void *arg);
static bool has_work(const struct spool *s);
static void wait_for_work(struct spool *s);
static void spool_work(struct spool *s);

static const struct spool_disk real_disk = {write, fdatasync};

int spool_open(struct spool **out, const struct spool_conf *conf, struct fault *f)
{
    struct spool *s = mem_new(struct spool);

    *out = NULL;
    s->conf = *conf;
    s->dir = mem_strndup(conf->dir, strlen(conf->dir));
    s->conf.dir = s->dir;
    if (!s->conf.disk)
        s->conf.disk = &real_disk;
    s->dir_fd = s->failed_fd = s->lock_fd = s->fd = s->read_fd = -1;
    s->healthy = true;
    STAILQ_INIT(&s->writes);
    TAILQ_INIT(&s->files);
    TAILQ_INIT(&s->kept);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);

    int rc = files_open(s, f);
    if (rc == 0 && !conf->by_hand) {
        int err = pthread_create(&s->thread, NULL, spool_run, s);
        if (err != 0)
            rc = fault_set(f, QE_INTERNAL, "cannot start a thread: %s", strerror(err));
        else
            pthread_setname_np(s->thread, "queen-spool");
    }
    if (rc != 0) {
        s->conf.by_hand = true; // no thread to wait for
        spool_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void spool_close(struct spool *s)
{
    struct spool_file *file;

    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (!s->conf.by_hand)
        pthread_join(s->thread, NULL);
    writer_complete(s);
    while ((file = TAILQ_FIRST(&s->files)))
        files_remove(s, file);
    while ((file = TAILQ_FIRST(&s->kept))) { // a new process reads them again
        TAILQ_REMOVE(&s->kept, file, link);
        free(file);
    }
    int fds[] = {s->read_fd, s->failed_fd, s->dir_fd, s->lock_fd}; // the lock last
    for (unsigned i = 0; i < countof(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    buf_free(&s->out);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s->dir);
    free(s);
}

// ---- the thread ----

static void *spool_run(void *arg)
{
    struct spool *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->stopping || has_work(s)) {
        if (!has_work(s))
            wait_for_work(s);
        spool_work(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool has_work(const struct spool *s)
{
    return !STAILQ_EMPTY(&s->writes) || s->read != NULL;
}

static void wait_for_work(struct spool *s)
{
    if (!s->current) {
        pthread_cond_wait(&s->wake, &s->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + s->conf.idle_ms * 1000000ull;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&s->wake, &s->lock, &until);
}

// Locked when called and when done, not in between.
static void spool_work(struct spool *s)
{
    struct spool_writes writes = STAILQ_HEAD_INITIALIZER(writes);
    struct spool_read *read = s->read;

    STAILQ_CONCAT(&writes, &s->writes);
    s->read = NULL;
    pthread_mutex_unlock(&s->lock);
    if (!STAILQ_EMPTY(&writes))
        writer_store(s, &writes);
    if (read)
        reader_next(s, read);
    writer_complete_idle(s);
    writer_probe(s);
    pthread_mutex_lock(&s->lock);
}

void spool_turn(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    spool_work(s);
    pthread_mutex_unlock(&s->lock);
}

// ---- writes from other threads ----

void spool_append(struct spool *s, struct spool_write *w)
{
    int64_t now = (int64_t)clock_wall_us();

    w->bytes = 0;
    w->status = 0;
    for (unsigned i = 0; i < w->n; i++) {
        w->records[i].buffered_us = now;
        w->bytes += spool_record_size(&w->records[i]);
    }
    if (atomic_fetch_add(&s->bytes, w->bytes) + w->bytes > s->conf.max_bytes) {
        atomic_fetch_sub(&s->bytes, w->bytes);
        atomic_fetch_add(&s->refused, w->n);
        w->status = QE_BUFFER_FULL;
        if (mailbox_post(w->to, &w->mail) != 0)
            BUG("a write outlived its caller");
        return;
    }
    spool_count(s, w->records, w->n, 1);
    pthread_mutex_lock(&s->lock);
    STAILQ_INSERT_TAIL(&s->writes, w, link);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void spool_next(struct spool *s, struct spool_read *r)
{
    for (unsigned i = 0; i < r->n && !r->settled; i++)
        if (!r->left || !r->left[i])
            spool_stored(s, &r->records[i]);
    r->settled = r->n > 0;
    r->left = NULL;
    pthread_mutex_lock(&s->lock);
    s->read = r;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void spool_stored(struct spool *s, const struct spool_record *record)
{
    spool_count(s, record, 1, -1);
    atomic_fetch_add(&s->replayed, 1);
}

span spool_bytes(const struct spool_read *r, unsigned i)
{
    uint64_t end = i + 1 < r->n ? r->at[i + 1] : r->bytes.len;

    return (span){r->bytes.ptr + r->at[i], (size_t)(end - r->at[i])};
}

void spool_bury_left(struct spool_read *r, span bytes, const char *reason)
{
    struct spool_aside *a = mem_new(struct spool_aside);

    a->bytes = mem_strndup(bytes.ptr, bytes.len);
    a->len = bytes.len;
    a->reason = mem_strndup(reason, strlen(reason));
    if (!r->aside.stqh_last)
        STAILQ_INIT(&r->aside);
    STAILQ_INSERT_TAIL(&r->aside, a, link);
}

void spool_bury(struct spool_read *r, unsigned i, const char *reason)
{
    free(r->reasons[i]);
    r->reasons[i] = mem_strndup(reason, strlen(reason));
}

void spool_release(struct spool_read *r)
{
    struct spool_aside *a;

    for (unsigned i = 0; i < r->n; i++)
        free(r->reasons[i]);
    while (r->aside.stqh_last && (a = STAILQ_FIRST(&r->aside))) {
        STAILQ_REMOVE_HEAD(&r->aside, link);
        free(a->bytes);
        free(a->reason);
        free(a);
    }
    buf_free(&r->bytes);
    free(r->records);
    free(r->reasons);
    free(r->at);
    r->records = NULL;
    r->reasons = NULL;
    r->at = NULL;
    r->n = r->cap = 0;
    r->file = NULL;
    r->settled = false;
}

// ---- counts ----

static unsigned bucket_of(span queue, span partition)
{
    uint64_t h = XXH3_64bits_withSeed(queue.ptr, queue.len, map_seed);

    return XXH3_64bits_withSeed(partition.ptr, partition.len, h) % SPOOL_BUCKETS;
}

void spool_count(struct spool *s, const struct spool_record *records, unsigned n, int by)
{
    for (unsigned i = 0; i < n; i++)
        atomic_fetch_add(&s->n_stored[bucket_of(records[i].queue, records[i].partition)],
                         (uint32_t)by);
    atomic_fetch_add(&s->pending, (uint64_t)((int64_t)n * by));
}

bool spool_holds(const struct spool *s, span queue, span partition)
{
    return atomic_load(&s->n_stored[bucket_of(queue, partition)]) > 0;
}

uint64_t spool_pending(const struct spool *s)
{
    return atomic_load_explicit(&s->pending, memory_order_acquire);
}

void spool_stats(struct spool *s, struct spool_stats *out)
{
    *out = (struct spool_stats){
        .pending = s->pending,
        .bytes = s->bytes,
        .max_bytes = s->conf.max_bytes,
        .files = s->n_files,
        .appended = s->appended,
        .replayed = s->replayed,
        .refused = s->refused,
        .failed_files = s->failed_files,
        .failed_bytes = s->failed_bytes,
        .failed_qos0 = s->failed_qos0,
        .healthy = s->healthy,
    };
}
