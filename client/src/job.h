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

enum { JOB_TRIES = 20 }; // the server takes no more

struct job_try {
    uint64_t at_ms; // by the owner's clock
    char *error, *code;
};

struct queen_job {
    struct queen_client *client;
    struct queen_batch *batch; // ours
    struct mailbox_item post;  // from queen_job_finish() to the loop
    void (*finished)(struct queen_job *job);
    void *owner;
    STAILQ_ENTRY(queen_job) waiting; // for a thread

    enum queen_verdict verdict;
    char *error, *code;
    unsigned after_s;   // of QUEEN_RETRY
    struct verdict_of { // of one message
        bool settled;
        enum queen_ack_status status;
        char *error, *code;
        unsigned after_s;
        struct job_try *tries; // before the last one; the latest JOB_TRIES
        unsigned n_tries;
    } * each;
    _Atomic bool lost;
};

// Takes the batch.
struct queen_job *job_new(struct queen_client *c, struct queen_batch *batch,
                          void (*finished)(struct queen_job *job), void *owner);
void job_free(struct queen_job *job);

// Message `index` was handled without success and will be handled again. error is copied; the
// error code set for the message goes with it.
void job_note_try(struct queen_job *job, size_t index, uint64_t now_ms, const char *error);

// The verdict on each message; acks has room for the whole batch.
void job_verdicts(const struct queen_job *job, struct queen_ack *acks);

#endif
