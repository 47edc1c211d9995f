// job.h: a batch, from the pop to its acknowledgement.
//
//     job_open ──► handler (on a thread, or here) ──► finished ──► acks ──► job_close
//
// Everything except the functions for handlers runs on the loop's thread.
#ifndef QUEEN_CLIENT_JOB_H
#define QUEEN_CLIENT_JOB_H

#include <stdatomic.h>
#include <uv.h>

#include "net/mailbox.h"
#include "queen/consumer.h"

struct queen_job {
    struct queen_client *client;
    struct queen_batch *batch; // ours
    struct mailbox_item post;  // from queen_job_finish() to the loop
    void (*finished)(struct queen_job *job);
    void *owner;
    STAILQ_ENTRY(queen_job) waiting; // for a thread

    enum queen_verdict verdict;
    char *error;
    struct verdict_of { // of one message
        bool settled;
        enum queen_ack_status status;
        char *error;
    } * each;
    _Atomic bool lost;
};

// Takes the batch.
struct queen_job *job_new(struct queen_client *c, struct queen_batch *batch,
                          void (*finished)(struct queen_job *job), void *owner);
void job_free(struct queen_job *job);

// The verdict on each message; acks has room for the whole batch.
void job_verdicts(const struct queen_job *job, struct queen_ack *acks);

#endif
