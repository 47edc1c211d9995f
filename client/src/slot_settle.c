// slot_settle.c: acknowledges a batch, together with the events moved out of the partition.
//
// An event that was not settled is delivered again, and so is everything behind it, because the
// server's cursor cannot skip it. Events behind it that were handled are recognised by their
// ids when they are delivered again.
#include <stdlib.h>

#include "base/mem.h"
#include "fail.h"
#include "processor_int.h"

static void commit_moves(struct slot *s);
static void on_moved(const struct queen_error *err, void *ctx);
static void ack_from(struct slot *s, size_t first);
static void on_slot_acked(struct queen_ack_results *r, const struct queen_error *err,
                          void *ctx);
static void slot_finish(struct slot *s, const struct queen_error *err, bool lost);

static bool has_moves(const struct slot *s)
{
    for (size_t i = 0; s->moves && i < s->at; i++)
        if (s->moves[i].queue)
            return true;
    return false;
}

static void drop_moves(struct slot *s)
{
    for (size_t i = 0; s->moves && i < s->job->batch->n; i++) {
        free(s->moves[i].queue);
        free(s->moves[i].partition);
    }
    free(s->moves);
    s->moves = NULL;
}

void slot_settle(struct slot *s)
{
    s->state = SLOT_ACKING;
    if (has_moves(s))
        commit_moves(s);
    else
        ack_from(s, 0);
}

static void commit_moves(struct slot *s)
{
    struct queen_processor *p = s->processor;
    struct queen_transaction *t = queen_transaction_new();

    for (size_t i = 0; i < s->at; i++) {
        const struct queen_delivery *d = &s->job->batch->items[i];
        const struct verdict_of *v = &s->job->each[i];
        if (s->moves[i].queue)
            queen_transaction_push(t,
                                   &(struct queen_message){.queue = s->moves[i].queue,
                                                           .partition = s->moves[i].partition,
                                                           .payload = d->data,
                                                           .payload_len = d->data_len});
        queen_transaction_ack(t, d, p->group, v->status, v->error);
    }
    p->n_calls++;
    queen_transaction_commit_start(p->client, t, on_moved, s);
}

static void on_moved(const struct queen_error *err, void *ctx)
{
    struct slot *s = ctx;

    s->processor->n_calls--;
    if (err->code == 0 && s->at < s->job->batch->n)
        ack_from(s, s->at); // a transaction cannot release messages
    else
        slot_finish(s, err, err->code == QUEEN_E_CONFLICT);
}

// Also if the partition is lost: the server refuses acknowledgements that are not valid any
// more.
static void ack_from(struct slot *s, size_t first)
{
    struct queen_processor *p = s->processor;
    size_t n = s->job->batch->n;
    struct queen_ack *acks = mem_new_array(struct queen_ack, n);

    job_verdicts(s->job, acks);
    for (size_t i = s->at; i < n; i++)
        acks[i] = queen_ack_of(&s->job->batch->items[i], QUEEN_ACK_RETRY);
    p->n_calls++;
    queen_ack_start(p->client, p->group, acks + first, n - first, on_slot_acked, s);
    free(acks);
}

static void on_slot_acked(struct queen_ack_results *r, const struct queen_error *err, void *ctx)
{
    struct slot *s = ctx;
    struct queen_error why = *err;

    s->processor->n_calls--;
    if (r && r->n_refused > 0)
        fail_set(&why, QUEEN_E_LEASE, "partition %s: %zu of %zu events were not ours any more",
                 s->name, r->n_refused, r->n);
    slot_finish(s, &why, r && r->n_refused > 0);
    queen_ack_results_free(r);
}

static void slot_finish(struct slot *s, const struct queen_error *err, bool lost)
{
    struct queen_processor *p = s->processor;

    if (p->conf.checkpoints == QUEEN_CHECKPOINT_TIME && s->at > 0 && err->code == 0)
        slot_note_checkpoint(s, s->job->batch->items[s->at - 1].transaction_id);
    if (err->code == 0 && s->at == s->job->batch->n)
        slot_forget_settled(s);
    drop_moves(s);
    job_free(s->job);
    s->job = NULL;
    if (p->conf.on_settled)
        p->conf.on_settled(s->name, err->code == 0 || lost, p->conf.ctx);
    s->state = SLOT_WAITING;
    s->due_ms = 0;
    bool was_closing = s->closing;
    if (lost) {
        // Possibly our own: a retry after a lost response finds its lease ended.
        processor_report(p, err);
        p->look_due_ms = 0;
        slot_close(s, QUEEN_CLOSED_LOST);
    } else if (err->code != 0 && was_closing) {
        processor_failed(p, err);
    } else if (err->code != 0) {
        slot_doubt(s, err);
    }
    if (was_closing) {
        slot_end(s);
    } else if (err->code == 0) {
        s->doubted = false;
        slot_pop(s);
    }
}
