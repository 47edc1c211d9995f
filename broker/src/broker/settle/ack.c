// Acks: entries grouped by partition, many requests in one call.
//
// Entries travel as 16-byte keys; the database stores which messages are under a lease, so no
// broker has to remember what it delivered, and any broker can take any ack.  There are two
// calls: queen.finish for requests that complete everything under their leases, which the
// broker that delivered them can check (outstanding.c), and queen.settle for the rest.
#include "broker/settle/outstanding_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/settle/dead_letters.h"
#include "db/sql.gen.h"
#include "segment/keys.h"

enum { MAX_TRIES = 5 };

struct ack_flight {
    struct op_list ops;
    unsigned n_ops, n_groups, n_entries;
    bool whole, has_tries;
    struct ack_group **groups; // in the order sent
};

static void ack_arrive(struct mailbox_item *item);
static struct ack_flight *ack_load(struct broker *b);
static void on_settled(struct pg_call *pg, int status, const struct pg_reply *reply);
static int read_settled(struct broker *b, struct ack_flight *f, const struct pg_reply *reply);
static void ack_apply_result(struct broker *b, struct ack_flight *f, int status, bool too_slow,
                             const struct pg_reply *reply);

// The broker that gave out a lease put its number into it.
static struct broker *home_of_lease(struct broker *b, span lease)
{
    uint8_t id[16];
    struct house *h = b->house;

    if (id_parse_uuid(lease, id) && memcmp(id + 9, h->mark, sizeof h->mark) == 0 &&
        id[15] < h->n)
        return h->brokers[id[15]];
    return b;
}

static void ack_complete(struct op *op)
{
    struct ack_op *ack = container_of(op, struct ack_op, op);

    ack->done(ack, op->status);
}

void broker_ack(struct broker *b, struct ack_op *ack)
{
    op_begin(b, &ack->op, OP_ACK, ack_complete);
    op_go(b, home_of_lease(b, ack->entries[0].lease), &ack->op, ack_arrive);
}

static void ack_arrive(struct mailbox_item *item)
{
    struct ack_op *ack = container_of(item, struct ack_op, op.mail);
    struct broker *b = item->owner;

    if (!op_admit(b, &ack->op))
        return;
    ack->groups = ack_groups_make(ack->arena, ack->entries, ack->n_entries, &ack->group, false,
                                  &ack->n_groups);
    if (ack->n_groups == 0) { // not one of the partitions can exist
        op_finish(b, &ack->op, 0);
        return;
    }
    ack->whole = outstanding_match(b, ack->groups, ack->n_groups);
    STAILQ_INSERT_TAIL(&b->ops[OP_ACK].queue, &ack->op, link);
    b->ops[OP_ACK].n_requests++;
    b->ops[OP_ACK].n_items += ack->n_entries;
    broker_wake(b);
}

void acks_flush(struct broker *b)
{
    for (;;) {
        struct op *oldest = STAILQ_FIRST(&b->ops[OP_ACK].queue);
        struct gate_queue q = {b->ops[OP_ACK].n_requests, b->ops[OP_ACK].n_items,
                               oldest ? oldest->since_us : 0};
        if (!oldest || !gate_is_open(&b->ops[OP_ACK].gate, q, clock_mono_us()))
            return;
        struct ack_flight *f = ack_load(b);
        struct call *c = call_new(b,
                                  f->whole       ? &pg_stmt_finish
                                  : f->has_tries ? &pg_stmt_settle_tries
                                                 : &pg_stmt_settle,
                                  f);
        pg_param_i32(&c->params, b->house->origin);
        if (f->whole) {
            outstanding_fill(b, &c->params, f->groups, f->n_groups);
        } else {
            ack_groups_fill(&c->params, f->groups, f->n_groups);
            ack_groups_fill_more(&c->params, f->groups, f->n_groups);
            ack_groups_fill_after(&c->params, f->groups, f->n_groups);
            if (f->has_tries)
                ack_groups_fill_tries(&c->params, f->groups, f->n_groups);
        }
        gate_left(&b->ops[OP_ACK].gate);
        histogram_add(&b->stats.batch_requests[OP_ACK], f->n_ops);
        histogram_add(&b->stats.batch_items[OP_ACK], f->n_entries);
        call_send(c, on_settled);
    }
}

// As many as fit, all of the first one's kind.
static struct ack_flight *ack_load(struct broker *b)
{
    struct ack_flight *f = mem_new(struct ack_flight);
    struct op *op;

    STAILQ_INIT(&f->ops);
    while ((op = STAILQ_FIRST(&b->ops[OP_ACK].queue))) {
        struct ack_op *ack = container_of(op, struct ack_op, op);
        if (f->n_ops == 0)
            f->whole = ack->whole;
        if (f->n_ops > 0 &&
            (f->n_ops == b->conf.ack.max_requests || op->alone || ack->whole != f->whole ||
             f->n_entries + ack->n_entries > b->conf.ack.max_items))
            break;
        STAILQ_REMOVE_HEAD(&b->ops[OP_ACK].queue, link);
        STAILQ_INSERT_TAIL(&f->ops, op, link);
        f->n_ops++;
        for (unsigned i = 0; i < ack->n_groups; i++)
            f->n_groups += !ack->groups[i].done;
        f->n_entries += ack->n_entries;
        b->ops[OP_ACK].n_requests--;
        b->ops[OP_ACK].n_items -= ack->n_entries;
        if (op->alone)
            break;
    }
    f->groups = mem_new_array(struct ack_group *, f->n_groups);
    unsigned n = 0;
    STAILQ_FOREACH (op, &f->ops, link) {
        struct ack_op *ack = container_of(op, struct ack_op, op);
        for (unsigned i = 0; i < ack->n_groups; i++)
            if (!ack->groups[i].done)
                f->groups[n++] = &ack->groups[i];
    }
    for (unsigned i = 0; i < n; i++)
        f->has_tries = f->has_tries || f->groups[i]->has_tries;
    return f;
}

static void on_settled(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct ack_flight *f = c->what;
    uint64_t now = clock_mono_us();

    gate_landed(&b->ops[OP_ACK].gate, f->n_ops, now - c->left_us, now);
    histogram_add(&b->stats.batch_us[OP_ACK], now - c->left_us);
    if (status == 0 && f->whole)
        status = outstanding_read(b, f->groups, f->n_groups, reply);
    else if (status == 0)
        status = read_settled(b, f, reply);
    if (status == QE_PG_SHAPE)
        (void)call_unexpected(c, "an entry that was not sent, or answered twice");
    if (status != 0)
        log_debug("ack.failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
    bool too_slow = status != 0 && strcmp(pg_reply_sqlstate(reply), "57014") == 0;
    ack_apply_result(b, f, status, too_slow, reply);
    free(f->groups);
    free(f);
    call_free(c);
    broker_wake(b);
}

static int read_settled(struct broker *b, struct ack_flight *f, const struct pg_reply *reply)
{
    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        unsigned i = (unsigned)pg_reply_i32(reply, row, ACK_COL_GRP) - 1;
        if (i >= f->n_groups || !ack_row_is_sound(f->groups[i], reply, row, 0))
            return QE_PG_SHAPE;
        ack_group_read(b, f->groups[i], reply, row, 0);
        ack_group_read_retry(b, f->groups[i], reply, row);
    }
    return 0;
}

static bool is_done(const struct ack_op *ack)
{
    for (unsigned i = 0; i < ack->n_groups; i++)
        if (!ack->groups[i].done)
            return false;
    return true;
}

// An earlier try got no answer, and this one finds the lease gone: perhaps because the earlier
// one has ended it.  "Invalid lease" would be wrong if it was.
static bool is_in_doubt(const struct ack_op *ack)
{
    for (unsigned i = 0; ack->op.unknown && i < ack->n_entries; i++)
        if (ack->entries[i].why == ACK_BAD_LEASE)
            return true;
    return false;
}

// An ack whose outcome is unknown may be sent again: nothing is counted twice, because its
// lease shows whether it was applied.  One that exceeded the statement timeout together with
// others is tried once more alone; then its client gets the error.  One whose consumer is
// locked by another transaction is repeated alone, from time to time (locked.c).
static void ack_apply_result(struct broker *b, struct ack_flight *f, int status, bool too_slow,
                             const struct pg_reply *reply)
{
    struct op_list again = STAILQ_HEAD_INITIALIZER(again);
    bool locked = status != 0 && pg_reply_is_locked(reply);
    bool scatter =
        (status == QE_PG_DATA || status == QE_PG_FAILED || too_slow || locked) && f->n_ops > 1;

    while (!STAILQ_EMPTY(&f->ops)) {
        struct op *op = STAILQ_FIRST(&f->ops);
        struct ack_op *ack = container_of(op, struct ack_op, op);
        STAILQ_REMOVE_HEAD(&f->ops, link);
        bool rest = status == 0 && f->whole && !is_done(ack); // not whole after all
        op->unknown = op->unknown || status == QE_PG_GONE;
        if (rest)
            ack->whole = false;
        if (locked && !scatter && op_try_later(b, op, &b->ops[OP_ACK].queue))
            continue;
        if (op->waited)
            op_try_next(b);
        op->waited = false;
        if (rest || scatter ||
            (is_worth_retry(status) && !too_slow && op->tries++ < MAX_TRIES)) {
            op->alone = op->alone || scatter;
            for (unsigned i = 0; i < ack->n_groups; i++)
                ack->groups[i].counted = NULL; // unused queues may be forgotten meanwhile
            STAILQ_INSERT_TAIL(&again, op, link);
            b->ops[OP_ACK].n_requests++;
            b->ops[OP_ACK].n_items += ack->n_entries;
            continue;
        }
        if (status == 0 && is_in_doubt(ack)) {
            op_finish(b, op, fault_set(&op->why, QE_PG_GONE, "%s", err_text(QE_PG_GONE)));
            continue;
        }
        if (status == 0) {
            if (ack->groups[0].counted)
                queue_tally(b, ack->groups[0].counted, true)->ack_requests++;
            counter_add(&b->stats.items[OP_ACK], ack->n_entries);
            for (unsigned i = 0; i < ack->n_entries; i++) {
                counter_add(ack->entries[i].why == ACK_OK ? &b->stats.acks_ok
                                                          : &b->stats.acks_failed,
                            1);
            }
            dead_letters_of(b, ack->entries, ack->n_entries, &ack->group, false);
        } else {
            pg_reply_fault(&op->why, status, reply);
        }
        op_finish(b, op, status);
    }
    STAILQ_CONCAT(&again, &b->ops[OP_ACK].queue);
    STAILQ_CONCAT(&b->ops[OP_ACK].queue, &again);
    feed_active(b);
}
