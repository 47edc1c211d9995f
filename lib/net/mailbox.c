// mailbox.c: a queue with a lock, and a uv_async to wake the loop.
#include "net/mailbox.h"

#include <assert.h>

static void on_wake(uv_async_t *wake);
static void on_mailbox_handle_closed(uv_handle_t *handle);

int mailbox_open(struct mailbox *m, uv_loop_t *loop)
{
    STAILQ_INIT(&m->queue);
    STAILQ_INIT(&m->taken);
    int rc = uv_async_init(loop, &m->wake, on_wake);
    if (rc != 0)
        return rc;
    m->wake.data = m;
    m->open = true;
    pthread_mutex_init(&m->lock, NULL);
    return 0;
}

int mailbox_post(struct mailbox *m, struct mailbox_item *item)
{
    int rc = UV_ECANCELED;

    pthread_mutex_lock(&m->lock);
    if (m->open) {
        bool was_empty = STAILQ_EMPTY(&m->queue);
        STAILQ_INSERT_TAIL(&m->queue, item, link);
        // Under the lock, so that the handle is not closed meanwhile.
        if (was_empty)
            uv_async_send(&m->wake);
        rc = 0;
    }
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static void on_wake(uv_async_t *wake) { mailbox_drain_now(wake->data); }

// Taken items stay in the mailbox, not on this stack: a drain from inside deliver continues
// with the same list and keeps the order.
void mailbox_drain_now(struct mailbox *m)
{
    struct mailbox_item *item;

    pthread_mutex_lock(&m->lock);
    STAILQ_CONCAT(&m->taken, &m->queue);
    pthread_mutex_unlock(&m->lock);

    while ((item = STAILQ_FIRST(&m->taken))) {
        STAILQ_REMOVE_HEAD(&m->taken, link);
        item->deliver(item);
    }
}

void mailbox_close(struct mailbox *m, void (*closed)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&m->lock);
    assert(m->open);
    m->open = false;
    m->closed = closed;
    m->closed_ctx = ctx;
    uv_close((uv_handle_t *)&m->wake, on_mailbox_handle_closed);
    pthread_mutex_unlock(&m->lock);
    mailbox_drain_now(m);
}

static void on_mailbox_handle_closed(uv_handle_t *handle)
{
    struct mailbox *m = handle->data;

    if (m->closed)
        m->closed(m->closed_ctx);
}

void mailbox_deinit(struct mailbox *m)
{
    assert(!m->open && STAILQ_EMPTY(&m->queue) && STAILQ_EMPTY(&m->taken));
    pthread_mutex_destroy(&m->lock);
}
