// Pops: find a seat, be served, or wait.
//
//      pop_arrive ──► place ──► (discover, look into the feed) ──► seat ──► fly ──► finish
//                   ▲                                            │        │
//                   └────────────── woken, or empty-handed ◄─────┴────────┘
#include "broker/broker_int.h"

#include "base/clock.h"
#include "base/id.h"

// A pop that does not wait is answered when so many pages of its group were read for it.
enum { PAGES_AT_MOST = 5 };

// How often the watermark of a group that finds nothing is written.
enum { NOTE_EMPTY_EVERY_US = 30 * 1000 * 1000, LOOK_EVERY_US = 25 * 1000 };

static void pop_arrive(struct mailbox_item *item);
static void place_on_lane(struct broker *b, struct pop_op *pop);
static struct consumer *consumer_of(struct broker *b, const struct pop_op *pop);
static void seat_at(struct pop_op *pop, struct consumer *c, bool first);
static void seat(struct pop_op *pop, struct pop_list *seats, bool first);
static void fly_to(struct broker *b, struct pop_op *pop, struct consumer *c);
static void park(struct broker *b, struct pop_op *pop);
static void set_deadline(struct broker *b, struct pop_op *pop);
static void wait_out(struct broker *b, struct pop_op *pop);
static void on_deadline(struct due *d);
static void deliver_cancel(struct mailbox_item *item);
static void deliver_cancel_back(struct mailbox_item *item);

static void pop_complete(struct op *op)
{
    struct pop_op *pop = pop_of(op);

    pop->finished = true;
    // A cancel on its way to the home still points to the operation: wait for it to come back.
    if (!pop->cancel_sent || pop->cancel_back)
        pop->done(pop, op->status);
}

void broker_pop(struct broker *b, struct pop_op *pop)
{
    op_begin(b, &pop->op, OP_POP, pop_complete);
    // Pops by namespace or task see many queues, whose homes differ; they all live at broker 0.
    pop->home = pop->queue.ptr ? house_home(b->house, pop->queue) : b->house->brokers[0];
    pop->state = 0;
    pop->looked = pop->parked = pop->cancelled = pop->cancel_sent = pop->cancel_back = false;
    pop->finished = pop->rendered = false;
    pop->at = NULL;
    pop->only = NULL;
    pop->by = NULL;
    pop->targets = NULL;
    pop->n_targets = pop->n_messages = pop->n_pages = 0;
    pop->deadline = (struct due){0};
    op_go(b, pop->home, &pop->op, pop_arrive);
}

static void pop_arrive(struct mailbox_item *item)
{
    struct pop_op *pop = container_of(item, struct pop_op, op.mail);
    struct broker *b = pop->home;

    pop->state = POP_DONE; // a refused pop belongs to its origin's thread at once
    if (!op_admit(b, &pop->op))
        return;
    pop->state = 0;
    // A push that was answered before this pop was sent may still be in our mailbox.
    mailbox_drain_now(&b->mailbox);
    due_run(&b->due, clock_mono_us()); // and a lease may have ended this moment
    if (pop->queue.ptr) {
        pop->at = group_get(b, queue_get(b, pop->queue), pop->group);
        group_begin_pop(pop->at);
    }
    pop_place(b, pop);
    broker_wake(b);
}

void pop_place(struct broker *b, struct pop_op *pop)
{
    if (pop->cancelled) {
        pop_finish(b, pop, UV_ECANCELED);
    } else if (b->draining) {
        pop_finish(b, pop, 0);
    } else if (b->pops_stopped) {
        wait_out(b, pop);
    } else if (!b->feed_ready) {
        // Discovery must not read an older state than the position of the feed.
        feed_look(b, pop);
    } else if (!pop->at) {
        selector_place(b, pop);
    } else if (pop->partition.ptr) {
        place_on_lane(b, pop);
    } else if (group_must_discover(pop->at, pop)) {
        if (pop->at->discovering) {
            seat(pop, &pop->at->seats, false);
            set_deadline(b, pop);
        } else {
            group_discover(b, pop->at, pop);
        }
    } else {
        seat(pop, &pop->at->seats, pop->parked); // who has waited comes first
        group_serve(b, pop->at);
        if (pop->state == POP_SEATED)
            pop_empty(b, pop);
    }
}

// A pop of one partition always queries the database: there is only one row to read.
static void place_on_lane(struct broker *b, struct pop_op *pop)
{
    struct consumer *c = consumer_of(b, pop);

    if ((c->num == 0 || group_must_discover(pop->at, pop)) && !pop->looked && !c->asking) {
        group_discover(b, pop->at, pop);
        return;
    }
    struct consumer *retries = consumer_retries(c);
    if (retries) {
        fly_to(b, pop, retries);
        return;
    }
    seat_at(pop, c, false);
    if (c->num == 0)
        pop_empty(b, pop); // no such partition yet
    else if (c->state != CLAIMING)
        consumer_serve(b, c);
}

static void seat(struct pop_op *pop, struct pop_list *seats, bool first)
{
    pop->state = POP_SEATED;
    if (first)
        TAILQ_INSERT_HEAD(seats, pop, seat);
    else
        TAILQ_INSERT_TAIL(seats, pop, seat);
}

// The consumer of a pop of one partition.
static struct consumer *consumer_of(struct broker *b, const struct pop_op *pop)
{
    return consumer_get(b, pop->at, lane_get(b, pop->at->queue, pop->partition));
}

// A pop of one partition waits at the consumer of that partition and nowhere else.
static void seat_at(struct pop_op *pop, struct consumer *c, bool first)
{
    pop->only = c;
    seat(pop, &c->seats, first);
}

// Who is parked is not pending: any number may wait without keeping others out.
static void count_parked(struct broker *b, const struct pop_op *pop, int change)
{
    if (pop->at) {
        (void)queue_tally(b, pop->at->queue, false);
        pop->at->queue->notes.n_parked += (unsigned)change;
    }
    b->n_parked += (unsigned)change;
    b->n_pending -= (unsigned)change;
    atomic_store_explicit(&b->stats.parked, b->n_parked, memory_order_relaxed);
    atomic_store_explicit(&b->stats.pending, b->n_pending, memory_order_relaxed);
}

void pop_unseat(struct broker *b, struct pop_op *pop)
{
    if (pop->by)
        selector_leave(b, pop);
    else
        TAILQ_REMOVE(pop->only ? &pop->only->seats : &pop->at->seats, pop, seat);
    if (due_is_set(&pop->deadline)) {
        due_cancel(&b->due, &pop->deadline);
        count_parked(b, pop, -1);
    }
    pop->only = NULL;
    pop->state = 0;
}

void consumer_serve(struct broker *b, struct consumer *c)
{
    struct pop_op *pop = TAILQ_FIRST(&c->seats);

    if (!pop || c->state == CLAIMING || c->num == 0 || b->pops_stopped)
        return;
    pop_unseat(b, pop);
    pop->only = c;
    fly_to(b, pop, c);
}

static void fly_to(struct broker *b, struct pop_op *pop, struct consumer *c)
{
    consumer_take(b, c, pop);
    c->next_target = NULL;
    pop->targets = c;
    pop->n_targets = 1;
    pop_fly(b, pop);
}

void consumer_serve_retries(struct broker *b, struct consumer *c)
{
    struct lane *partition = c->lane->origin;
    struct consumer *of = NULL;
    struct pop_op *pop;

    HASH_FIND(hh, c->group->consumers, &partition, sizeof partition, of);
    if (!of || c->state != READY || b->pops_stopped || !(pop = TAILQ_FIRST(&of->seats)))
        return;
    pop_unseat(b, pop);
    fly_to(b, pop, c);
}

void group_serve(struct broker *b, struct group *g)
{
    struct pop_op *pop;
    struct consumer *c, *next;

    while (g->n_ready > 0 && !b->pops_stopped && (pop = TAILQ_FIRST(&g->seats))) {
        struct consumer **last = &pop->targets;
        pop->n_targets = 0;
        for (c = TAILQ_FIRST(&g->ready); c && pop->n_targets < pop->partitions; c = next) {
            next = TAILQ_NEXT(c, ready);
            if (c->num == 0)
                continue;
            consumer_take(b, c, pop);
            c->next_target = NULL;
            *last = c;
            last = &c->next_target;
            pop->n_targets++;
        }
        if (pop->n_targets == 0)
            return;
        pop_unseat(b, pop);
        pop_fly(b, pop);
    }
}

void pop_fly(struct broker *b, struct pop_op *pop)
{
    pop->state = POP_FLYING;
    id_uuid4(pop->lease);
    memcpy(pop->lease + 9, b->house->mark, sizeof b->house->mark);
    pop->lease[15] = (uint8_t)b->index;
    STAILQ_INSERT_TAIL(&b->ops[OP_POP].queue, &pop->op, link);
    b->ops[OP_POP].n_requests++;
    broker_wake(b);
}

// Writes the watermark of a group that has nothing to consume, if it is time.  Returns whether
// it does.
static bool note_empty(struct broker *b, struct group *g, uint64_t now)
{
    if (!g->known || g->n_ready > 0 || g->n_busy > 0 ||
        (g->empty_noted_us != 0 && now - g->empty_noted_us <= NOTE_EMPTY_EVERY_US))
        return false;
    g->empty_noted_us = now;
    watermark_add(b, g);
    return true;
}

// Nothing for this pop at the moment.
void pop_empty(struct broker *b, struct pop_op *pop)
{
    struct group *g = pop->at;

    if (pop->cancelled || b->draining) {
        if (pop->state == POP_SEATED)
            pop_unseat(b, pop);
        pop_finish(b, pop, pop->cancelled ? UV_ECANCELED : 0);
        return;
    }
    if (pop->partition.ptr && pop->state != POP_SEATED)
        seat_at(pop, consumer_of(b, pop), true);
    // A waiting pop need not search right after another search: the feed is polled soon.
    bool look = !pop->looked && b->feed_ready && !pop->partition.ptr;
    if (look && pop->wait && !pop->by && clock_mono_us() - b->feed_asked_us < LOOK_EVERY_US)
        look = false;
    if (look) {
        if (pop->state == POP_SEATED)
            pop_unseat(b, pop);
        feed_look(b, pop);
        return;
    }
    bool asking = pop->only ? pop->only->asking
                  : pop->by ? selector_is_asking(pop)
                            : g && g->n_asking > 0;
    if (asking && pop->state == POP_SEATED) {
        set_deadline(b, pop);
        return; // group_answered() will come
    }
    uint64_t now = clock_mono_us();
    if (g && !pop->partition.ptr && note_empty(b, g, now) && !pop->wait) {
        // The note is part of the answer.
        if (pop->state == POP_SEATED)
            pop_unseat(b, pop);
        pop->state = POP_NOTING;
        TAILQ_INSERT_TAIL(&b->noting_pops, pop, seat);
        return;
    }
    // Its retries may have come while it was asking for the partition itself.
    struct consumer *retries = pop->only ? consumer_retries(pop->only) : NULL;
    if (retries) {
        if (pop->state == POP_SEATED)
            pop_unseat(b, pop);
        fly_to(b, pop, retries);
        return;
    }
    if (pop->wait && now < pop->op.since_us + pop->timeout_ms * 1000ull) {
        park(b, pop);
        return;
    }
    if (pop->state == POP_SEATED)
        pop_unseat(b, pop);
    pop_finish(b, pop, 0);
}

void pops_empty(struct broker *b, struct pop_list *seats)
{
    struct pop_op *pop, *next;

    for (pop = TAILQ_FIRST(seats); pop; pop = next) {
        next = TAILQ_NEXT(pop, seat);
        if (!due_is_set(&pop->deadline)) // the others wait anyway
            pop_empty(b, pop);
    }
}

void pops_page_read(struct broker *b, struct pop_list *seats)
{
    struct pop_op *pop, *next;

    for (pop = TAILQ_FIRST(seats); pop; pop = next) {
        next = TAILQ_NEXT(pop, seat);
        if (!pop->wait && ++pop->n_pages >= PAGES_AT_MOST) {
            pop_unseat(b, pop);
            pop_finish(b, pop, 0);
        }
    }
}

void group_answered(struct broker *b, struct group *g)
{
    pops_empty(b, &g->seats);
    if (!TAILQ_EMPTY(&g->seats))
        (void)note_empty(b, g, clock_mono_us());
    selectors_settle(b, g);
}

// A seated pop that waits is answered at its timeout at the latest, whatever it waits for, and
// meanwhile the change feed is read for it.
static void set_deadline(struct broker *b, struct pop_op *pop)
{
    if (!pop->wait)
        return;
    if (!due_is_set(&pop->deadline))
        count_parked(b, pop, 1);
    due_set(&b->due, &pop->deadline, pop->op.since_us + pop->timeout_ms * 1000ull, on_deadline);
    feed_rearm(b);
    broker_wake(b);
}

static void park(struct broker *b, struct pop_op *pop)
{
    if (pop->state != POP_SEATED && !pop->at)
        selector_seat(b, pop);
    else if (pop->state != POP_SEATED && pop->partition.ptr)
        seat_at(pop, consumer_of(b, pop), true);
    else if (pop->state != POP_SEATED)
        seat(pop, &pop->at->seats, true);
    pop->parked = true;
    set_deadline(b, pop);
}

// Maintenance: nothing is delivered and nothing is learnt.
static void wait_out(struct broker *b, struct pop_op *pop)
{
    if (pop->wait && clock_mono_us() < pop->op.since_us + pop->timeout_ms * 1000ull)
        park(b, pop);
    else
        pop_finish(b, pop, 0);
}

static void on_deadline(struct due *d)
{
    struct pop_op *pop = container_of(d, struct pop_op, deadline);
    struct broker *b = pop->home;

    count_parked(b, pop, -1);
    pop_unseat(b, pop);
    pop_finish(b, pop, 0);
}

void pop_finish(struct broker *b, struct pop_op *pop, int status)
{
    if (status == 0 && pop->n_messages == 0)
        counter_add(&b->stats.pops_empty, 1);
    if (status == 0 && pop->at) {
        bool empty = pop->n_messages == 0;
        struct tally *t = queue_tally(b, pop->at->queue, !(empty && pop->parked));
        t->pop_requests++;
        t->pop_empty += empty;
    }
    if (pop->at)
        group_end_pop(b, pop->at);
    if (pop->by)
        selector_end_pop(pop);
    counter_add(&b->stats.items[OP_POP], pop->n_messages);
    pop->state = POP_DONE;
    op_finish(b, &pop->op, status);
}

static void place_again(struct broker *b, struct pop_list *seats)
{
    struct pop_list pops = TAILQ_HEAD_INITIALIZER(pops);
    struct pop_op *pop;

    while ((pop = TAILQ_FIRST(seats))) {
        pop_unseat(b, pop);
        pop->looked = false;
        TAILQ_INSERT_TAIL(&pops, pop, seat);
    }
    while ((pop = TAILQ_FIRST(&pops))) {
        TAILQ_REMOVE(&pops, pop, seat);
        pop_place(b, pop);
    }
}

void group_place_again(struct broker *b, struct group *g, bool all)
{
    struct consumer *c, *next;

    if (!g->known && !g->discovering)
        place_again(b, &g->seats);
    HASH_ITER (hh, g->consumers, c, next)
        if ((c->num == 0 || all) && !c->asking && c->state != CLAIMING)
            place_again(b, &c->seats);
}

void pops_place_again(struct broker *b, bool all)
{
    struct queue *q, *next_q;
    struct group *g, *next_g;

    HASH_ITER (hh, b->queues, q, next_q)
        HASH_ITER (hh, q->groups, g, next_g)
            group_place_again(b, g, all);
}

static void pop_resume(struct broker *b, struct queue *q)
{
    struct group *g, *next_g;
    struct consumer *c, *next_c;

    HASH_ITER (hh, q->groups, g, next_g) {
        if (!g->discovering)
            place_again(b, &g->seats);
        HASH_ITER (hh, g->consumers, c, next_c)
            if (!c->asking && c->state != CLAIMING)
                place_again(b, &c->seats);
    }
}

void pops_resume(struct broker *b, struct queue *only)
{
    struct queue *q, *next;

    if (only)
        pop_resume(b, only);
    else
        HASH_ITER (hh, b->queues, q, next)
            pop_resume(b, q);
    selectors_place_again(b);
    broker_wake(b);
}

// ---- cancelling ----

void broker_pop_cancel(struct broker *b, struct pop_op *pop)
{
    if (pop->finished || pop->cancel_sent)
        return;
    pop->cancel_sent = true;
    pop->cancel_mail = (struct mailbox_item){.deliver = deliver_cancel};
    if (pop->home == b)
        deliver_cancel(&pop->cancel_mail);
    else if (mailbox_post(&pop->home->mailbox, &pop->cancel_mail) != 0)
        pop->cancel_back = true; // the home is closing and finishes everything
}

static void deliver_cancel(struct mailbox_item *item)
{
    struct pop_op *pop = container_of(item, struct pop_op, cancel_mail);
    struct broker *b = pop->home;

    if (pop->state == POP_SEATED) {
        pop_unseat(b, pop);
        pop_finish(b, pop, UV_ECANCELED);
    } else if (pop->state != POP_DONE) {
        pop->cancelled = true; // whoever has it now will see
    }
    pop->cancel_mail.deliver = deliver_cancel_back;
    if (pop->op.origin == b)
        deliver_cancel_back(item);
    else if (mailbox_post(&pop->op.origin->mailbox, item) != 0)
        BUG("a pop outlived the broker it was given to");
}

static void deliver_cancel_back(struct mailbox_item *item)
{
    struct pop_op *pop = container_of(item, struct pop_op, cancel_mail);

    pop->cancel_back = true;
    if (pop->finished)
        pop->done(pop, pop->op.status);
}

// ---- stopping ----

static void drain_seats(struct broker *b, struct pop_list *seats)
{
    struct pop_op *pop;

    while ((pop = TAILQ_FIRST(seats))) {
        pop_unseat(b, pop);
        pop_finish(b, pop, 0);
    }
}

void pops_drain(struct broker *b)
{
    struct queue *q, *next_q;
    struct group *g, *next_g;
    struct consumer *c, *next_c;

    b->draining = true;
    selectors_drain(b);
    HASH_ITER (hh, b->queues, q, next_q)
        HASH_ITER (hh, q->groups, g, next_g) {
            drain_seats(b, &g->seats);
            HASH_ITER (hh, g->consumers, c, next_c)
                drain_seats(b, &c->seats);
        }
}
