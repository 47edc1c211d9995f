// mailbox.h: messages from any thread to the thread of a loop.
//
//     any thread: mailbox_post ──► queue ──► owner's loop: item->deliver(item)
//
// Items are delivered in the order they were posted, by the thread that runs the loop. The
// first post into an empty queue wakes the loop; later ones cost no system call. An item lives
// in the poster's memory and belongs to the mailbox until deliver is called.
#ifndef QUEEN_NET_MAILBOX_H
#define QUEEN_NET_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/attrs.h"

struct mailbox_item {
    void (*deliver)(struct mailbox_item *item); // may free the item, post or drain
    void *owner;                                // for deliver; not used by the mailbox

    STAILQ_ENTRY(mailbox_item) link; // used by the mailbox only
};

STAILQ_HEAD(mailbox_queue, mailbox_item);

// In the caller's memory, because a thread may still post while the owner closes: the memory
// must stay until the last possible poster has stopped. All fields are private.
struct mailbox {
    pthread_mutex_t lock; // guards queue and open
    struct mailbox_queue queue;
    bool open;

    struct mailbox_queue taken; // owner's thread only
    uv_async_t wake;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// Call from the loop's thread, or before the loop runs. The mailbox keeps the loop alive.
MUST_USE int mailbox_open(struct mailbox *m, uv_loop_t *loop);

// From any thread. UV_ECANCELED after mailbox_close(): the caller keeps the item.
MUST_USE int mailbox_post(struct mailbox *m, struct mailbox_item *item);

// By the owner, at any time, also from inside deliver: delivers all queued items.
void mailbox_drain_now(struct mailbox *m);

// By the owner. Delivers all queued items and refuses later posts. closed (may be NULL) is
// called when the loop no longer uses the mailbox.
void mailbox_close(struct mailbox *m, void (*closed)(void *ctx), void *ctx);
// After closed, once no thread can post any more.
void mailbox_deinit(struct mailbox *m);

#endif
