// threads.c: a queue of jobs and the threads that serve it.
#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "fail.h"

struct threads {
    queen_handler handler;
    void *ctx;
    unsigned n;
    pthread_t *threads;

    pthread_mutex_t lock; // guards the rest
    pthread_cond_t changed;
    STAILQ_HEAD(, queen_job) jobs;
    bool stopping;
};

static void *thread_work(void *arg)
{
    struct threads *c = arg;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (STAILQ_EMPTY(&c->jobs) && !c->stopping)
            pthread_cond_wait(&c->changed, &c->lock);
        struct queen_job *job = STAILQ_FIRST(&c->jobs);
        if (!job)
            break;
        STAILQ_REMOVE_HEAD(&c->jobs, waiting);
        pthread_mutex_unlock(&c->lock);
        enum queen_verdict v = c->handler(job, c->ctx);
        if (v != QUEEN_LATER)
            queen_job_finish(job, v);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

struct threads *threads_new(unsigned n, queen_handler handler, void *ctx,
                            struct queen_error *err)
{
    struct threads *c = mem_new(struct threads);
    sigset_t all, before;

    c->handler = handler;
    c->ctx = ctx;
    c->threads = mem_new_array(pthread_t, n);
    STAILQ_INIT(&c->jobs);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    sigfillset(&all); // signals belong to the program
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; c->n < n; c->n++) {
        int rc = pthread_create(&c->threads[c->n], NULL, thread_work, c);
        if (rc != 0) {
            fail_set(err, QUEEN_E_MEMORY, "no thread for a handler: %s", strerror(rc));
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (c->n == n)
        return c;
    threads_free(c);
    return NULL;
}

void threads_run(struct threads *c, struct queen_job *job)
{
    pthread_mutex_lock(&c->lock);
    STAILQ_INSERT_TAIL(&c->jobs, job, waiting);
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

void threads_free(struct threads *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->n; i++)
        pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->threads);
    free(c);
}
