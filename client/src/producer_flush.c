// producer_flush.c: waits until all accepted messages are stored or have failed.
#include "producer_int.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "fail.h"

// With the lock: the number of the oldest message that is not settled, or one past the last.
static uint64_t oldest(const struct queen_producer *p)
{
    uint64_t number = p->stats.accepted + 1;
    const struct item *item = STAILQ_FIRST(&p->waiting);
    const struct parcel *parcel;

    if (item && item->number < number)
        number = item->number;
    TAILQ_FOREACH (parcel, &p->parcels, link)
        if (parcel->first < number)
            number = parcel->first;
    return number;
}

static struct timespec after_ms(unsigned ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

int queen_producer_flush(struct queen_producer *p, unsigned timeout_ms, struct queen_error *err)
{
    struct timespec until = after_ms(timeout_ms);
    int rc = client_may_block(p->client, err), late = 0;

    if (rc != 0)
        return rc;
    pthread_mutex_lock(&p->lock);
    uint64_t up_to = p->stats.accepted;
    p->n_inside++;
    p->hurry = true;
    if (!p->closing) // closing flushes anyway
        producer_wake(p);
    while (oldest(p) <= up_to && late == 0)
        late = timeout_ms > 0 ? pthread_cond_timedwait(&p->changed, &p->lock, &until)
                              : pthread_cond_wait(&p->changed, &p->lock);
    size_t left = oldest(p) <= up_to ? p->n_unsettled : 0; // it may have ended just in time
    if (--p->n_inside == 0 && p->closing)
        pthread_cond_broadcast(&p->changed); // queen_producer_free() continues
    pthread_mutex_unlock(&p->lock);
    if (left > 0)
        return fail_set(err, QUEEN_E_TIMEOUT, "%zu messages are not stored after %u ms", left,
                        timeout_ms);
    if (err)
        *err = (struct queen_error){0};
    return 0;
}

static void on_flush(struct mailbox_item *item)
{
    struct flush *f = container_of(item, struct flush, post);
    struct queen_producer *p = f->producer;

    pthread_mutex_lock(&p->lock);
    p->hurry = true;
    p->n_flushes_posted--;
    pthread_mutex_unlock(&p->lock);
    STAILQ_INSERT_TAIL(&p->flushes, f, link);
    producer_pump(p);
    producer_end_flushes(p);
    producer_close_if_done(p);
}

void queen_producer_flush_start(struct queen_producer *p, queen_done_cb done, void *ctx)
{
    struct flush *f = mem_new(struct flush);

    pthread_mutex_lock(&p->lock);
    *f = (struct flush){.producer = p,
                        .up_to = p->stats.accepted,
                        .done = done,
                        .ctx = ctx,
                        .post.deliver = on_flush};
    p->n_flushes_posted++;
    pthread_mutex_unlock(&p->lock);
    client_post(p->client, &f->post);
}

void producer_end_flushes(struct queen_producer *p)
{
    struct flush *f;

    for (;;) {
        pthread_mutex_lock(&p->lock);
        uint64_t number = oldest(p);
        pthread_mutex_unlock(&p->lock);
        f = STAILQ_FIRST(&p->flushes);
        if (!f || number <= f->up_to)
            return;
        STAILQ_REMOVE_HEAD(&p->flushes, link);
        f->done(&(struct queen_error){0}, f->ctx);
        free(f);
    }
}
