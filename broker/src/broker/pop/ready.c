// The ready list of a group: see ready.h.
#include "broker/ready.h"

#include "broker/broker_int.h"

enum { TURN_EVERY = 10 };

void ready_init(struct ready *r)
{
    for (unsigned p = 0; p < LANE_PRIORITIES; p++)
        TAILQ_INIT(&r->of[p]);
    r->turns.last = LANE_PRIORITIES;
    r->before = r->turns;
}

void ready_add(struct consumer *c, bool again)
{
    struct ready *r = &c->group->ready;
    unsigned p = c->lane->priority;
    struct consumer *next = again ? TAILQ_FIRST(&r->of[p]) : NULL;

    if (!again)
        c->turn = UINT64_MAX;
    while (next && next->turn < c->turn) // claims to be repeated as well
        next = TAILQ_NEXT(next, ready);
    if (next)
        TAILQ_INSERT_BEFORE(next, c, ready);
    else
        TAILQ_INSERT_TAIL(&r->of[p], c, ready);
    r->levels |= (uint16_t)(1u << p);
    c->group->n_ready++;
    if (again) // that is still the last choice, or one of the last
        r->turns = r->before;
}

void ready_remove(struct consumer *c)
{
    struct ready *r = &c->group->ready;
    unsigned p = c->lane->priority;

    TAILQ_REMOVE(&r->of[p], c, ready);
    if (TAILQ_EMPTY(&r->of[p]))
        r->levels &= (uint16_t) ~(1u << p);
    c->group->n_ready--;
}

static int highest(unsigned levels) { return levels == 0 ? -1 : 31 - __builtin_clz(levels); }

// The highest priority that has something to deliver, or perhaps has.
static int highest_busy(const struct ready *r)
{
    int top = highest(r->levels);

    for (int p = LANE_PRIORITIES - 1; p > top; p--)
        if (r->working[p] > 0)
            return p;
    return top;
}

// The lower priorities have turns from the highest to the lowest, and begin again.
static int next_turn(const struct ready *r)
{
    int top = highest_busy(r);
    unsigned lower = top > 0 ? r->levels & ((1u << top) - 1) : 0;
    unsigned after = lower & ((1u << r->turns.last) - 1);

    return highest(after != 0 ? after : lower);
}

static void start_level(struct ready_walk *w, int level)
{
    w->level = level;
    w->next = level >= 0 ? TAILQ_FIRST(&w->ready->of[level]) : NULL;
}

struct ready_walk ready_begin(struct ready *r)
{
    struct ready_walk w = {.ready = r, .turn = -1};

    if (r->turns.n_passed >= TURN_EVERY - 1)
        w.turn = next_turn(r);
    start_level(&w, w.turn >= 0 ? w.turn : highest(r->levels));
    return w;
}

// The next lower priority behind the level of the walk, which is over if a claim of a higher
// one is in flight.
static int level_below(const struct ready_walk *w)
{
    const struct ready *r = w->ready;
    unsigned left =
        w->level == LANE_PRIORITIES ? r->levels : r->levels & ((1u << w->level) - 1);

    if (w->turn >= 0)
        left &= ~(1u << w->turn);
    return highest(left);
}

static bool is_passable(const struct ready *r, int level)
{
    for (int p = LANE_PRIORITIES - 1; p > level; p--)
        if (r->working[p] > 0)
            return false;
    return true;
}

struct consumer *ready_next(struct ready_walk *w)
{
    bool in_turn = w->turn >= 0 && w->level == w->turn;

    while (!w->next) {
        if (in_turn)
            w->level = LANE_PRIORITIES; // the others follow, from the top
        in_turn = false;
        if (w->level < 0)
            return NULL;
        start_level(w, level_below(w));
    }
    if (!in_turn && !is_passable(w->ready, w->level))
        return NULL;
    struct consumer *c = w->next;
    w->next = TAILQ_NEXT(c, ready);
    return c;
}

void ready_taken(const struct ready_walk *w, const struct consumer *c)
{
    struct ready *r = w->ready;
    unsigned p = c->lane->priority;

    r->before = r->turns;
    if (w->turn == (int)p)
        r->turns = (struct ready_turns){.last = (uint8_t)p};
    else if ((r->levels & ((1u << p) - 1)) != 0 && r->turns.n_passed < TURN_EVERY)
        r->turns.n_passed++;
}
