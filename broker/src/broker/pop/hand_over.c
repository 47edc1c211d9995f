// Hands the messages of a push to pops that wait for them, in the push's own transaction.
//
// A pop that is parked at the home of a lane would be served by a claim after the push has
// committed: a second transaction, with a second commit. Its claim travels with the push
// instead. Only fast claims do; all else is served after the push, as before.
//
//      push_launch ──► hand_over_take ──► hand_over_fill ──► (database) ──► hand_over_end
//
// The claims hold when the push does. If the call fails, nothing was taken, unless its outcome
// is unknown, as with any claim.
#include "broker/pop/claim_int.h"

#include "broker/segments/segs.h"
#include "db/sql.gen.h"

// A consumer whose state is known, with a pop that can be given nothing else at present.
static bool is_awaited(const struct consumer *c)
{
    const struct lane *lane = c->lane;

    if (c->state != IDLE || c->num == 0 || c->gone || c->asking || c->careful_once ||
        lane->careful || lane->work || lane->origin)
        return false;
    return !TAILQ_EMPTY(&c->seats) ||
           (group_is_known(c->group) && !TAILQ_EMPTY(&c->group->seats));
}

struct claim_flight *hand_over_take(struct broker *b, const struct segs *segs)
{
    struct op_list pops = STAILQ_HEAD_INITIALIZER(pops),
                   others = STAILQ_HEAD_INITIALIZER(others), *queue = &b->ops[OP_POP].queue;
    unsigned n_others = b->ops[OP_POP].n_requests;
    struct claim_flight *f = NULL;
    const struct lane *last = NULL;

    if (b->pops_stopped || b->draining)
        return NULL;
    // The pops that consumer_ready() serves come into the empty queue.
    STAILQ_CONCAT(&others, queue);
    b->ops[OP_POP].n_requests = 0;
    for (unsigned i = 0; i < segs->n; i++) {
        struct consumer *c;
        if (segs->at[i].lane == last)
            continue;
        last = segs->at[i].lane;
        LIST_FOREACH (c, &last->consumers, of_lane)
            if (is_awaited(c))
                consumer_ready(b, c, false);
    }
    unsigned n = claim_take_pops(b, CLAIM_FAST, &pops);
    STAILQ_CONCAT(&others, queue);
    STAILQ_CONCAT(queue, &others);
    b->ops[OP_POP].n_requests += n_others;
    if (n == 0)
        return NULL;
    f = claim_flight_new(&pops, n);
    f->hand_over = ++b->n_hand_overs;
    for (unsigned i = 0; i < f->n_targets; i++)
        f->targets[i]->handed_over = f->hand_over;
    histogram_add(&b->stats.batch_requests[OP_POP], n);
    return f;
}

void hand_over_fill(struct pg_params *p, const struct claim_flight *f) { claim_fill(p, f); }

// The number of rows about the push, which come first; more than there are if they make no
// sense.
static unsigned count_push_rows(const struct pg_reply *reply)
{
    unsigned n = 0, n_rows = pg_reply_rows(reply);

    while (n < n_rows && pg_reply_is_null(reply, n, PUSH_CLAIM_COL_CLAIM + CLAIM_COL_TARGET))
        if (pg_reply_is_null(reply, n++, PUSH_CLAIM_COL_STORED_LANE + PUSH_COL_STATUS))
            return n_rows + 1;
    for (unsigned row = n; row < n_rows; row++)
        if (pg_reply_is_null(reply, row, PUSH_CLAIM_COL_CLAIM + CLAIM_COL_TARGET) ||
            pg_reply_is_null(reply, row, PUSH_CLAIM_COL_CLAIM + CLAIM_COL_STATUS))
            return n_rows + 1;
    return n;
}

struct pg_reply *hand_over_end(struct call *c, struct claim_flight *f, int status,
                               const struct pg_reply *reply)
{
    unsigned n_rows = status == 0 ? pg_reply_rows(reply) : 0;
    unsigned n = status == 0 ? count_push_rows(reply) : 0;

    if (status == 0 && n > n_rows)
        status = QE_PG_SHAPE; // push_result() says so
    if (status != 0) {
        f->refused = status != QE_PG_GONE && status != QE_PG_SHAPE;
        claim_flight_end(c, f, status, reply);
        return NULL;
    }
    struct pg_reply *claims = pg_reply_part(reply, n, n_rows - n, PUSH_CLAIM_COL_CLAIM);
    uint64_t number = f->hand_over;
    claim_flight_end(c, f, 0, claims);
    pg_reply_part_free(claims);
    c->broker->handed_over = number; // only from here on: for what follows from the push
    return pg_reply_part(reply, 0, n, PUSH_CLAIM_COL_STORED_LANE);
}

void hand_over_told(struct broker *b) { b->handed_over = 0; }
