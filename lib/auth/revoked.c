// revoked.c: see revoked.h.
#include "auth/revoked.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_BYTES = 64 << 20, CHUNK = 64 * 1024, LOOK_US = 1000 * 1000 };

struct revoked {
    const char *path;
    pthread_mutex_t lock; // guards the rest
    struct buf text;
    span *ids; // sorted, in text
    size_t n;
    struct timespec changed; // of the file that was read ...
    off_t size;
    ino_t inode;
    uint64_t looked_us;
    bool stale, failing;
};

static int compare_ids(const void *a, const void *b)
{
    const span *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = len > 0 ? memcmp(x->ptr, y->ptr, len) : 0;

    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static int revoked_failed(const struct revoked *r, const char *why, struct fault *f)
{
    return fault_set(f, QE_CONF, "JWT_REVOKED_FILE: cannot read %.100s: %s", r->path, why);
}

static int read_all(int fd, struct buf *text)
{
    for (;;) {
        if (!buf_reserve(text, CHUNK))
            return EFBIG;
        ssize_t n = read(fd, text->ptr + text->len, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : 0;
        text->len += (size_t)n;
    }
}

static void split_ids(struct revoked *r)
{
    span rest = buf_span(&r->text), line, id;
    size_t cap = 0;

    free(r->ids);
    r->ids = NULL;
    r->n = 0;
    while (rest.len > 0 && str_split(&rest, '\n', &line)) {
        if (!str_split(&line, '#', &id))
            continue;
        id = str_trim(id);
        if (id.len == 0)
            continue;
        if (r->n == cap) {
            cap = cap > 0 ? 2 * cap : 64;
            r->ids = mem_realloc(r->ids, cap * sizeof r->ids[0]);
        }
        r->ids[r->n++] = id;
    }
    if (r->n > 0)
        qsort(r->ids, r->n, sizeof r->ids[0], compare_ids);
}

// With the lock. Keeps the last list on failure.
static int revoked_read(struct revoked *r, struct fault *f)
{
    struct buf text = {.max = MAX_BYTES};
    struct stat st;
    int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a FIFO must not block the loop

    if (fd < 0)
        return revoked_failed(r, strerror(errno), f);
    int why = fstat(fd, &st) != 0 ? errno : S_ISREG(st.st_mode) ? read_all(fd, &text) : EINVAL;
    close(fd);
    if (why != 0) {
        buf_free(&text);
        return revoked_failed(r, strerror(why), f);
    }
    buf_free(&r->text);
    r->text = text;
    r->changed = st.st_mtim;
    r->size = st.st_size;
    r->inode = st.st_ino;
    r->stale = false;
    split_ids(r);
    log_info("auth.revocations", "file=\"%s\" tokens=%zu", r->path, r->n);
    return 0;
}

int revoked_new(struct revoked **out, const char *path, struct fault *f)
{
    struct revoked *r = mem_new(struct revoked);

    r->path = path;
    pthread_mutex_init(&r->lock, NULL);
    int rc = revoked_read(r, f);
    if (rc != 0) {
        revoked_free(r);
        r = NULL;
    }
    *out = r;
    return rc;
}

void revoked_free(struct revoked *r)
{
    if (!r)
        return;
    free(r->ids);
    buf_free(&r->text);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

// With the lock.
static void look_again(struct revoked *r)
{
    uint64_t now = clock_mono_us();
    struct fault f = {0};
    struct stat st;

    if (!r->stale && now - r->looked_us < LOOK_US)
        return;
    r->looked_us = now;
    int rc = 0;
    if (stat(r->path, &st) != 0)
        rc = revoked_failed(r, strerror(errno), &f);
    else if (r->stale || st.st_size != r->size || st.st_ino != r->inode ||
             st.st_mtim.tv_sec != r->changed.tv_sec || st.st_mtim.tv_nsec != r->changed.tv_nsec)
        rc = revoked_read(r, &f);
    if (rc != 0 && !r->failing)
        log_error("auth.revocations_failed",
                  "error=\"%s\" note=\"the last list stays in force\"", f.text);
    r->failing = rc != 0;
}

bool revoked_has(struct revoked *r, span jti)
{
    pthread_mutex_lock(&r->lock);
    look_again(r);
    bool found = r->n > 0 && bsearch(&jti, r->ids, r->n, sizeof r->ids[0], compare_ids);
    pthread_mutex_unlock(&r->lock);
    return found;
}

void revoked_reload(struct revoked *r)
{
    pthread_mutex_lock(&r->lock);
    r->stale = true;
    pthread_mutex_unlock(&r->lock);
}
