// consumer.h: taking messages for as long as there are any.
//
//      pop (long poll) ──► handler ──► acknowledge ──► pop ...      concurrency times at once
//                             │
//                             └─ the lease is extended meanwhile, if asked for
//
// On a client with a thread each of the concurrent loops has a thread of its own for its
// handler, which may block.  On a client with a loop the handler runs there: it starts work,
// returns QUEEN_LATER and calls queen_job_finish() when that is done.
#ifndef QUEEN_CONSUMER_H
#define QUEEN_CONSUMER_H

#include <queen/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queen_consumer;
struct queen_job; // a batch in the hands of a handler

enum queen_verdict {
    QUEEN_DONE,  // acknowledge
    QUEEN_FAIL,  // counts as a failure; after the queue's retries the dead-letter queue
    QUEEN_RETRY, // deliver again, without counting
    QUEEN_DEAD,  // into the dead-letter queue
    QUEEN_LATER, // queen_job_finish() will say
};

// The verdict is for all messages that queen_job_settle() was not called for.
typedef enum queen_verdict (*queen_handler)(struct queen_job *job, void *ctx);

const struct queen_batch *queen_job_batch(const struct queen_job *job); // borrowed
// For one message; the error is copied and goes with a failed or dead one.
void queen_job_settle(struct queen_job *job, size_t index, enum queen_ack_status status,
                      const char *error);
// The error of those the verdict is for; copied.
void queen_job_error(struct queen_job *job, const char *error);
// Has the lease been lost?  Then others have the messages too, and acknowledging is refused.
bool queen_job_is_lost(const struct queen_job *job);
// After QUEEN_LATER, once, from any thread.
void queen_job_finish(struct queen_job *job, enum queen_verdict verdict);

struct queen_consumer_options {
    struct queen_pop pop;    // what to take; texts are copied
    bool no_wait;            // do not long-poll (pop.wait is not looked at)
    unsigned concurrency;    // 1
    unsigned renew_every_ms; // extend leases of running handlers this often; 0: not
    unsigned renew_seconds;  // by how much; 60
    uint64_t limit;          // stop after so many messages; 0: never
    unsigned idle_ms;        // stop when there was nothing to handle for so long; 0: never
    queen_handler handler;
    // What went wrong: a pop, an acknowledgement, a lost lease.  The consumer goes on after
    // what a retry can cure, else it stops.  Borrowed; on the client's thread; may be NULL.
    void (*on_error)(const struct queen_error *err, void *ctx);
    void (*on_stopped)(
        void *ctx); // on the client's thread, after the last handler; may be NULL
    void *ctx;
};

// Starts at once.  Given: queen_consumer_free(), or queen_consumer_close() on a loop.
struct queen_consumer *queen_consumer_new(struct queen_client *c,
                                          const struct queen_consumer_options *o,
                                          struct queen_error *err);

// No more pops; handlers that run come to their end and are acknowledged; messages that arrive
// in the meantime are given back.  Returns at once; from any thread, handlers included.
void queen_consumer_stop(struct queen_consumer *c);
// Blocks until it has stopped: by queen_consumer_stop(), limit, idle_ms, or an error that it
// cannot go on after, which is the result.
int queen_consumer_wait(struct queen_consumer *c, struct queen_error *err);
// Messages given to handlers so far.
uint64_t queen_consumer_count(const struct queen_consumer *c);

// Stops, waits, frees.  Not from a handler.
void queen_consumer_free(struct queen_consumer *c);
void queen_consumer_close(struct queen_consumer *c, void (*closed)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
