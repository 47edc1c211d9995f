// jwks.c: the thread that fetches keys, and the state it shares with the workers.
#include "auth/jwks.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum { RETRY_S = 30, JOIN_S = 2 };

struct jwks {
    struct jwks_conf conf;
    pthread_t thread;
    pthread_mutex_t lock; // guards all fields below
    pthread_cond_t change;
    LIST_HEAD(, jwks_watcher) watchers;
    struct keyset *keys;
    uint64_t version;
    uint64_t tried_us; // end of the last attempt
    uint64_t next_us;  // time of the next scheduled fetch
    bool failed;       // the last attempt failed
    bool wanted, fetching, stopping;
};

static void *jwks_run(void *arg);
static void wait_for_work(struct jwks *j);
static struct keyset *fetch(const struct jwks_conf *conf);
static void jwks_publish(struct jwks *j, struct keyset *keys);

int jwks_new(struct jwks **out, const struct jwks_conf *conf, struct fault *f)
{
    struct jwks *j = mem_new(struct jwks);
    pthread_condattr_t attr;

    j->conf = *conf;
    LIST_INIT(&j->watchers);
    pthread_mutex_init(&j->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&j->change, &attr);
    pthread_condattr_destroy(&attr);
    j->wanted = true;
    int err = pthread_create(&j->thread, NULL, jwks_run, j);
    if (err != 0) {
        free(j);
        return fault_set(f, QE_INTERNAL, "cannot start a thread: %s", strerror(err));
    }
    *out = j;
    return 0;
}

void jwks_free(struct jwks *j)
{
    struct timespec until;

    if (!j)
        return;
    pthread_mutex_lock(&j->lock);
    j->stopping = true;
    pthread_cond_signal(&j->change);
    pthread_mutex_unlock(&j->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_S;
    // Do not wait for a server that does not answer; the process ends soon anyway.
    if (pthread_timedjoin_np(j->thread, NULL, &until) != 0) {
        pthread_detach(j->thread);
        return;
    }
    keyset_unref(j->keys);
    pthread_cond_destroy(&j->change);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

// ---- the thread ----

static void *jwks_run(void *arg)
{
    struct jwks *j = arg;

    pthread_setname_np(pthread_self(), "queen-jwks");
    pthread_mutex_lock(&j->lock);
    for (;;) {
        wait_for_work(j);
        if (j->stopping)
            break;
        j->wanted = false;
        j->fetching = true;
        pthread_mutex_unlock(&j->lock);
        struct keyset *keys = fetch(&j->conf);
        pthread_mutex_lock(&j->lock);
        j->fetching = false;
        jwks_publish(j, keys);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static void wait_for_work(struct jwks *j)
{
    while (!j->stopping && !j->wanted) {
        uint64_t now = clock_mono_us();
        if (now >= j->next_us)
            return;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        uint64_t us = j->next_us - now + (uint64_t)until.tv_nsec / 1000;
        until.tv_sec += (time_t)(us / 1000000);
        until.tv_nsec = (long)(us % 1000000) * 1000;
        pthread_cond_timedwait(&j->change, &j->lock, &until);
    }
}

// NULL: failed and logged.
static struct keyset *fetch(const struct jwks_conf *conf)
{
    struct keyset *keys = keyset_new();
    struct buf answer = {0};
    struct fault f = {0};

    int rc = conf->fetch(conf->url, conf->timeout_ms, &answer, &f);
    if (rc == 0)
        rc = keyset_add_jwks(keys, buf_span(&answer), &f);
    buf_free(&answer);
    if (rc == 0)
        return keys;
    log_warn("jwks.fetch_failed", "url=\"%s\" error=\"%s\"", conf->url, f.text);
    keyset_unref(keys);
    return NULL;
}

// The previous keys stay in use while newer ones cannot be fetched.
static void jwks_publish(struct jwks *j, struct keyset *keys)
{
    unsigned retry_s = j->conf.refresh_s < RETRY_S ? j->conf.refresh_s : RETRY_S;
    struct jwks_watcher *w;

    j->failed = keys == NULL;
    j->tried_us = clock_mono_us();
    j->next_us = j->tried_us + (uint64_t)(keys ? j->conf.refresh_s : retry_s) * 1000000;
    if (keys) {
        keyset_unref(j->keys);
        j->keys = keys;
        j->version++;
        log_debug("jwks.fetched", "url=\"%s\"", j->conf.url);
    }
    LIST_FOREACH (w, &j->watchers, link)
        w->changed(w->ctx);
}

// ---- the workers ----

void jwks_watch(struct jwks *j, struct jwks_watcher *w)
{
    pthread_mutex_lock(&j->lock);
    LIST_INSERT_HEAD(&j->watchers, w, link);
    pthread_mutex_unlock(&j->lock);
}

void jwks_unwatch(struct jwks *j, struct jwks_watcher *w)
{
    pthread_mutex_lock(&j->lock);
    LIST_REMOVE(w, link);
    pthread_mutex_unlock(&j->lock);
}

struct keyset *jwks_current(struct jwks *j, uint64_t *version)
{
    pthread_mutex_lock(&j->lock);
    struct keyset *keys = j->keys ? keyset_ref(j->keys) : NULL;
    *version = j->version;
    pthread_mutex_unlock(&j->lock);
    return keys;
}

enum jwks_answer jwks_want(struct jwks *j, uint64_t version)
{
    enum jwks_answer answer;

    pthread_mutex_lock(&j->lock);
    unsigned gap_ms = j->failed ? j->conf.failed_gap_ms : j->conf.gap_ms;
    if (version != j->version) {
        answer = JWKS_NEWER;
    } else if (j->wanted || j->fetching) {
        answer = JWKS_WAIT;
    } else if (clock_mono_us() - j->tried_us >= (uint64_t)gap_ms * 1000) {
        j->wanted = true;
        pthread_cond_signal(&j->change);
        answer = JWKS_WAIT;
    } else {
        answer = j->failed ? JWKS_AWAY : JWKS_NO_KEY;
    }
    pthread_mutex_unlock(&j->lock);
    return answer;
}
