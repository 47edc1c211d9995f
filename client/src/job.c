// job.c: records the handler's verdicts on its messages.
#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "client_int.h"

static void on_posted(struct mailbox_item *item)
{
    struct queen_job *job = container_of(item, struct queen_job, post);

    job->finished(job);
}

struct queen_job *job_new(struct queen_client *c, struct queen_batch *batch,
                          void (*finished)(struct queen_job *job), void *owner)
{
    struct queen_job *job = mem_new(struct queen_job);

    job->client = c;
    job->batch = batch;
    job->finished = finished;
    job->owner = owner;
    job->post.deliver = on_posted;
    job->each = mem_new_array(struct verdict_of, batch->n);
    return job;
}

static void free_try(struct job_try *t)
{
    free(t->error);
    free(t->code);
}

void job_free(struct queen_job *job)
{
    for (size_t i = 0; i < job->batch->n; i++) {
        free(job->each[i].error);
        free(job->each[i].code);
        for (unsigned k = 0; k < job->each[i].n_tries; k++)
            free_try(&job->each[i].tries[k]);
        free(job->each[i].tries);
    }
    free(job->each);
    free(job->error);
    free(job->code);
    queen_batch_free(job->batch);
    free(job);
}

const struct queen_batch *queen_job_batch(const struct queen_job *job) { return job->batch; }
bool queen_job_is_lost(const struct queen_job *job) { return job->lost; }

static void replace(char **text, const char *with)
{
    free(*text);
    *text = with ? mem_strndup(with, strlen(with)) : NULL;
}

void queen_job_settle(struct queen_job *job, size_t index, enum queen_ack_status status,
                      const char *error)
{
    if (index >= job->batch->n)
        return;
    job->each[index].settled = true;
    job->each[index].status = status;
    job->each[index].after_s = 0;
    replace(&job->each[index].error, error);
}

void job_note_try(struct queen_job *job, size_t index, uint64_t now_ms, const char *error)
{
    struct verdict_of *v = &job->each[index];

    if (!v->tries)
        v->tries = mem_new_array(struct job_try, JOB_TRIES);
    if (v->n_tries == JOB_TRIES) {
        free_try(&v->tries[0]);
        memmove(v->tries, v->tries + 1, --v->n_tries * sizeof *v->tries);
    }
    struct job_try *t = &v->tries[v->n_tries++];
    *t = (struct job_try){.at_ms = now_ms, .code = v->code};
    v->code = NULL;
    replace(&t->error, error);
}

void queen_job_settle_after(struct queen_job *job, size_t index, unsigned seconds)
{
    queen_job_settle(job, index, QUEEN_ACK_RETRY, NULL);
    if (index < job->batch->n)
        job->each[index].after_s = seconds;
}

void queen_job_retry_after(struct queen_job *job, unsigned seconds) { job->after_s = seconds; }

void queen_job_error(struct queen_job *job, const char *error) { replace(&job->error, error); }

void queen_job_settle_code(struct queen_job *job, size_t index, const char *error_code)
{
    if (index < job->batch->n)
        replace(&job->each[index].code, error_code);
}

void queen_job_error_code(struct queen_job *job, const char *error_code)
{
    replace(&job->code, error_code);
}

// Through the mailbox also on the loop's thread: the handler may not have returned yet.
void queen_job_finish(struct queen_job *job, enum queen_verdict verdict)
{
    job->verdict = verdict;
    // A client is not closed before its consumers, so its mailbox is open.
    (void)!mailbox_post(&job->client->mailbox, &job->post);
}

void job_verdicts(const struct queen_job *job, struct queen_ack *acks)
{
    static const enum queen_ack_status statuses[] = {
        [QUEEN_DONE] = QUEEN_ACK_COMPLETED, [QUEEN_FAIL] = QUEEN_ACK_FAILED,
        [QUEEN_RETRY] = QUEEN_ACK_RETRY,    [QUEEN_DEAD] = QUEEN_ACK_DLQ,
        [QUEEN_LATER] = QUEEN_ACK_RETRY, // QUEEN_LATER as the final verdict: not handled
    };

    unsigned verdict = job->verdict; // set by the program, so it may be out of range
    enum queen_ack_status status =
        verdict < countof(statuses) ? statuses[verdict] : QUEEN_ACK_RETRY;
    for (size_t i = 0; i < job->batch->n; i++) {
        const struct verdict_of *v = &job->each[i];
        acks[i] = queen_ack_of(&job->batch->items[i], v->settled ? v->status : status);
        acks[i].error = v->settled ? v->error : job->error;
        if (acks[i].status != QUEEN_ACK_COMPLETED)
            acks[i].error_code = v->code ? v->code : v->settled ? NULL : job->code;
        if (acks[i].status == QUEEN_ACK_RETRY)
            acks[i].retry_after_s = v->settled ? v->after_s : job->after_s;
    }
}
