// The states of a pop at its home, and all that can happen to it.
//
//      pop_handle ──► pop_place ───► pop_look, pop_discover, pop_seat, claim_for_pop
//                 └─► find_nothing ► pop_look, note, pop_park, pop_end
//
// pop_handle() has the table.  Other files report events to it and never change a state.
#include "broker/broker_int.h"

#include "base/clock.h"
#include "base/id.h"

// A pop that does not wait is answered when so many pages of its group were read for it.
enum { PAGES_AT_MOST = 5 };

enum { LOOK_EVERY_US = 25 * 1000 };

static void pop_place(struct broker *b, struct pop_op *pop);
static void place_on_lane(struct broker *b, struct pop_op *pop);
static void place_by_selector(struct broker *b, struct pop_op *pop);
static void find_nothing(struct broker *b, struct pop_op *pop);
static void pop_look(struct broker *b, struct pop_op *pop);
static void pop_discover(struct broker *b, struct pop_op *pop);
static void pop_seat(struct pop_op *pop, struct pop_list *seats, bool first);
static void set_deadline(struct broker *b, struct pop_op *pop);
static void pop_park(struct broker *b, struct pop_op *pop);
static void on_deadline(struct due *d);
static void leave_seat(struct broker *b, struct pop_op *pop);
static void claim_for_pop(struct broker *b, struct pop_op *pop);
static void pop_end(struct broker *b, struct pop_op *pop, int status);

static bool is_seated(const struct pop_op *pop)
{
    return pop->state == POP_SEATED || pop->state == POP_PARKED;
}

// The effect of an event on pop->looked.
enum knowledge {
    KEEPS,   // nothing
    LOOKED,  // the database was asked on behalf of the pop: nothing else is there
    FORGETS, // that was before the event, and does not count any more
    VIEWS, // the feed was read: that is all, unless partitions or queues are still to be found
};

static void pop_learn(struct pop_op *pop, enum knowledge knowledge)
{
    if (knowledge == VIEWS)
        pop->looked =
            pop->at ? group_is_known(pop->at) && !pop->partition.ptr : pop->by != NULL;
    else if (knowledge != KEEPS)
        pop->looked = knowledge == LOOKED;
}

void pop_handle(struct broker *b, struct pop_op *pop, enum pop_event event, int status)
{
    enum {
        NEVER,  // a mistake of ours: no answer of the database or of a client can cause it
        STAY,   // as it is
        UNSEAT, // leaves its seat, and will be placed
        PLACE,  // find it a place
        EMPTY,  // nothing is there for it
        WAIT,   // the database is away: if it does not wait it ends with the status
        MOVE,   // likewise, but it may find messages elsewhere
        COUNT,  // of pages
        CLAIM,  // its targets are chosen
        SERVE,  // it has messages
        LEAVE,  // its client has gone; the call that it is part of ends it
        END,    // with the status
        GONE,   // it ends because its client has gone
    };
    // clang-format off
    static const struct {
        uint8_t knowledge, then[POP_STATES];
    } table[POP_EVENTS] = {
        //                             UNPLACED LOOKING DISCOVERING SEATED  PARKED  CLAIMING SERVED NOTING  LEAVING DONE
        [POP_ON_PLACE]          = {KEEPS,   {PLACE, NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_UNSEAT]         = {KEEPS,   {NEVER, NEVER,  NEVER,  UNSEAT, UNSEAT, NEVER,  NEVER,  NEVER,  NEVER,  NEVER}},
        [POP_ON_FORGET]         = {FORGETS, {NEVER, NEVER,  NEVER,  UNSEAT, UNSEAT, NEVER,  NEVER,  NEVER,  NEVER,  NEVER}},
        [POP_ON_TAKE]           = {KEEPS,   {CLAIM, NEVER,  NEVER,  CLAIM,  CLAIM,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER}},
        [POP_ON_CHANGES]        = {VIEWS,   {NEVER, PLACE,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_CHANGES_LOST]   = {LOOKED,  {NEVER, WAIT,   NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_DISCOVERED]     = {LOOKED,  {NEVER, NEVER,  PLACE,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_DISCOVERY_LOST] = {KEEPS,   {NEVER, NEVER,  WAIT,   NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_ANSWERED]       = {KEEPS,   {NEVER, NEVER,  NEVER,  EMPTY,  STAY,   NEVER,  NEVER,  NEVER,  NEVER,  NEVER}},
        [POP_ON_PAGE]           = {KEEPS,   {NEVER, NEVER,  NEVER,  COUNT,  STAY,   NEVER,  NEVER,  NEVER,  NEVER,  NEVER}},
        [POP_ON_RENDER]         = {KEEPS,   {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  SERVE,  NEVER,  NEVER,  NEVER,  NEVER}},
        [POP_ON_TARGET_GONE]    = {FORGETS, {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  STAY,   STAY,   NEVER,  STAY,   NEVER}},
        [POP_ON_TARGET_LOST]    = {LOOKED,  {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  STAY,   NEVER,  NEVER,  STAY,   NEVER}},
        [POP_ON_CLAIM_EMPTY]    = {LOOKED,  {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  EMPTY,  END,    NEVER,  GONE,   NEVER}},
        [POP_ON_CLAIM_OVER]     = {KEEPS,   {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  PLACE,  END,    NEVER,  GONE,   NEVER}},
        [POP_ON_CLAIM_REFUSED]  = {FORGETS, {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  PLACE,  NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_CLAIM_LOST]     = {KEEPS,   {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  WAIT,   NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_RETRIES_LOST]   = {KEEPS,   {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  MOVE,   NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_FAILED]         = {KEEPS,   {NEVER, NEVER,  END,    NEVER,  NEVER,  END,    NEVER,  NEVER,  GONE,   NEVER}},
        [POP_ON_NOTED]          = {KEEPS,   {NEVER, NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  NEVER,  END,    GONE,   NEVER}},
        [POP_ON_DEADLINE]       = {KEEPS,   {NEVER, NEVER,  NEVER,  NEVER,  END,    NEVER,  NEVER,  NEVER,  NEVER,  NEVER}},
        [POP_ON_CANCEL]         = {KEEPS,   {LEAVE, LEAVE,  LEAVE,  GONE,   GONE,   LEAVE,  NEVER,  LEAVE,  NEVER,  STAY}},
        [POP_ON_DRAIN]          = {KEEPS,   {NEVER, NEVER,  NEVER,  END,    END,    NEVER,  NEVER,  NEVER,  NEVER,  NEVER}},
    };
    // clang-format on
    uint8_t then = table[event].then[pop->state];

    if (then == NEVER)
        BUG("pop in state %u: event %u", pop->state, event);
    pop_learn(pop, table[event].knowledge);
    if ((then == WAIT || then == MOVE) && !pop->wait) {
        then = END;
    } else if (then == WAIT || then == MOVE) {
        b->feed_missed = true;
        pop->op.why = (struct fault){0};
        then = then == WAIT ? EMPTY : PLACE;
    }
    switch (then) {
    case UNSEAT:
        leave_seat(b, pop);
        break;
    case PLACE:
        pop->state = POP_UNPLACED;
        pop_place(b, pop);
        break;
    case EMPTY:
        if (!is_seated(pop))
            pop->state = POP_UNPLACED;
        find_nothing(b, pop);
        break;
    case COUNT:
        if (!pop->wait && ++pop->n_pages >= PAGES_AT_MOST)
            pop_end(b, pop, 0);
        break;
    case CLAIM:
        claim_for_pop(b, pop);
        break;
    case SERVE:
        pop->state = POP_SERVED;
        break;
    case LEAVE:
        pop->state = POP_LEAVING;
        break;
    case END:
        pop_end(b, pop, status);
        break;
    case GONE:
        pop_end(b, pop, UV_ECANCELED);
        break;
    default: // STAY
        break;
    }
}

// ---- a place for it ----

static void wait_out(struct broker *b, struct pop_op *pop);

static void pop_place(struct broker *b, struct pop_op *pop)
{
    if (b->draining) {
        pop_end(b, pop, 0);
    } else if (b->pops_stopped) {
        wait_out(b, pop);
    } else if (!b->feed_ready) {
        // Discovery must not read an older state than the position of the feed.
        pop_look(b, pop);
    } else if (!pop->at) {
        place_by_selector(b, pop);
    } else if (pop->partition.ptr) {
        place_on_lane(b, pop);
    } else if (group_must_discover(pop->at, pop)) {
        if (group_is_discovering(pop->at)) {
            pop_seat(pop, &pop->at->seats, false);
            set_deadline(b, pop);
        } else {
            pop_discover(b, pop);
        }
    } else {
        pop_seat(pop, &pop->at->seats, pop->has_waited); // who has waited comes first
        group_serve(b, pop->at);
        if (pop->state == POP_SEATED)
            find_nothing(b, pop);
    }
}

static bool has_time(const struct pop_op *pop, uint64_t now)
{
    return pop->wait && now < pop->op.since_us + pop->timeout_ms * 1000ull;
}

// Maintenance: nothing is delivered and nothing is learnt.
static void wait_out(struct broker *b, struct pop_op *pop)
{
    if (has_time(pop, clock_mono_us()))
        pop_park(b, pop);
    else
        pop_end(b, pop, 0);
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
    pop_seat(pop, &c->seats, first);
}

// A pop of one partition always queries the database: there is only one row to read.
static void place_on_lane(struct broker *b, struct pop_op *pop)
{
    struct consumer *c = consumer_of(b, pop);

    if ((c->num == 0 || group_must_discover(pop->at, pop)) && !pop->looked && !c->asking) {
        pop_discover(b, pop);
        return;
    }
    struct consumer *retries = consumer_retries(c);
    if (retries) {
        pop_fly_to(b, pop, retries);
        return;
    }
    seat_at(pop, c, false);
    if (c->num == 0)
        find_nothing(b, pop); // no such partition yet
    else if (c->state != CLAIMING)
        consumer_serve(b, c);
}

static void place_by_selector(struct broker *b, struct pop_op *pop)
{
    struct selector *s = selector_bind(b, pop);

    if (!pop->looked) { // a queue may have come, or its priority may have changed
        pop->state = POP_DISCOVERING;
        selector_ask(s, pop);
    } else if (selector_take(s, pop)) {
        claim_for_pop(b, pop);
    } else {
        pop_seat(pop, selector_seats(s), false);
        find_nothing(b, pop);
        selector_refresh(s);
    }
}

static void pop_look(struct broker *b, struct pop_op *pop)
{
    pop->state = POP_LOOKING;
    feed_look(b, pop);
}

static void pop_discover(struct broker *b, struct pop_op *pop)
{
    pop->state = POP_DISCOVERING;
    group_discover(b, pop->at, pop);
}

// ---- nothing is there for it ----

static bool is_asking(const struct pop_op *pop)
{
    return pop->only ? pop->only->asking
           : pop->by ? selector_is_asking(pop)
                     : pop->at && pop->at->n_asking > 0;
}

static void find_nothing(struct broker *b, struct pop_op *pop)
{
    struct group *g = pop->at;

    if (b->draining) {
        pop_end(b, pop, 0);
        return;
    }
    if (pop->partition.ptr && !is_seated(pop))
        seat_at(pop, consumer_of(b, pop), true);
    // A waiting pop need not search right after another search: the feed is polled soon.
    bool must_look = !pop->looked && b->feed_ready && !pop->partition.ptr;
    if (must_look && pop->wait && !pop->by &&
        clock_mono_us() - b->feed_asked_us < LOOK_EVERY_US)
        must_look = false;
    if (must_look) {
        if (is_seated(pop))
            leave_seat(b, pop);
        pop_look(b, pop);
        return;
    }
    if (is_seated(pop) && is_asking(pop)) {
        set_deadline(b, pop);
        return; // POP_ON_ANSWERED will come
    }
    uint64_t now = clock_mono_us();
    if (g && !pop->partition.ptr && group_note_empty(b, g, now) && !pop->wait) {
        // The note is part of the answer.
        if (is_seated(pop))
            leave_seat(b, pop);
        pop->state = POP_NOTING;
        TAILQ_INSERT_TAIL(&b->noting_pops, pop, seat);
        return;
    }
    // Its retries may have come while it was asking for the partition itself.
    struct consumer *retries = pop->only ? consumer_retries(pop->only) : NULL;
    if (retries)
        pop_fly_to(b, pop, retries);
    else if (has_time(pop, now))
        pop_park(b, pop);
    else
        pop_end(b, pop, 0);
}

// ---- seats ----

static void pop_seat(struct pop_op *pop, struct pop_list *seats, bool first)
{
    pop->state = POP_SEATED;
    if (first)
        TAILQ_INSERT_HEAD(seats, pop, seat);
    else
        TAILQ_INSERT_TAIL(seats, pop, seat);
}

// Parked pops do not count against max_pending.
static void count_parked(struct broker *b, const struct pop_op *pop, int change)
{
    if (pop->at) {
        (void)queue_tally(b, pop->at->queue, false);
        pop->at->queue->notes.n_parked += (unsigned)change;
    }
    b->n_parked += (unsigned)change;
    b->n_pending -= (unsigned)change;
    if (change > 0)
        notify_parked(b->house);
    atomic_store_explicit(&b->stats.parked, b->n_parked, memory_order_relaxed);
    atomic_store_explicit(&b->stats.pending, b->n_pending, memory_order_relaxed);
}

// A seated pop that waits is answered at its timeout at the latest, whatever it waits for, and
// meanwhile the change feed is read for it.
static void set_deadline(struct broker *b, struct pop_op *pop)
{
    if (!pop->wait)
        return;
    if (pop->state != POP_PARKED)
        count_parked(b, pop, 1);
    pop->state = POP_PARKED;
    due_set(&b->due, &pop->deadline, pop->op.since_us + pop->timeout_ms * 1000ull, on_deadline);
    feed_rearm(b);
    broker_wake(b);
}

static void pop_park(struct broker *b, struct pop_op *pop)
{
    if (!is_seated(pop) && !pop->at) {
        struct selector *s = selector_bind(b, pop);
        pop_seat(pop, selector_seats(s), true);
        selector_refresh(s); // looks again by itself, also after an outage
    } else if (!is_seated(pop) && pop->partition.ptr) {
        seat_at(pop, consumer_of(b, pop), true);
    } else if (!is_seated(pop)) {
        pop_seat(pop, &pop->at->seats, true);
    }
    pop->has_waited = true;
    set_deadline(b, pop);
}

static void on_deadline(struct due *d)
{
    struct pop_op *pop = container_of(d, struct pop_op, deadline);

    pop_handle(pop->home, pop, POP_ON_DEADLINE, 0);
}

static void leave_seat(struct broker *b, struct pop_op *pop)
{
    struct pop_list *seats = pop->by     ? selector_seats(pop->by)
                             : pop->only ? &pop->only->seats
                                         : &pop->at->seats;

    TAILQ_REMOVE(seats, pop, seat);
    if (pop->state == POP_PARKED) {
        due_cancel(&b->due, &pop->deadline);
        count_parked(b, pop, -1);
    }
    pop->only = NULL;
    pop->state = POP_UNPLACED;
}

// ---- its claim, and its end ----

void pop_fly_to(struct broker *b, struct pop_op *pop, struct consumer *c)
{
    consumer_take(b, c, pop);
    c->next_target = NULL;
    pop->targets = c;
    pop->n_targets = 1;
    pop_handle(b, pop, POP_ON_TAKE, 0);
}

static void claim_for_pop(struct broker *b, struct pop_op *pop)
{
    if (is_seated(pop))
        leave_seat(b, pop);
    pop->state = POP_CLAIMING;
    id_uuid4(pop->lease);
    memcpy(pop->lease + 9, b->house->mark, sizeof b->house->mark);
    pop->lease[15] = (uint8_t)b->index;
    STAILQ_INSERT_TAIL(&b->ops[OP_POP].queue, &pop->op, link);
    b->ops[OP_POP].n_requests++;
    broker_wake(b);
}

static void pop_end(struct broker *b, struct pop_op *pop, int status)
{
    if (is_seated(pop))
        leave_seat(b, pop);
    if (status == 0 && pop->n_messages == 0)
        counter_add(&b->stats.pops_empty, 1);
    if (status == 0 && pop->at) {
        bool empty = pop->n_messages == 0;
        struct tally *t = queue_tally(b, pop->at->queue, !(empty && pop->has_waited));
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
