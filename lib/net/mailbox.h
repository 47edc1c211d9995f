// mailbox.h: messages into a loop, from any thread.
//
//      any thread: mailbox_post ──► queue ──► owner's loop: item->deliver(item)
//
// Items are delivered in the order they were posted, by the thread that runs the loop.  The
// first post into an empty queue wakes the loop, those behind it cost no system call.  An item
// lives in the poster's memory and belongs to the mailbox until deliver is called.
#ifndef QUEEN_NET_MAILBOX_H
#define QUEEN_NET_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/attrs.h"

struct mailbox_item {
    void (*deliver)(struct mailbox_item *item); // may free the item, post, drain
    void *owner;                                // for deliver; the mailbox does not look at it

    STAILQ_ENTRY(mailbox_item) link; // the mailbox's own
};

STAILQ_HEAD(mailbox_queue, mailbox_item);

// In the caller's memory, because a thread may still post while the owner closes: the memory
// must stay until the last possible poster has stopped.  All fields are the mailbox's own.
struct mailbox {
    pthread_mutex_t lock; // guards queue and open
    struct mailbox_queue queue;
    bool open;

    struct mailbox_queue taken; // owner's thread only
    uv_async_t wake;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// By the loop's thread (or before it runs).  The mailbox keeps the loop alive.
MUST_USE int mailbox_open(struct mailbox *m, uv_loop_t *loop);

// From any thread.  UV_ECANCELED after mailbox_close(): the item stays the caller's.
MUST_USE int mailbox_post(struct mailbox *m, struct mailbox_item *item);

// By the owner, at any time, also from inside deliver: delivers what is there now.
void mailbox_drain_now(struct mailbox *m);

// By the owner.  Delivers what is there, refuses later posts; closed (may be NULL) is called
// when the loop is done with the mailbox.
void mailbox_close(struct mailbox *m, void (*closed)(void *ctx), void *ctx);
// After closed, once nobody can post any more.
void mailbox_deinit(struct mailbox *m);

#endif
