// Pops: they arrive, are served with consumers that have messages, and may be cancelled.
//
//      broker_pop ──► pop_arrive ──► (pop_states.c) ──► op_finish ──► pop_complete
//
// pop_states.c decides the next state of a pop at its home.  This file finds the pops that
// an event concerns.
#include "broker/broker_int.h"

#include "base/clock.h"

// The side of the client.  done is called once, when the pop is finished and no cancel on its
// way to the home or back points to the operation.
enum pop_client {
    CLIENT_WAITS,
    CLIENT_CANCELS,       // the cancel is on its way
    CLIENT_HAS_CANCELLED, // ... is back, and the pop is not finished yet
    CLIENT_IS_ANSWERED,   // the pop is finished, the cancel not back yet
    CLIENT_DONE,
    CLIENT_STATES
};
enum client_event { CLIENT_ON_CANCEL, CLIENT_ON_CANCEL_BACK, CLIENT_ON_FINISHED };

static void pop_arrive(struct mailbox_item *item);
static void deliver_cancel(struct mailbox_item *item);
static void deliver_cancel_back(struct mailbox_item *item);

static void client_handle(struct pop_op *pop, enum client_event event)
{
    enum { NEVER = CLIENT_STATES };
    // clang-format off
    static const uint8_t next[][CLIENT_STATES] = {
        //                         WAITS           CANCELS               HAS_CANCELLED IS_ANSWERED  DONE
        [CLIENT_ON_CANCEL]      = {CLIENT_CANCELS, NEVER,                NEVER,        NEVER,       NEVER},
        [CLIENT_ON_CANCEL_BACK] = {NEVER,          CLIENT_HAS_CANCELLED, NEVER,        CLIENT_DONE, NEVER},
        [CLIENT_ON_FINISHED]    = {CLIENT_DONE,    CLIENT_IS_ANSWERED,   CLIENT_DONE,  NEVER,       NEVER},
    };
    // clang-format on
    uint8_t then = next[event][pop->client];

    if (then == NEVER)
        BUG("client of a pop in state %u: event %u", pop->client, event);
    pop->client = then;
    if (then == CLIENT_DONE)
        pop->done(pop, pop->op.status);
}

static void pop_complete(struct op *op) { client_handle(pop_of(op), CLIENT_ON_FINISHED); }

void broker_pop(struct broker *b, struct pop_op *pop)
{
    op_begin(b, &pop->op, OP_POP, pop_complete);
    // Pops by namespace or task see many queues, whose homes differ; they all live at broker 0.
    pop->home = pop->queue.ptr ? house_home(b->house, pop->queue) : b->house->brokers[0];
    pop->state = POP_UNPLACED;
    pop->client = CLIENT_WAITS;
    pop->looked = pop->has_waited = false;
    pop->at = NULL;
    pop->only = NULL;
    pop->by = NULL;
    pop->targets = NULL;
    pop->n_targets = pop->n_messages = pop->n_pages = 0;
    pop->until_number = 0;
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
    pop->state = POP_UNPLACED;
    // A push that was answered before this pop was sent may still be in our mailbox.
    mailbox_drain_now(&b->mailbox);
    due_run(&b->due, clock_mono_us()); // and a lease may have ended this moment
    if (pop->queue.ptr) {
        pop->at = group_get(b, queue_get(b, pop->queue), pop->group);
        group_begin_pop(pop->at);
    }
    pop_handle(b, pop, POP_ON_PLACE, 0);
    broker_wake(b);
}

// ---- messages for pops ----

void consumer_serve(struct broker *b, struct consumer *c)
{
    struct pop_op *pop = TAILQ_FIRST(&c->seats);

    if (!pop || c->state == CLAIMING || c->num == 0 || b->pops_stopped)
        return;
    pop_fly_to(b, pop, c);
    pop->only = c;
}

void consumer_serve_retries(struct broker *b, struct consumer *c)
{
    struct lane *partition = c->lane->origin;
    struct consumer *of = NULL;
    struct pop_op *pop;

    HASH_FIND(hh, c->group->consumers, &partition, sizeof partition, of);
    if (!of || c->state != READY || b->pops_stopped || !(pop = TAILQ_FIRST(&of->seats)))
        return;
    pop_fly_to(b, pop, c);
}

struct consumer **pop_take_ready(struct broker *b, struct pop_op *pop, struct group *g,
                                 struct consumer **last)
{
    struct ready_walk walk = ready_begin(&g->ready);
    struct consumer *c;

    if (group_is_full(g))
        return last;
    while (pop->n_targets < pop->partitions && (c = ready_next(&walk))) {
        if (pop->n_targets > 0 && pop->targets->working)
            break; // its claim is shared with other pops
        if (c->num == 0 || (c->lane->work && pop->n_targets > 0))
            continue;
        ready_taken(&walk, c);
        consumer_take(b, c, pop);
        c->next_target = NULL;
        *last = c;
        last = &c->next_target;
        pop->n_targets++;
    }
    return last;
}

// A pop of several partitions may come right after the pushes that made them. It waits for
// their numbers, so that it gets them all, but not for those of partitions made later.
static bool pop_awaits_numbers(const struct broker *b, const struct group *g,
                               struct pop_op *pop)
{
    unsigned wanted = pop->partitions < pop->batch ? pop->partitions : pop->batch;

    if (wanted == 1 || g->n_unnumbered == 0 || g->n_ready >= wanted + g->n_unnumbered)
        return false;
    if (pop->until_number == 0) // the call under way does not have all of them
        pop->until_number = b->n_numberings + (b->numbering ? 2 : 1);
    return b->n_numberings < pop->until_number;
}

void group_serve(struct broker *b, struct group *g)
{
    struct pop_op *pop;

    while (g->n_ready > 0 && !b->pops_stopped && (pop = TAILQ_FIRST(&g->seats))) {
        if (pop_awaits_numbers(b, g, pop))
            return;
        pop->n_targets = 0;
        (void)pop_take_ready(b, pop, g, &pop->targets);
        if (pop->n_targets == 0)
            return;
        pop_handle(b, pop, POP_ON_TAKE, 0);
    }
}

// ---- pops that wait ----

void pops_handle(struct broker *b, struct pop_list *seats, enum pop_event event)
{
    struct pop_op *pop, *next;

    for (pop = TAILQ_FIRST(seats); pop; pop = next) {
        next = TAILQ_NEXT(pop, seat);
        pop_handle(b, pop, event, 0);
    }
}

void group_answered(struct broker *b, struct group *g)
{
    pops_handle(b, &g->seats, POP_ON_ANSWERED);
    if (!TAILQ_EMPTY(&g->seats))
        (void)group_note_empty(b, g, clock_mono_us());
    selectors_settle(b, g);
}

void pops_unseat(struct broker *b, struct pop_list *seats, enum pop_event why,
                 struct pop_list *unplaced)
{
    struct pop_op *pop;

    while ((pop = TAILQ_FIRST(seats))) {
        pop_handle(b, pop, why, 0);
        TAILQ_INSERT_TAIL(unplaced, pop, seat);
    }
}

void pops_place(struct broker *b, struct pop_list *unplaced)
{
    struct pop_op *pop;

    while ((pop = TAILQ_FIRST(unplaced))) {
        TAILQ_REMOVE(unplaced, pop, seat);
        pop_handle(b, pop, POP_ON_PLACE, 0);
    }
}

static void place_again(struct broker *b, struct pop_list *seats)
{
    struct pop_list unplaced = TAILQ_HEAD_INITIALIZER(unplaced);

    pops_unseat(b, seats, POP_ON_FORGET, &unplaced);
    pops_place(b, &unplaced);
}

void group_place_again(struct broker *b, struct group *g, bool all)
{
    struct consumer *c, *next;

    if (g->state == GROUP_UNKNOWN)
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
        if (!group_is_discovering(g))
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
    if (pop->client != CLIENT_WAITS)
        return;
    client_handle(pop, CLIENT_ON_CANCEL);
    pop->cancel_mail = (struct mailbox_item){.deliver = deliver_cancel};
    if (pop->home == b)
        deliver_cancel(&pop->cancel_mail);
    else if (mailbox_post(&pop->home->mailbox, &pop->cancel_mail) != 0)
        deliver_cancel_back(&pop->cancel_mail); // the home is closing and finishes everything
}

static void deliver_cancel(struct mailbox_item *item)
{
    struct pop_op *pop = container_of(item, struct pop_op, cancel_mail);
    struct broker *b = pop->home;

    pop_handle(b, pop, POP_ON_CANCEL, UV_ECANCELED);
    pop->cancel_mail.deliver = deliver_cancel_back;
    if (pop->op.origin == b)
        deliver_cancel_back(item);
    else if (mailbox_post(&pop->op.origin->mailbox, item) != 0)
        BUG("a pop outlived the broker it was given to");
}

static void deliver_cancel_back(struct mailbox_item *item)
{
    client_handle(container_of(item, struct pop_op, cancel_mail), CLIENT_ON_CANCEL_BACK);
}

// ---- stopping ----

void pops_drain(struct broker *b)
{
    struct queue *q, *next_q;
    struct group *g, *next_g;
    struct consumer *c, *next_c;

    b->draining = true;
    selectors_drain(b);
    HASH_ITER (hh, b->queues, q, next_q)
        HASH_ITER (hh, q->groups, g, next_g) {
            pops_handle(b, &g->seats, POP_ON_DRAIN);
            HASH_ITER (hh, g->consumers, c, next_c)
                pops_handle(b, &c->seats, POP_ON_DRAIN);
        }
}
