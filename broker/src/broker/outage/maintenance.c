// The maintenance modes: read from the database and passed to all brokers of the house.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

enum { FIRST_US = 50 * 1000 }; // between tries until they are known

struct notice {
    struct mailbox_item mail;
    struct broker *to;
    unsigned flags;
    size_t queue_len;
    char queue[];
};

static void on_maintenance_due(struct due *d);
static void on_maintenance_flags(struct pg_call *pg, int status, const struct pg_reply *reply);
static void apply_flags(struct broker *b, unsigned flags);
static void deliver_flags(struct mailbox_item *item);
static void deliver_notify(struct mailbox_item *item);

void maintenance_start(struct broker *b)
{
    due_set(&b->due, &b->flags_due, clock_mono_us(), on_maintenance_due);
    broker_wake(b);
}

static void maintenance_again(struct broker *b)
{
    bool known = atomic_load(&b->house->flags_known);

    due_set(&b->due, &b->flags_due,
            clock_mono_us() +
                (known ? b->house->replay_conf.refresh_ms * 1000ull : (uint64_t)FIRST_US),
            on_maintenance_due);
}

static void on_maintenance_due(struct due *d)
{
    struct broker *b = container_of(d, struct broker, flags_due);

    if (b->closing)
        return;
    if (!broker_is_up(b)) {
        maintenance_again(b);
        return;
    }
    struct call *c = call_new(b, &pg_stmt_maintenance, NULL);
    b->flags_asked = atomic_load(&b->house->flags_version);
    call_send(c, on_maintenance_flags);
}

static void on_maintenance_flags(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    if (status == 0 && pg_reply_rows(reply) == 1)
        maintenance_read(b, (unsigned)pg_reply_i32(reply, 0, MAINTENANCE_COL_MAINTENANCE_FLAGS),
                         b->flags_asked);
    else
        log_debug("maintenance.read_failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
    call_free(c);
    maintenance_again(b);
    broker_wake(b);
}

// A value read before a change through this process is out of date.
void maintenance_read(struct broker *b, unsigned flags, unsigned version)
{
    if (b->house->spool && atomic_load(&b->house->flags_version) == version)
        apply_flags(b, flags);
}

void broker_maintenance_changed(struct broker *b, unsigned flags)
{
    struct house *h = b->house;

    atomic_fetch_add(&h->flags_version, 1);
    apply_flags(b, flags);
    if (h->notify)
        h->notify(h->notify_ctx, HOUSE_MODES, SPAN_NONE, SPAN_NONE);
}

unsigned house_maintenance(const struct house *h) { return atomic_load(&h->flags); }

// Pushes look at the house's flags; pops are notified, because parked ones must go on.
static void apply_flags(struct broker *b, unsigned flags)
{
    struct house *h = b->house;
    unsigned before = atomic_exchange(&h->flags, flags);

    if (!atomic_exchange(&h->flags_known, true) || before != flags)
        replay_kick(h);
    if (before == flags)
        return;
    log_info("maintenance.set", "push=%s pop=%s", flags & MAINTENANCE_PUSH ? "on" : "off",
             flags & MAINTENANCE_POP ? "on" : "off");
    for (unsigned i = 0; i < h->n; i++) {
        struct notice *n = mem_new(struct notice);
        n->to = h->brokers[i];
        n->flags = flags;
        n->mail.deliver = deliver_flags;
        if (mailbox_post(&n->to->mailbox, &n->mail) != 0)
            free(n); // closing
    }
}

static void deliver_flags(struct mailbox_item *item)
{
    struct notice *n = container_of(item, struct notice, mail);
    struct broker *b = n->to;
    bool stopped = n->flags & MAINTENANCE_POP;

    bool resumed = b->pops_stopped && !stopped;
    b->pops_stopped = stopped;
    free(n);
    if (resumed)
        pops_resume(b, NULL);
    broker_wake(b);
}

// ---- notify ----

void broker_notify(struct broker *b, span queue)
{
    struct house *h = b->house;
    const struct broker *home = house_home(h, queue);

    if (h->notify)
        h->notify(h->notify_ctx, HOUSE_STORED, queue, SPAN_NONE);
    for (unsigned i = 0; i < h->n; i++) {
        bool selects =
            i == 0 && atomic_load_explicit(&h->n_selectors, memory_order_relaxed) > 0;
        if (h->brokers[i] != home && !selects)
            continue;
        struct notice *n = mem_zalloc(1, sizeof *n + queue.len + 1);
        n->to = h->brokers[i];
        n->queue_len = queue.len;
        memcpy(n->queue, queue.ptr, queue.len);
        n->mail.deliver = deliver_notify;
        if (mailbox_post(&n->to->mailbox, &n->mail) != 0)
            free(n);
    }
}

static void deliver_notify(struct mailbox_item *item)
{
    struct notice *n = container_of(item, struct notice, mail);
    struct broker *b = n->to;
    struct queue *q = queue_find(b, (span){n->queue, n->queue_len});

    b->feed_asked_us = 0; // a look of a moment ago does not count
    if (q && !b->pops_stopped)
        pops_resume(b, q);
    free(n);
    broker_wake(b);
}
