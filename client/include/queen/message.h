// message.h: push, pop, acknowledge, extend a lease, transactions; one request each.
//
// Payloads are JSON text, byte for byte as given.  Names are UTF-8, NUL-terminated.  For many
// messages a second see producer.h, for endless consuming consumer.h.
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
    const char *partition;      // NULL: Default, or what partition_key says
    const char *partition_key;  // queues with a fixed set of partitions: hashed to one of them
    const char *payload;        // JSON; NULL: null
    size_t payload_len;         // 0: strlen(payload)
    const char *transaction_id; // NULL: a new UUIDv7, made once, so that retries are safe
    const char *trace_id;       // a UUID; NULL: none
    const char *traceparent;    // W3C Trace Context; NULL: none
    const char *scheduled_at;   // ISO 8601 with a zone: not before; NULL: at once
    uint64_t delay_ms;          // so much later, by the server's clock; not with scheduled_at
    const char *correlation_id; // what the timeline is asked by; NULL: none
    const char *event_type;     // the queue may have a retry policy for it; NULL: none
    const char *retry_policy;   // JSON object: of this message alone; NULL: the queue's
};

enum queen_push_status {
    QUEEN_QUEUED,
    QUEEN_DUPLICATE, // a message of that transaction id was there already; counts as success
    QUEEN_BUFFERED,  // the server keeps it in a file until its database is back
    QUEEN_FAILED,
    QUEEN_SCHEDULED, // it waits for its time
};

struct queen_push_result {
    enum queen_push_status status;
    const char *transaction_id;
    const char *message_id; // NULL when buffered or failed; of one that waits, to cancel it by
    const char *partition_id; // NULL unless queued or scheduled
    const char *error;        // NULL unless failed
    const char *scheduled_at; // NULL unless scheduled
};

// One for each message, in their order.
struct queen_push_results {
    size_t n;
    const struct queen_push_result *items;
};

// Blocks.  Given: queen_push_results_free().  NULL: nothing is known to be stored; pushing the
// same messages with the same transaction ids again is safe.
struct queen_push_results *queen_push(struct queen_client *c,
                                      const struct queen_message *messages, size_t n,
                                      struct queen_error *err);
void queen_push_results_free(struct queen_push_results *r);

// r is given to the callback; messages are copied.
typedef void (*queen_push_cb)(struct queen_push_results *r, const struct queen_error *err,
                              void *ctx);
void queen_push_start(struct queen_client *c, const struct queen_message *messages, size_t n,
                      queen_push_cb done, void *ctx);

// ---- pop ----

struct queen_pop {
    const char *queue;     // NULL: by namespace and/or task
    const char *partition; // NULL: any
    const char *namespace_, *task;
    const char *group;             // NULL: queue mode
    unsigned batch;                // 0: 1
    unsigned partitions;           // how many may be claimed at once; 0: 1
    bool wait;                     // long poll
    unsigned timeout_ms;           // of the long poll; 0: 30000
    bool auto_ack;                 // delivered is acknowledged
    const char *subscription_mode; // of a new group: "all" or "new"; NULL: the server's default
    const char *subscription_from; // "now" or a time; wins over the mode
    const char *owner;             // of a processor's partition: refused with QUEEN_E_CONFLICT
    int64_t epoch;                 // unless it is the owner in this epoch (see processor.h)
};

// A message as it was delivered.  All text is NUL-terminated and lives as long as the batch.
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
};

struct queen_batch {
    size_t n; // 0: there was nothing
    const struct queen_delivery *items;
    const char *lease_id; // shared by all; "" with auto_ack, NULL when there was nothing
};

// Blocks.  Given: queen_batch_free(), also when it is empty.  NULL: err says why.
struct queen_batch *queen_pop(struct queen_client *c, const struct queen_pop *pop,
                              struct queen_error *err);
void queen_batch_free(struct queen_batch *b); // NULL is fine

typedef void (*queen_pop_cb)(struct queen_batch *b, const struct queen_error *err, void *ctx);
void queen_pop_start(struct queen_client *c, const struct queen_pop *pop, queen_pop_cb done,
                     void *ctx);

// ---- acknowledge ----

enum queen_ack_status {
    QUEEN_ACK_COMPLETED,
    QUEEN_ACK_FAILED, // counts as a retry; after the queue's limit the dead-letter queue
    QUEEN_ACK_DLQ,    // straight to the dead-letter queue
    QUEEN_ACK_RETRY,  // deliver again, without counting
};

struct queen_ack {
    const char *transaction_id, *partition_id;
    const char *lease_id; // NULL or "": not checked
    enum queen_ack_status status;
    const char *error; // why it failed; NULL: nothing
};

struct queen_ack_result {
    bool success;
    bool dlq;          // it is in the dead-letter queue now
    const char *error; // "Invalid or expired lease", ...; NULL when success
};

struct queen_ack_results {
    size_t n;
    size_t n_refused; // of them not successful
    const struct queen_ack_result *items;
};

struct queen_ack queen_ack_of(const struct queen_delivery *d, enum queen_ack_status status);

// Blocks.  Given: queen_ack_results_free().  group NULL: queue mode.  An entry that the server
// refuses is no error of the call: look at n_refused.
struct queen_ack_results *queen_ack(struct queen_client *c, const char *group,
                                    const struct queen_ack *acks, size_t n,
                                    struct queen_error *err);
void queen_ack_results_free(struct queen_ack_results *r);

typedef void (*queen_ack_cb)(struct queen_ack_results *r, const struct queen_error *err,
                             void *ctx);
void queen_ack_start(struct queen_client *c, const char *group, const struct queen_ack *acks,
                     size_t n, queen_ack_cb done, void *ctx);

// ---- leases ----

// 0, or QUEEN_E_LEASE when it is lost.  seconds 0: 60.  A lease never gets shorter.
int queen_extend(struct queen_client *c, const char *lease_id, unsigned seconds,
                 struct queen_error *err);
typedef void (*queen_done_cb)(const struct queen_error *err, void *ctx); // err->code 0: done
void queen_extend_start(struct queen_client *c, const char *lease_id, unsigned seconds,
                        queen_done_cb done, void *ctx);

// ---- transactions: pushes and acknowledgements that happen together or not at all ----

struct queen_transaction;

struct queen_transaction *queen_transaction_new(void); // given: commit or free
// Copied.  A message without transaction id gets one here.
void queen_transaction_push(struct queen_transaction *t, const struct queen_message *m);
// The message's lease must still hold at commit.  group NULL: queue mode.
void queen_transaction_ack(struct queen_transaction *t, const struct queen_delivery *d,
                           const char *group, enum queen_ack_status status, const char *error);
void queen_transaction_free(struct queen_transaction *t);

// 0: all of it has happened; QUEEN_E_CONFLICT: nothing of it, err says why.  t is taken.  Sent
// once: after QUEEN_E_TIMEOUT or QUEEN_E_UNREACHABLE it may have happened.
int queen_transaction_commit(struct queen_client *c, struct queen_transaction *t,
                             struct queen_error *err);
void queen_transaction_commit_start(struct queen_client *c, struct queen_transaction *t,
                                    queen_done_cb done, void *ctx);

#ifdef __cplusplus
}
#endif
#endif
