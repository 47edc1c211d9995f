// News: what one broker of the house has done that concerns a queue whose home is another.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/mem.h"

struct news {
    struct mailbox_item mail;
    struct broker *to;
    int64_t lane, consumer;
    uint8_t lane_id[16];
    bool maybe_more, changed;
    size_t queue_len, lane_len;
    char text[]; // queue name, then lane name
};

static void deliver(struct mailbox_item *item);

static void post(struct broker *to, struct news *n)
{
    n->to = to;
    n->mail.deliver = deliver;
    if (mailbox_post(&to->mailbox, &n->mail) != 0)
        free(n); // closing: nobody waits there any more
}

static struct news *make(span queue, span lane)
{
    struct news *n = mem_zalloc(1, sizeof *n + queue.len + lane.len + 1);
    n->queue_len = queue.len;
    n->lane_len = lane.len;
    memcpy(n->text, queue.ptr ? queue.ptr : "", queue.len);
    memcpy(n->text + queue.len, lane.ptr ? lane.ptr : "", lane.len);
    return n;
}

static void tell_lane(struct broker *to, const struct lane *lane)
{
    struct news *n = make((span){lane->queue->name, lane->queue->name_len},
                          (span){lane->name, lane->name_len});
    n->lane = lane->num;
    memcpy(n->lane_id, lane->id, 16);
    post(to, n);
}

void news_lane(struct broker *b, struct lane *lane)
{
    struct house *h = b->house;
    struct broker *home = house_home(h, (span){lane->queue->name, lane->queue->name_len});

    lane_ready(b, lane);
    if (home != b)
        tell_lane(home, lane);
    if (b->index != 0 && home->index != 0 &&
        atomic_load_explicit(&h->n_selectors, memory_order_relaxed) > 0)
        tell_lane(h->brokers[0], lane);
}

void news_queue(struct broker *b, span queue)
{
    struct house *h = b->house;

    lanes_distrust(b, queue);
    feed_poll_now(b);
    for (unsigned i = 0; i < h->n; i++) {
        if (i == b->index)
            continue;
        struct news *n = make(queue, SPAN_NONE);
        n->changed = true;
        post(h->brokers[i], n);
    }
}

void news_released(struct broker *b, span queue, int64_t consumer, bool maybe_more)
{
    struct house *h = b->house;
    struct broker *home = house_home(h, queue);
    struct consumer *c = consumer_find_num(b, consumer);

    if (c)
        consumer_released(b, c, maybe_more);
    for (unsigned i = 0; i < h->n; i++) {
        bool selects =
            i == 0 && atomic_load_explicit(&h->n_selectors, memory_order_relaxed) > 0;
        if (i == b->index || (h->brokers[i] != home && !selects))
            continue;
        struct news *n = make(queue, SPAN_NONE);
        n->consumer = consumer;
        n->maybe_more = maybe_more;
        post(h->brokers[i], n);
    }
}

static void deliver(struct mailbox_item *item)
{
    struct news *n = container_of(item, struct news, mail);
    struct broker *b = n->to;
    struct consumer *c;

    if (n->changed) {
        lanes_distrust(b, (span){n->text, n->queue_len});
        feed_poll_now(b);
    } else if (n->lane != 0) {
        struct queue *q = queue_find(b, (span){n->text, n->queue_len});
        if (q) { // somebody has been interested in the queue here
            struct lane *lane = lane_get(b, q, (span){n->text + n->queue_len, n->lane_len});
            lane_set_num(b, lane, n->lane, n->lane_id);
            lane_ready(b, lane);
        }
    } else if ((c = consumer_find_num(b, n->consumer))) {
        consumer_released(b, c, n->maybe_more);
    }
    free(n);
    broker_wake(b);
}
