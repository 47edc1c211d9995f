// assignment_event.c: handles a batch one event after another (on_event).
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "processor_int.h"

void assignment_note_settled(struct assignment *s, size_t i, enum queen_ack_status status,
                             const char *error)
{
    struct queen_processor *p = s->processor;

    queen_job_settle(s->job, i, status, error);
    if (status == QUEEN_ACK_COMPLETED) {
        p->n_handled++;
        dedup_add(s->dedup, span_of(s->job->batch->items[i].transaction_id),
                  assignment_now_ms(s));
    } else if (status == QUEEN_ACK_DLQ) {
        p->n_dead++;
    }
}

// Handles events of the batch until one must wait, the partition is lost, or the batch ends.
enum queen_verdict assignment_handle(struct queen_job *job, void *processor)
{
    struct queen_processor *p = processor;
    struct assignment *s = job->owner;

    while (s->at < job->batch->n && assignment_may_go_on(s)) {
        const struct queen_delivery *d = &job->batch->items[s->at];
        struct queen_event e = {
            .message = d, .partition = s->name, .tried = s->tried, .internal = s};
        if (s->tried == 0 &&
            dedup_has(s->dedup, span_of(d->transaction_id), assignment_now_ms(s))) {
            p->n_duplicates++;
            queen_job_settle(job, s->at++, QUEEN_ACK_COMPLETED, NULL);
            continue;
        }
        enum queen_outcome outcome = p->conf.on_event(&e, p->conf.ctx);
        struct event_plan plan = event_plan(outcome, ++s->tried, &p->conf.retry);
        char *error = s->error[0] != '\0' ? s->error : NULL;
        if (plan.again) {
            p->n_retried++;
            s->pause_ms = plan.pause_ms > 0 ? plan.pause_ms : 1;
            job_note_try(job, s->at, assignment_now_ms(s), error);
        } else {
            assignment_note_settled(s, s->at++, plan.status, error);
            s->tried = 0;
        }
        s->error[0] = '\0'; // it is not that of the next try, or event
        if (plan.again)
            break;
    }
    return QUEEN_DONE;
}

void queen_event_error(struct queen_event *e, const char *text)
{
    struct assignment *s = e->internal;

    str_clean_utf8(s->error, sizeof s->error, span_of(text));
}

void queen_event_error_code(struct queen_event *e, const char *error_code)
{
    struct assignment *s = e->internal;

    queen_job_settle_code(s->job, s->at, error_code);
}

void assignment_note_checkpoint(struct assignment *s, const char *transaction_id)
{
    pthread_mutex_lock(&s->processor->lock);
    free(s->checkpoint);
    s->checkpoint = mem_strndup(transaction_id, strlen(transaction_id));
    pthread_mutex_unlock(&s->processor->lock);
}

void queen_event_checkpoint(struct queen_event *e)
{
    assignment_note_checkpoint(e->internal, e->message->transaction_id);
}
