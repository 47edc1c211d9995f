// slots.c: hands out pools, queues requests and evicts idle pools.
#include "tenant/slots.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

TAILQ_HEAD(slot_list, slot);
TAILQ_HEAD(entry_list, tenant_entry);

struct slots {
    unsigned max;
    const struct slots_acts *acts;
    void *ctx;
    bool stopping;
    struct slot_list all, idle; // idle: longest idle first
    struct entry_list queue;    // entries that wait for room, in order
    struct want_list waiting;   // requests of all entries, in order of arrival
    uint64_t turn;
    struct slots_counts n;
};

enum { WANT_NONE, WANT_WAITS }; // tenant_want.state

// The steps of a request, in order; then those of a slot.
static void wait_for_slot(struct slots *s, struct tenant_entry *e, struct tenant_want *w);
static void want_room(struct slots *s, struct tenant_entry *e);
static void make_room(struct slots *s);
static void open_slot(struct slots *s, struct tenant_entry *e);
static void serve_wants(struct slots *s, struct tenant_entry *e);
static void finish_want(struct slots *s, struct tenant_want *w, int status, struct slot *slot);
static void use_slot(struct slots *s, struct slot *slot);
static void mark_ready(struct slots *s, struct slot *slot, uint64_t now_us);
static void drain_slot(struct slots *s, struct slot *slot, enum slots_why why);
static void close_if_free(struct slots *s, struct slot *slot);

void tenant_entry_init(struct tenant_entry *e, struct slots *s, void *owner)
{
    *e = (struct tenant_entry){.slots = s, .owner = owner};
    TAILQ_INIT(&e->wants);
}

bool slots_is_unused(const struct tenant_entry *e)
{
    return e->slot == NULL && TAILQ_EMPTY(&e->wants);
}

struct slots *slots_new(unsigned max, const struct slots_acts *acts, void *ctx)
{
    struct slots *s = mem_new(struct slots);

    s->max = max;
    s->acts = acts;
    s->ctx = ctx;
    TAILQ_INIT(&s->all);
    TAILQ_INIT(&s->idle);
    TAILQ_INIT(&s->queue);
    TAILQ_INIT(&s->waiting);
    return s;
}

void slots_free(struct slots *s)
{
    assert(TAILQ_EMPTY(&s->all) && TAILQ_EMPTY(&s->queue) && TAILQ_EMPTY(&s->waiting));
    free(s);
}

void slots_get(struct slots *s, struct tenant_entry *e, struct tenant_want *w, bool must_check)
{
    struct slot *slot = e->slot;

    w->entry = e;
    w->state = WANT_NONE;
    w->missed = slot == NULL || slot->state == SLOT_OPENING;
    if (s->stopping) {
        s->acts->finish(s->ctx, w, QE_STOPPING, NULL);
        return;
    }
    if (slot && slot->state == SLOT_READY && !must_check) {
        use_slot(s, slot);
        finish_want(s, w, 0, slot);
        return;
    }
    wait_for_slot(s, e, w);
    if (slot && slot->state == SLOT_READY) {
        if (slot->refs == 0) {
            TAILQ_REMOVE(&s->idle, slot, idle);
            s->n.n_idle--;
        }
        slot->state = SLOT_CHECKING;
        slot->acting = true;
        s->acts->check(s->ctx, slot);
    } else if (!slot && !e->queued) {
        want_room(s, e);
    }
}

static void wait_for_slot(struct slots *s, struct tenant_entry *e, struct tenant_want *w)
{
    w->state = WANT_WAITS;
    w->turn = ++s->turn;
    TAILQ_INSERT_TAIL(&e->wants, w, link);
    TAILQ_INSERT_TAIL(&s->waiting, w, waiting);
    s->n.n_waiting++;
}

static void stop_waiting(struct slots *s, struct tenant_want *w)
{
    w->state = WANT_NONE;
    TAILQ_REMOVE(&w->entry->wants, w, link);
    TAILQ_REMOVE(&s->waiting, w, waiting);
    s->n.n_waiting--;
}

static void unqueue(struct slots *s, struct tenant_entry *e)
{
    if (!e->queued)
        return;
    e->queued = false;
    TAILQ_REMOVE(&s->queue, e, queue);
    s->n.n_queued--;
}

void slots_cancel(struct slots *s, struct tenant_want *w)
{
    if (w->state != WANT_WAITS)
        return;
    stop_waiting(s, w);
    if (TAILQ_EMPTY(&w->entry->wants))
        unqueue(s, w->entry);
}

// ---- room ----

static void want_room(struct slots *s, struct tenant_entry *e)
{
    e->queued = true;
    TAILQ_INSERT_TAIL(&s->queue, e, queue);
    s->n.n_queued++;
    s->n.waits += s->n.n_slots >= s->max;
    make_room(s);
}

// Gives free room to the entries that have waited longest, then evicts idle slots until as many
// are closing as entries wait for room.
static void make_room(struct slots *s)
{
    struct tenant_entry *e;
    struct slot *victim;

    if (s->stopping)
        return;
    while (s->n.n_slots < s->max && (e = TAILQ_FIRST(&s->queue)) != NULL) {
        unqueue(s, e);
        open_slot(s, e);
    }
    while (s->n.n_closing < s->n.n_queued && (victim = TAILQ_FIRST(&s->idle)) != NULL)
        drain_slot(s, victim, SLOTS_NO_ROOM);
}

static void open_slot(struct slots *s, struct tenant_entry *e)
{
    struct slot *slot = mem_new(struct slot);

    slot->state = SLOT_OPENING;
    slot->acting = true;
    slot->entry = e;
    e->slot = slot;
    TAILQ_INSERT_TAIL(&s->all, slot, all);
    s->n.n_slots++;
    s->acts->open(s->ctx, slot);
}

void slots_opened(struct slots *s, struct slot *slot, int status, uint64_t now_us)
{
    struct tenant_entry *e = slot->entry;

    slot->acting = false;
    s->n.failed_opens += status != 0;
    if (slot->state == SLOT_DRAINING) { // retired while opening
        close_if_free(s, slot);
        return;
    }
    assert(slot->state == SLOT_OPENING);
    if (status != 0) {
        drain_slot(s, slot, SLOTS_FAILED);
        slots_refuse(s, e, status);
        return;
    }
    mark_ready(s, slot, now_us);
    serve_wants(s, e);
    make_room(s);
}

void slots_checked(struct slots *s, struct slot *slot, bool healthy, uint64_t now_us)
{
    struct tenant_entry *e = slot->entry;

    slot->acting = false;
    s->n.failed_checks += !healthy;
    if (slot->state == SLOT_DRAINING) { // retired during the check
        close_if_free(s, slot);
        return;
    }
    assert(slot->state == SLOT_CHECKING);
    mark_ready(s, slot, now_us);
    if (!healthy) {
        struct tenant_want *w;
        TAILQ_FOREACH (w, &e->wants, link)
            w->missed = true;
        slots_retire(s, e, SLOTS_UNHEALTHY);
        return;
    }
    serve_wants(s, e);
    make_room(s);
}

static void serve_wants(struct slots *s, struct tenant_entry *e)
{
    struct tenant_want *w;

    while (e->slot && e->slot->state == SLOT_READY && (w = TAILQ_FIRST(&e->wants)) != NULL) {
        stop_waiting(s, w);
        use_slot(s, e->slot);
        finish_want(s, w, 0, e->slot);
    }
}

static void finish_want(struct slots *s, struct tenant_want *w, int status, struct slot *slot)
{
    s->n.hits += !w->missed;
    s->n.misses += w->missed;
    s->acts->finish(s->ctx, w, status, slot);
}

// ---- slots ----

static void use_slot(struct slots *s, struct slot *slot)
{
    if (slot->refs++ == 0) {
        TAILQ_REMOVE(&s->idle, slot, idle);
        s->n.n_idle--;
    }
}

// Marks the slot ready, and idle if it has no user.
static void mark_ready(struct slots *s, struct slot *slot, uint64_t now_us)
{
    slot->state = SLOT_READY;
    if (slot->refs > 0)
        return;
    slot->idle_since_us = now_us;
    TAILQ_INSERT_TAIL(&s->idle, slot, idle);
    s->n.n_idle++;
    if (s->stopping)
        drain_slot(s, slot, SLOTS_IDLE);
}

void slots_put(struct slots *s, struct slot *slot, uint64_t now_us)
{
    assert(slot->refs > 0);
    if (--slot->refs > 0)
        return;
    if (slot->state == SLOT_READY) {
        mark_ready(s, slot, now_us);
        make_room(s);
    } else {
        close_if_free(s, slot); // does nothing during a check
    }
}

// Detaches the slot from its entry, so that it is not handed out again.
static void drain_slot(struct slots *s, struct slot *slot, enum slots_why why)
{
    assert(slot->entry);
    s->n.closed[why]++;
    slot->entry->slot = NULL;
    slot->entry = NULL;
    if (slot->state == SLOT_READY && slot->refs == 0) {
        TAILQ_REMOVE(&s->idle, slot, idle);
        s->n.n_idle--;
    }
    slot->state = SLOT_DRAINING;
    close_if_free(s, slot);
}

static void close_if_free(struct slots *s, struct slot *slot)
{
    if (slot->state != SLOT_DRAINING || slot->refs > 0 || slot->acting)
        return;
    slot->state = SLOT_CLOSING;
    s->n.n_closing++;
    s->acts->close(s->ctx, slot);
}

void slots_closed(struct slots *s, struct slot *slot)
{
    assert(slot->state == SLOT_CLOSING);
    TAILQ_REMOVE(&s->all, slot, all);
    s->n.n_slots--;
    s->n.n_closing--;
    free(slot);
    make_room(s);
}

void slots_retire(struct slots *s, struct tenant_entry *e, enum slots_why why)
{
    if (e->slot)
        drain_slot(s, e->slot, why);
    if (!TAILQ_EMPTY(&e->wants) && !e->queued)
        want_room(s, e);
}

void slots_refuse(struct slots *s, struct tenant_entry *e, int status)
{
    uint64_t now = s->turn; // a request added by the callback waits behind these
    struct tenant_want *w;

    unqueue(s, e);
    while ((w = TAILQ_FIRST(&e->wants)) != NULL && w->turn <= now) {
        stop_waiting(s, w);
        finish_want(s, w, status, NULL);
    }
}

// ---- timer and shutdown ----

static struct tenant_want *find_late(const struct slots *s, uint64_t now_us)
{
    struct tenant_want *w;

    TAILQ_FOREACH (w, &s->waiting, waiting)
        if (now_us >= w->deadline_us)
            return w;
    return NULL;
}

void slots_tick(struct slots *s, uint64_t now_us, uint64_t idle_us)
{
    struct tenant_want *w;
    struct slot *slot;

    while ((w = find_late(s, now_us)) !=
           NULL) { // search again each time: finish may change the list
        slots_cancel(s, w);
        finish_want(s, w, QE_BUSY, NULL);
    }
    while ((slot = TAILQ_FIRST(&s->idle)) != NULL && now_us >= slot->idle_since_us + idle_us)
        drain_slot(s, slot, SLOTS_IDLE);
}

void slots_stop(struct slots *s)
{
    struct tenant_want *w;
    struct slot *slot;

    s->stopping = true;
    while ((w = TAILQ_FIRST(&s->waiting)) != NULL) {
        slots_cancel(s, w);
        s->acts->finish(s->ctx, w, QE_STOPPING, NULL);
    }
    while ((slot = TAILQ_FIRST(&s->idle)) != NULL)
        drain_slot(s, slot, SLOTS_IDLE);
}

bool slots_is_empty(const struct slots *s) { return s->n.n_slots == 0; }

struct slots_counts slots_counts(const struct slots *s) { return s->n; }
