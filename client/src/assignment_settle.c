// assignment_settle.c: acknowledges a batch, together with the events moved out of the
// partition.
//
// An event that was not settled is delivered again, and so is everything behind it, because the
// server's cursor cannot skip it. Events behind it that were handled are recognised by their
// ids when they are delivered again.
#include <stdlib.h>

#include "base/mem.h"
#include "fail.h"
#include "processor_int.h"

static void commit_moves(struct assignment *s);
static void on_moved(const struct queen_error *err, void *ctx);
static void ack_from(struct assignment *s, size_t first);
static void on_assignment_acked(struct queen_ack_results *r, const struct queen_error *err,
                                void *ctx);
static void assignment_finish(struct assignment *s, const struct queen_error *err, bool lost);

static bool has_moves(const struct assignment *s)
{
    for (size_t i = 0; s->moves && i < s->at; i++)
        if (s->moves[i].queue)
            return true;
    return false;
}

static void drop_moves(struct assignment *s)
{
    for (size_t i = 0; s->moves && i < s->job->batch->n; i++) {
        free(s->moves[i].queue);
        free(s->moves[i].partition);
    }
    free(s->moves);
    s->moves = NULL;
}

void assignment_settle(struct assignment *s)
{
    s->state = ASSIGN_ACKING;
    if (has_moves(s))
        commit_moves(s);
    else
        ack_from(s, 0);
}

static void commit_moves(struct assignment *s)
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
        struct queen_ack ack = queen_ack_of(d, v->status);
        ack.error = v->error;
        if (v->status != QUEEN_ACK_COMPLETED)
            ack.error_code = v->code;
        queen_transaction_settle(t, p->group, &ack);
    }
    p->n_calls++;
    queen_transaction_commit_start(p->client, t, on_moved, s);
}

static void on_moved(const struct queen_error *err, void *ctx)
{
    struct assignment *s = ctx;

    s->processor->n_calls--;
    if (err->code == 0 && s->at < s->job->batch->n)
        ack_from(s, s->at); // a transaction cannot release messages
    else
        assignment_finish(s, err, err->code == QUEEN_E_CONFLICT);
}

// The earlier tries of the messages before `end`; given, free().
static struct queen_try *collect_tries(const struct assignment *s, size_t end,
                                       struct queen_ack *acks)
{
    struct queen_try *tries = NULL;
    uint64_t now = assignment_now_ms(s);
    size_t n = 0;

    for (size_t i = 0; i < end; i++)
        n += s->job->each[i].n_tries;
    if (n == 0)
        return NULL;
    tries = mem_new_array(struct queen_try, n);
    n = 0;
    for (size_t i = 0; i < end; i++) {
        const struct verdict_of *v = &s->job->each[i];
        acks[i].tries = tries + n;
        acks[i].n_tries = v->n_tries;
        for (unsigned k = 0; k < v->n_tries; k++)
            tries[n++] = (struct queen_try){now - v->tries[k].at_ms, v->tries[k].error,
                                            v->tries[k].code};
    }
    return tries;
}

// Also if the partition is lost: the server refuses acknowledgements that are not valid any
// more.
static void ack_from(struct assignment *s, size_t first)
{
    struct queen_processor *p = s->processor;
    size_t n = s->job->batch->n;
    struct queen_ack *acks = mem_new_array(struct queen_ack, n);

    job_verdicts(s->job, acks);
    for (size_t i = s->at; i < n; i++)
        acks[i] = queen_ack_of(&s->job->batch->items[i], QUEEN_ACK_RETRY);
    struct queen_try *tries = collect_tries(s, s->at, acks);
    p->n_calls++;
    queen_ack_start(p->client, p->group, acks + first, n - first, on_assignment_acked, s);
    free(tries);
    free(acks);
}

static void on_assignment_acked(struct queen_ack_results *r, const struct queen_error *err,
                                void *ctx)
{
    struct assignment *s = ctx;
    struct queen_error why = *err;

    s->processor->n_calls--;
    if (r && r->n_refused > 0)
        fail_set(&why, QUEEN_E_LEASE, "partition %s: %zu of %zu events were not ours any more",
                 s->name, r->n_refused, r->n);
    assignment_finish(s, &why, r && r->n_refused > 0);
    queen_ack_results_free(r);
}

static void assignment_finish(struct assignment *s, const struct queen_error *err, bool lost)
{
    struct queen_processor *p = s->processor;

    if (p->conf.checkpoints == QUEEN_CHECKPOINT_TIME && s->at > 0 && err->code == 0)
        assignment_note_checkpoint(s, s->job->batch->items[s->at - 1].transaction_id);
    if (err->code == 0 && s->at == s->job->batch->n)
        assignment_forget_settled(s);
    drop_moves(s);
    job_free(s->job);
    s->job = NULL;
    if (p->conf.on_settled)
        p->conf.on_settled(s->name, err->code == 0 || lost, p->conf.ctx);
    s->state = ASSIGN_WAITING;
    s->due_ms = 0;
    bool was_closing = s->closing;
    if (lost) {
        // Possibly our own: a retry after a lost response finds its lease ended.
        processor_report(p, err);
        p->look_due_ms = 0;
        assignment_close(s, QUEEN_CLOSED_LOST);
    } else if (err->code != 0 && was_closing) {
        processor_failed(p, err);
    } else if (err->code != 0) {
        assignment_doubt(s, err);
    }
    if (was_closing) {
        assignment_end(s);
    } else if (err->code == 0) {
        s->doubted = false;
        assignment_pop(s);
    }
}
