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

void job_free(struct queen_job *job)
{
    for (size_t i = 0; i < job->batch->n; i++)
        free(job->each[i].error);
    free(job->each);
    free(job->error);
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
    replace(&job->each[index].error, error);
}

void queen_job_error(struct queen_job *job, const char *error) { replace(&job->error, error); }

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
    }
}
