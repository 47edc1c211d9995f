// message.h: push, pop, acknowledge, extend a lease, commit a transaction; one request each.
//
// Payloads are JSON text and are sent byte for byte. Names are UTF-8, NUL-terminated. To send
// many messages per second see producer.h; to consume continuously see consumer.h.
#ifndef QUEEN_MESSAGE_H
#define QUEEN_MESSAGE_H

#include <stdint.h>

#include <queen/client.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- push ----

struct queen_message {
    const char *queue;
    const char *partition; // NULL: Default, or derived from partition_key
    const char
        *partition_key;  // for queues with a fixed set of partitions: hashed to one of them
    const char *payload; // JSON; NULL: null
    size_t payload_len;  // 0: strlen(payload)
    const char *transaction_id; // NULL: a new UUIDv7, assigned once, so that retries are safe
    const char *trace_id;       // a UUID; NULL: none
    const char *traceparent;    // W3C Trace Context; NULL: none
    const char *scheduled_at;   // ISO 8601 with a zone: earliest delivery; NULL: at once
    uint64_t delay_ms; // delay of the delivery, by the server's clock; not with scheduled_at
    const char *correlation_id; // key for looking up the timeline; NULL: none
    const char *event_type;     // selects a retry policy of the queue; NULL: none
    const char *retry_policy;   // JSON object: policy for this message only; NULL: the queue's
    // Takes the place of the partition. The limits of the queue for each key hold for it.
    const char *concurrency_key;
    unsigned priority; // 0 to 9, higher ones first
};

enum queen_push_status {
    QUEEN_QUEUED,
    QUEEN_DUPLICATE, // a message with this transaction id exists already; counts as success
    QUEEN_BUFFERED,  // the server keeps it in a file until its database is available
    QUEEN_FAILED,
    QUEEN_SCHEDULED, // waiting for its time
};

struct queen_push_result {
    enum queen_push_status status;
    const char *transaction_id;
    const char
        *message_id; // NULL when buffered or failed; needed to cancel a scheduled message
    const char *partition_id; // NULL unless queued or scheduled
    const char *error;        // NULL unless failed
    const char *scheduled_at; // NULL unless scheduled
};

// One result per message, in the same order.
struct queen_push_results {
    size_t n;
    const struct queen_push_result *items;
};

// Blocks. Given: queen_push_results_free(). NULL: it is unknown whether messages were
// stored. Pushing the same messages again with the same transaction ids is safe.
struct queen_push_results *queen_push(struct queen_client *c,
                                      const struct queen_message *messages, size_t n,
                                      struct queen_error *err);
void queen_push_results_free(struct queen_push_results *r);

// r is given; messages are copied.
typedef void (*queen_push_cb)(struct queen_push_results *r, const struct queen_error *err,
                              void *ctx);
void queen_push_start(struct queen_client *c, const struct queen_message *messages, size_t n,
                      queen_push_cb done, void *ctx);

// ---- pop ----

struct queen_pop {
    const char *queue;     // NULL: select by namespace and/or task
    const char *partition; // NULL: any
    const char *namespace_, *task;
    const char *group;   // NULL: queue mode
    unsigned batch;      // 0: 1
    unsigned partitions; // most partitions to claim at once; 0: 1
    bool wait;           // long poll
    unsigned timeout_ms; // of the long poll; 0: 30000
    bool auto_ack;       // acknowledge on delivery
    const char
        *subscription_mode; // for a new group: "all" or "new"; NULL: the server's default
    const char *subscription_from; // "now" or a time; overrides the mode
    const char *owner; // for a partition owned by a processor: fails with QUEEN_E_CONFLICT
    int64_t epoch;     // unless `owner` owns it in this epoch (see processor.h)
};

// A delivered message. All text is NUL-terminated and valid as long as the batch.
struct queen_delivery {
    const char *id, *transaction_id;
    const char *queue, *partition, *partition_id;
    const char *group;
    const char *lease_id; // "" with auto_ack
    const char *data;     // JSON
    size_t data_len;
    const char *created_at;   // 2026-02-03T04:05:06.123456Z
    const char *trace_id;     // or NULL
    const char *producer_sub; // or NULL
    const char *traceparent;  // or NULL
    int retry_count;
    int attempt;                 // which delivery this is: 1, and 1 more for each failure
    const char *correlation_id;  // or NULL
    const char *event_type;      // or NULL
    const char *first_failed_at; // like created_at; NULL: no scheduled retry brought it here
    const char *last_error;      // of the failure that scheduled this attempt, or NULL
};

struct queen_batch {
    size_t n; // 0: no message was available
    const struct queen_delivery *items;
    const char *lease_id; // shared by all; "" with auto_ack, NULL for an empty batch
};

// Blocks. Given: queen_batch_free(), also for an empty batch. NULL: err holds the reason.
struct queen_batch *queen_pop(struct queen_client *c, const struct queen_pop *pop,
                              struct queen_error *err);
void queen_batch_free(struct queen_batch *b); // b may be NULL

typedef void (*queen_pop_cb)(struct queen_batch *b, const struct queen_error *err, void *ctx);
void queen_pop_start(struct queen_client *c, const struct queen_pop *pop, queen_pop_cb done,
                     void *ctx);

// ---- acknowledge ----

enum queen_ack_status {
    QUEEN_ACK_COMPLETED,
    QUEEN_ACK_FAILED, // counts as a retry; after the queue's limit the message is dead-lettered
    QUEEN_ACK_DLQ,    // dead-letter at once
    QUEEN_ACK_RETRY,  // deliver again without counting a retry
};

// A failed try of a consumer that has kept the message and handled it again.
struct queen_try {
    uint64_t ago_ms;                // by the consumer's clock
    const char *error, *error_code; // or NULL
};

struct queen_ack {
    const char *transaction_id, *partition_id;
    const char *lease_id; // NULL or "": not checked
    enum queen_ack_status status;
    const char *error; // reason of the failure; NULL: none
    // A short code of the failure. The queue's retryPolicy may list it as nonRetryable, and
    // then the message is dead-lettered at once. NULL: none.
    const char *error_code;
    const char *worker; // who failed, for the timeline; NULL: none
    // With QUEEN_ACK_RETRY on a work queue: seconds before it is delivered again, 7 days at
    // most; 0: at once. An ordered queue refuses it. Not in a transaction.
    unsigned retry_after_s;
    // Recorded in the timeline before the outcome, oldest first; 20 at most. Not in a
    // transaction.
    const struct queen_try *tries;
    size_t n_tries;
};

struct queen_ack_result {
    bool success;
    bool dlq;                    // the message is now in the dead-letter queue
    const char *error;           // "Invalid or expired lease", ...; NULL when success
    int next_attempt;            // number of the attempt that is now scheduled; 0: none
    const char *next_attempt_at; // 2026-02-03T04:05:06.123456Z; NULL: none is scheduled
};

struct queen_ack_results {
    size_t n;
    size_t n_refused; // number of entries without success
    const struct queen_ack_result *items;
};

struct queen_ack queen_ack_of(const struct queen_delivery *d, enum queen_ack_status status);

// Blocks. Given: queen_ack_results_free(). group NULL: queue mode. An entry that the server
// refuses is not an error of the call: check n_refused.
struct queen_ack_results *queen_ack(struct queen_client *c, const char *group,
                                    const struct queen_ack *acks, size_t n,
                                    struct queen_error *err);
void queen_ack_results_free(struct queen_ack_results *r);

typedef void (*queen_ack_cb)(struct queen_ack_results *r, const struct queen_error *err,
                             void *ctx);
void queen_ack_start(struct queen_client *c, const char *group, const struct queen_ack *acks,
                     size_t n, queen_ack_cb done, void *ctx);

// ---- leases ----

// Extends the lease to `seconds` from now (0: 60); never shortens it. Returns 0, or
// QUEEN_E_LEASE if the lease was lost.
int queen_extend(struct queen_client *c, const char *lease_id, unsigned seconds,
                 struct queen_error *err);
typedef void (*queen_done_cb)(const struct queen_error *err, void *ctx); // err->code 0: success
void queen_extend_start(struct queen_client *c, const char *lease_id, unsigned seconds,
                        queen_done_cb done, void *ctx);

// ---- transactions: pushes and acknowledgements, all or nothing ----

struct queen_transaction;

struct queen_transaction *queen_transaction_new(void); // given: commit or free it
// Copied. A message without transaction id gets one here.
void queen_transaction_push(struct queen_transaction *t, const struct queen_message *m);
// The message's lease must still be valid at commit. group NULL: queue mode.
void queen_transaction_ack(struct queen_transaction *t, const struct queen_delivery *d,
                           const char *group, enum queen_ack_status status, const char *error);
// The same with all fields of an acknowledgement; copied.
void queen_transaction_settle(struct queen_transaction *t, const char *group,
                              const struct queen_ack *ack);
void queen_transaction_free(struct queen_transaction *t);

// Takes t. Returns 0 if everything was committed, QUEEN_E_CONFLICT if nothing was; err holds
// the reason. The request is sent once: after QUEEN_E_TIMEOUT or QUEEN_E_UNREACHABLE it may
// have been committed.
int queen_transaction_commit(struct queen_client *c, struct queen_transaction *t,
                             struct queen_error *err);
void queen_transaction_commit_start(struct queen_client *c, struct queen_transaction *t,
                                    queen_done_cb done, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
