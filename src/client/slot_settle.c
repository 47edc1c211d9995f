// slot_settle.c: acknowledging a batch; what leaves the partition goes with it.
#include <stdlib.h>

#include "base/mem.h"
#include "client/fail.h"
#include "client/processor_int.h"

static void commit_moves(struct slot *s);
static void on_moved(const struct queen_error *err, void *ctx);
static void ack(struct slot *s, bool only_unsettled);
static void on_acked(struct queen_ack_results *r, const struct queen_error *err, void *ctx);
static void finish(struct slot *s, const struct queen_error *err, bool lost);

void slot_settle(struct slot *s)
{
    s->state = SLOT_ACKING;
    if (s->moves)
        commit_moves(s);
    else
        ack(s, false);
}

static void commit_moves(struct slot *s)
{
    struct queen_processor *p = s->processor;
    struct queen_transaction *t = s->moves;

    for (size_t i = 0; i < s->job->batch->n; i++) {
        const struct verdict_of *v = &s->job->each[i];
        if (v->settled)
            queen_transaction_ack(t, &s->job->batch->items[i], p->group, v->status, v->error);
    }
    s->moves = NULL; // taken
    p->n_calls++;
    queen_transaction_commit_start(p->client, t, on_moved, s);
}

static void on_moved(const struct queen_error *err, void *ctx)
{
    struct slot *s = ctx;
    bool unsettled = false;

    s->processor->n_calls--;
    for (size_t i = 0; i < s->job->batch->n; i++)
        unsettled = unsettled || !s->job->each[i].settled;
    if (err->code != 0)
        finish(s, err, err->code == QUEEN_E_CONFLICT);
    else if (unsettled)
        ack(s, true); // a transaction cannot give anything back
    else
        finish(s, err, false);
}

// What was not settled goes back, without counting as a failure.  Also when the partition is
// lost: what is not ours any more is refused by the server, which knows best.
static void ack(struct slot *s, bool only_unsettled)
{
    struct queen_processor *p = s->processor;
    size_t n = s->job->batch->n, n_sent = 0;
    struct queen_ack *acks = mem_new_array(struct queen_ack, n);

    s->job->verdict = QUEEN_RETRY;
    job_verdicts(s->job, acks);
    for (size_t i = 0; i < n; i++)
        if (!only_unsettled || !s->job->each[i].settled)
            acks[n_sent++] = acks[i];
    p->n_calls++;
    queen_ack_start(p->client, p->group, acks, n_sent, on_acked, s);
    free(acks);
}

static void on_acked(struct queen_ack_results *r, const struct queen_error *err, void *ctx)
{
    struct slot *s = ctx;
    struct queen_error why = *err;

    s->processor->n_calls--;
    if (r && r->n_refused > 0)
        fail_set(&why, QUEEN_E_LEASE, "partition %s: %zu of %zu events were not ours any more",
                 s->name, r->n_refused, r->n);
    finish(s, &why, r && r->n_refused > 0);
    queen_ack_results_free(r);
}

static void finish(struct slot *s, const struct queen_error *err, bool lost)
{
    struct queen_processor *p = s->processor;

    if (p->conf.checkpoints == QUEEN_CHECKPOINT_TIME && s->at > 0 && err->code == 0)
        slot_note_checkpoint(s, s->job->batch->items[s->at - 1].transaction_id);
    job_free(s->job);
    s->job = NULL;
    if (p->conf.on_settled)
        p->conf.on_settled(s->name, p->conf.ctx);
    s->state = SLOT_WAITING;
    s->due_ms = 0;
    if (lost) {
        processor_report(p, err);
        slot_close(s, QUEEN_CLOSED_LOST);
    } else if (err->code != 0) {
        processor_failed(p, err);
        slot_wait_a_moment(s);
    }
    if (s->state == SLOT_WAITING && s->closing)
        slot_end(s);
    else if (s->state == SLOT_WAITING && s->due_ms == 0)
        slot_pop(s);
}
