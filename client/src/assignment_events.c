// assignment_events.c: hands out a whole batch, answered later (on_events).
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "processor_int.h"

struct answer {
    bool given, moved;
    enum queen_outcome outcome;
    char *error;
};

// One round: the events of the job that are not settled.
struct assignment_events {
    struct queen_events pub;
    struct assignment *assignment;
    const struct queen_delivery **messages;
    size_t *at; // of each message in the job
    struct answer *answers;
};

static bool is_duplicate(struct assignment *s, size_t i)
{
    return s->tried == 0 && dedup_has(s->dedup, span_of(s->job->batch->items[i].transaction_id),
                                      assignment_now_ms(s));
}

static void collect(struct assignment_events *e)
{
    struct assignment *s = e->assignment;

    for (size_t i = 0; i < s->job->batch->n; i++) {
        if (s->job->each[i].settled)
            continue;
        if (is_duplicate(s, i)) {
            s->processor->n_duplicates++;
            queen_job_settle(s->job, i, QUEEN_ACK_COMPLETED, NULL);
            continue;
        }
        e->messages[e->pub.n] = &s->job->batch->items[i];
        e->at[e->pub.n++] = i;
    }
}

void assignment_hand_out(struct assignment *s)
{
    struct queen_processor *p = s->processor;
    size_t n = s->job->batch->n;
    struct assignment_events *e = mem_new(struct assignment_events);

    e->assignment = s;
    e->messages = mem_new_array(const struct queen_delivery *, n);
    e->at = mem_new_array(size_t, n);
    e->answers = mem_new_array(struct answer, n);
    s->events = e;
    if (assignment_may_go_on(s))
        collect(e);
    e->pub.partition = s->name;
    e->pub.messages = e->messages;
    e->pub.tried = s->tried;
    e->pub.internal = e;
    if (e->pub.n > 0)
        p->conf.on_events(&e->pub, p->conf.ctx);
    else
        queen_events_done(&e->pub);
}

// ---- functions for the handler ----

void queen_events_answer(struct queen_events *b, size_t i, enum queen_outcome outcome,
                         const char *error)
{
    struct assignment_events *e = b->internal;

    if (i >= b->n)
        return;
    struct answer *a = &e->answers[i];
    free(a->error);
    a->given = true;
    a->outcome = outcome;
    a->error = error ? mem_strndup(error, strlen(error)) : NULL;
}

void queen_events_error_code(struct queen_events *b, size_t i, const char *error_code)
{
    struct assignment_events *e = b->internal;

    if (i < b->n)
        queen_job_settle_code(e->assignment->job, e->at[i], error_code);
}

void queen_events_move(struct queen_events *b, size_t i, const char *queue,
                       const char *partition)
{
    struct assignment_events *e = b->internal;
    struct assignment *s = e->assignment;

    if (i >= b->n)
        return;
    if (!s->moves)
        s->moves = mem_new_array(struct assignment_move, s->job->batch->n);
    struct assignment_move *m = &s->moves[e->at[i]];
    free(m->queue);
    free(m->partition);
    m->queue = mem_strndup(queue, strlen(queue));
    m->partition = mem_strndup(partition, strlen(partition));
    e->answers[i].given = e->answers[i].moved = true;
}

void queen_events_checkpoint(struct queen_events *b, size_t i)
{
    struct assignment_events *e = b->internal;

    if (i < b->n)
        assignment_note_checkpoint(e->assignment, b->messages[i]->transaction_id);
}

bool queen_events_is_over(const struct queen_events *b)
{
    struct assignment_events *e = b->internal;

    return !assignment_may_go_on(e->assignment);
}

void queen_events_done(struct queen_events *b)
{
    struct assignment_events *e = b->internal;

    queen_job_finish(e->assignment->job, QUEEN_DONE);
}

// ---- back on the loop ----

static void read_answer(struct assignment *s, size_t i, const struct answer *a)
{
    struct event_plan plan = event_plan(a->outcome, s->tried, &s->processor->conf.retry);

    if (a->moved) { // not confirmed yet: if the move fails, it must be handled again
        queen_job_settle(s->job, i, QUEEN_ACK_COMPLETED, NULL);
        s->processor->n_moved++;
    } else if (plan.again) {
        s->processor->n_retried++;
        job_note_try(s->job, i, assignment_now_ms(s), a->error);
        s->pause_ms = plan.pause_ms > 0 ? plan.pause_ms : 1;
    } else {
        assignment_note_settled(s, i, plan.status, a->error);
    }
}

void assignment_read_answers(struct assignment *s)
{
    struct assignment_events *e = s->events;

    s->events = NULL;
    s->tried++;
    for (size_t k = 0; k < e->pub.n; k++) {
        if (e->answers[k].given)
            read_answer(s, e->at[k], &e->answers[k]);
        free(e->answers[k].error);
    }
    while (s->at < s->job->batch->n && s->job->each[s->at].settled)
        s->at++;
    free(e->messages);
    free(e->at);
    free(e->answers);
    free(e);
}
