// consumer.h: consumes messages continuously and calls a handler for each batch.
//
//     pop (long poll) ──► handler ──► acknowledge ──► pop ...      concurrency times at once
//                            │
//                            └─ the lease is extended meanwhile, if configured
//
// On an ordered queue the loops work on different partitions. On a work queue (ordering "none")
// any number of loops and processes share one partition, and each message is settled on its
// own; with .pop.batch 1 as soon as its handler returns.
//
// On a client with its own thread, each of the concurrent loops calls its handler on a thread
// of its own, so handlers may block. On a client with a loop the handler runs on that loop: it
// starts the work, returns QUEEN_LATER, and calls queen_job_finish() when the work is done.
#ifndef QUEEN_CONSUMER_H
#define QUEEN_CONSUMER_H

#include <queen/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queen_consumer;
struct queen_job; // a batch that is being handled

enum queen_verdict {
    QUEEN_DONE,  // acknowledge
    QUEEN_FAIL,  // count a failure; after the queue's retries the message is dead-lettered
    QUEEN_RETRY, // deliver again, without counting
    QUEEN_DEAD,  // dead-letter
    QUEEN_LATER, // queen_job_finish() will be called with the verdict
};

// The verdict applies to all messages without a queen_job_settle() call.
typedef enum queen_verdict (*queen_handler)(struct queen_job *job, void *ctx);

const struct queen_batch *queen_job_batch(const struct queen_job *job); // borrowed
// Sets the status of one message. error is copied and recorded with a failed or dead-lettered
// message.
void queen_job_settle(struct queen_job *job, size_t index, enum queen_ack_status status,
                      const char *error);
// Sets the error text for the messages that the verdict applies to; copied.
void queen_job_error(struct queen_job *job, const char *error);
// The same for the error code (see struct queen_ack): of one message, and of those that the
// verdict applies to. Copied; sent unless the message is completed.
void queen_job_settle_code(struct queen_job *job, size_t index, const char *error_code);
void queen_job_error_code(struct queen_job *job, const char *error_code);
// For work queues (ordering "none"): returns message `index` like QUEEN_ACK_RETRY, to be
// delivered again after so many seconds, 7 days at most. Other messages of the batch are not
// affected.
void queen_job_settle_after(struct queen_job *job, size_t index, unsigned seconds);
// The same for the messages that the verdict applies to, if it is QUEEN_RETRY.
void queen_job_retry_after(struct queen_job *job, unsigned seconds);
// Whether the lease has been lost. The messages may then be delivered to other consumers, and
// acknowledgements are refused.
bool queen_job_is_lost(const struct queen_job *job);
// Call once after QUEEN_LATER, from any thread.
void queen_job_finish(struct queen_job *job, enum queen_verdict verdict);

struct queen_consumer_options {
    struct queen_pop pop; // which messages to pop; texts are copied
    bool no_wait;         // do not long-poll (pop.wait is ignored)
    unsigned concurrency; // 1
    unsigned
        renew_every_ms; // interval of lease extensions while a handler runs; 0: no extension
    unsigned renew_seconds; // length of an extension; 60
    uint64_t limit;         // stop after this many messages; 0: no limit
    unsigned idle_ms;       // stop after this time without messages; 0: never
    queen_handler handler;
    // Called for a failed pop or acknowledgement and for a lost lease, on the client's thread;
    // may be NULL. After a retryable error the consumer continues, otherwise it stops.
    void (*on_error)(const struct queen_error *err, void *ctx);
    void (*on_stopped)(
        // On the client's thread, after the last handler has returned; may be NULL.
        void *ctx);
    void *ctx;
};

// Starts at once. Given: queen_consumer_free(), or queen_consumer_close() on a loop.
struct queen_consumer *queen_consumer_new(struct queen_client *c,
                                          const struct queen_consumer_options *o,
                                          struct queen_error *err);

// Stops popping. Running handlers finish and their messages are acknowledged; messages that
// arrive afterwards are released. Returns at once; may be called from any thread, including
// handlers.
void queen_consumer_stop(struct queen_consumer *c);
// Blocks until the consumer has stopped because of queen_consumer_stop(), limit, idle_ms, or an
// error that is not retryable. Returns that error, else 0.
int queen_consumer_wait(struct queen_consumer *c, struct queen_error *err);
// Number of messages passed to handlers so far.
uint64_t queen_consumer_count(const struct queen_consumer *c);

// Stops the consumer, waits for it and frees it. Must not be called from a handler.
void queen_consumer_free(struct queen_consumer *c);
void queen_consumer_close(struct queen_consumer *c, void (*closed)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
