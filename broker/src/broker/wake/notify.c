// Notifications: from a broker to the home of a queue, to other servers, and from them.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/mem.h"

struct notice {
    struct mailbox_item mail;
    struct broker *to;
    uint64_t server; // that the numbers are of
    int64_t lane, consumer;
    uint8_t lane_id[16];
    bool maybe_more, changed, prompt, modes, keys, poll, retry;
    size_t queue_len, lane_len, only_len;
    char text[]; // queue name, partition name, group of a retry lane
};

static void deliver_notice(struct mailbox_item *item);

static uint64_t server_of(const struct broker *b)
{
    return b->pg ? pg_pool_server(b->pg) : 0; // NULL: closing
}

static void post_notice(struct broker *to, struct notice *n)
{
    n->to = to;
    n->mail.deliver = deliver_notice;
    if (mailbox_post(&to->mailbox, &n->mail) != 0)
        free(n); // closing: no pop waits there any more
}

static struct notice *make_notice(span queue, span lane, span only)
{
    struct notice *n = mem_zalloc(1, sizeof *n + queue.len + lane.len + only.len + 1);
    n->queue_len = queue.len;
    n->lane_len = lane.len;
    n->only_len = only.len;
    memcpy(n->text, queue.ptr ? queue.ptr : "", queue.len);
    memcpy(n->text + queue.len, lane.ptr ? lane.ptr : "", lane.len);
    memcpy(n->text + queue.len + lane.len, only.ptr ? only.ptr : "", only.len);
    return n;
}

static void notify_broker(struct broker *to, const struct lane *lane)
{
    struct notice *n = make_notice((span){lane->queue->name, lane->queue->name_len},
                                   lane_shown(lane), lane->only);
    n->retry = lane->origin != NULL;
    n->server = server_of(lane->queue->broker);
    n->lane = lane->num;
    memcpy(n->lane_id, lane->id, 16);
    post_notice(to, n);
}

// Once per queue and turn: who looks finds all of it.
static void notify_servers(struct broker *b, const struct lane *lane)
{
    struct house *h = b->house;
    struct queue *q = lane->queue;

    if (!h->notify || q->notified_turn == b->n_turns)
        return;
    q->notified_turn = b->n_turns;
    h->notify(h->notify_ctx, HOUSE_STORED, (span){q->name, q->name_len}, lane_shown(lane));
}

void notify_lane(struct broker *b, struct lane *lane)
{
    struct house *h = b->house;
    struct broker *home = house_home(h, (span){lane->queue->name, lane->queue->name_len});

    lane_ready(b, lane);
    notify_servers(b, lane);
    if (home != b)
        notify_broker(home, lane);
    if (b->index != 0 && home->index != 0 &&
        atomic_load_explicit(&h->n_selectors, memory_order_relaxed) > 0)
        notify_broker(h->brokers[0], lane);
}

void notify_stored(struct broker *b, const struct stored_lane *lane, bool servers)
{
    struct house *h = b->house;
    struct broker *home = house_home(h, lane->queue);
    bool selects = atomic_load_explicit(&h->n_selectors, memory_order_relaxed) > 0;

    if (h->notify && servers)
        h->notify(h->notify_ctx, HOUSE_STORED, lane->queue, lane->partition);
    for (unsigned i = 0; i < h->n; i++) {
        if (h->brokers[i] != home && !(i == 0 && selects))
            continue;
        struct notice *n = make_notice(lane->queue, lane->partition, lane->only);
        n->retry = lane->only.ptr != NULL;
        n->server = server_of(b);
        n->lane = lane->num;
        memcpy(n->lane_id, lane->id, 16);
        post_notice(h->brokers[i], n);
    }
}

void notify_poll(struct broker *b)
{
    struct house *h = b->house;

    for (unsigned i = 0; i < h->n; i++) {
        struct notice *n = make_notice(SPAN_NONE, SPAN_NONE, SPAN_NONE);
        n->poll = true;
        post_notice(h->brokers[i], n);
    }
}

void notify_queue(struct broker *b, span queue)
{
    struct house *h = b->house;

    if (h->notify)
        h->notify(h->notify_ctx, HOUSE_CONFIGURED, queue, SPAN_NONE);
    lanes_distrust(b, queue);
    feed_poll_now(b);
    for (unsigned i = 0; i < h->n; i++) {
        if (i == b->index)
            continue;
        struct notice *n = make_notice(queue, SPAN_NONE, SPAN_NONE);
        n->changed = true;
        post_notice(h->brokers[i], n);
    }
}

void notify_released(struct broker *b, span queue, int64_t consumer, bool maybe_more)
{
    struct house *h = b->house;
    struct broker *home = house_home(h, queue);
    struct consumer *c = consumer_find_num(b, consumer);

    if (c)
        consumer_released(b, c, maybe_more);
    if (h->notify && maybe_more)
        h->notify(h->notify_ctx, HOUSE_FREED, queue, SPAN_NONE);
    for (unsigned i = 0; i < h->n; i++) {
        bool selects =
            i == 0 && atomic_load_explicit(&h->n_selectors, memory_order_relaxed) > 0;
        if (i == b->index || (h->brokers[i] != home && !selects))
            continue;
        struct notice *n = make_notice(queue, SPAN_NONE, SPAN_NONE);
        n->server = server_of(b);
        n->consumer = consumer;
        n->maybe_more = maybe_more;
        post_notice(h->brokers[i], n);
    }
}

// ---- pops that park ----

void house_watch_parked(struct house *h, void (*parked)(void *ctx), void *ctx)
{
    h->parked = parked;
    h->parked_ctx = ctx;
}

void house_await_parked(struct house *h, bool await)
{
    atomic_store(&h->parked_awaited, await);
}

void notify_parked(struct house *h)
{
    if (h->parked && atomic_load_explicit(&h->parked_awaited, memory_order_relaxed) &&
        atomic_exchange(&h->parked_awaited, false))
        h->parked(h->parked_ctx);
}

uint64_t house_parked(const struct house *h)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < h->n; i++)
        n += atomic_load_explicit(&h->brokers[i]->stats.parked, memory_order_relaxed);
    return n;
}

void house_poll(struct house *h)
{
    for (unsigned i = 0; i < h->n; i++) {
        if (atomic_load_explicit(&h->brokers[i]->stats.parked, memory_order_relaxed) == 0)
            continue;
        struct notice *n = make_notice(SPAN_NONE, SPAN_NONE, SPAN_NONE);
        n->poll = true;
        post_notice(h->brokers[i], n);
    }
}

// ---- other servers ----

void house_notify_with(struct house *h, house_notify_cb *notify, void *ctx)
{
    h->notify = notify;
    h->notify_ctx = ctx;
}

static bool concerns(struct house *h, unsigned i, enum house_event what, span queue)
{
    switch (what) {
    case HOUSE_CONFIGURED:
        return true;
    case HOUSE_MODES:
    case HOUSE_KEYS:
        return i == 0; // it reads them for all
    case HOUSE_STORED:
    case HOUSE_FREED:
        break;
    }
    return h->brokers[i] == house_home(h, queue) ||
           (i == 0 && atomic_load_explicit(&h->n_selectors, memory_order_relaxed) > 0);
}

void house_notified(struct house *h, enum house_event what, span queue)
{
    for (unsigned i = 0; i < h->n; i++) {
        if (!concerns(h, i, what, queue))
            continue;
        struct notice *n = make_notice(queue, SPAN_NONE, SPAN_NONE);
        n->changed = what == HOUSE_CONFIGURED;
        n->modes = what == HOUSE_MODES;
        n->keys = what == HOUSE_KEYS;
        n->prompt = what == HOUSE_STORED || what == HOUSE_FREED;
        post_notice(h->brokers[i], n);
    }
}

static void deliver_notice(struct mailbox_item *item)
{
    struct notice *n = container_of(item, struct notice, mail);
    struct broker *b = n->to;
    struct consumer *c;

    if (n->poll) {
        feed_poll_now(b);
    } else if (n->prompt) {
        feed_prompt(b, (span){n->text, n->queue_len});
    } else if (n->modes) {
        maintenance_start(b);
    } else if (n->keys) {
        keys_start(b);
    } else if (n->changed) {
        lanes_distrust(b, (span){n->text, n->queue_len});
        feed_poll_now(b);
    } else if (n->server != server_of(b)) { // numbers of another: look by name
        feed_prompt(b, (span){n->text, n->queue_len});
    } else if (n->lane != 0) {
        struct queue *q = queue_find(b, (span){n->text, n->queue_len});
        if (q) { // the queue is in use here
            span name = {n->text + n->queue_len, n->lane_len};
            span only = {name.ptr + name.len, n->only_len};
            struct lane *lane =
                n->retry ? lane_get_retry(b, q, n->lane_id, name, only) : lane_get(b, q, name);
            lane_set_num(b, lane, n->lane, n->lane_id);
            lane_ready(b, lane);
        }
    } else if ((c = consumer_find_num(b, n->consumer))) {
        consumer_released(b, c, n->maybe_more);
    }
    free(n);
    broker_wake(b);
}
