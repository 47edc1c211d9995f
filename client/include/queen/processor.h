// processor.h: processes the events of a queue with a fixed set of partitions, shared among
// several processes.
//
//     read all owners ──► claim partitions ──► each partition: pop ─► events ─► settle ...
//           ▲   every 0.5 s                              │
//           └────────────────────────────────────────────┘  renewed every third of the expiry
//
// The processors of one group share the partitions. Each partition has one owner at a time,
// and its events are handled one after another, in order. A dead processor loses its
// partitions when its claims expire. A new processor gets its share from the processors that
// own the most, one partition at a time. A stopping processor releases its partitions at
// once. No other partition moves.
//
// A processor that was suspended past its expiry (SIGSTOP, a paused machine) detects that with
// its own clock before it handles another event, and the server refuses requests about its
// former partitions: see docs/guide/processor.md, "Fencing".
#ifndef QUEEN_PROCESSOR_H
#define QUEEN_PROCESSOR_H

#include <queen/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queen_processor;

enum queen_outcome {
    QUEEN_HANDLED,
    QUEEN_RETRYABLE, // retry, as configured in .retry
    QUEEN_HOPELESS,  // dead-letter
};

struct queen_event {
    const struct queen_delivery *message;
    const char *partition;
    unsigned tried; // how often this processor has handled it before
    void *internal;
};

// Sets the error recorded with the following QUEEN_RETRYABLE or QUEEN_HOPELESS; copied.
void queen_event_error(struct queen_event *e, const char *text);
// The same for the error code: see struct queen_ack.
void queen_event_error_code(struct queen_event *e, const char *error_code);
// Manual checkpoint: all events of the partition up to this one are done. Sent soon; failures
// are reported to on_error.
void queen_event_checkpoint(struct queen_event *e);

// ---- handling a batch of events asynchronously ----

// Events of one partition, in order, without those already handled. Valid from on_events to
// queen_events_done().
//
//     on_events ──► answer, move, ... (later, one thread at a time) ──► queen_events_done
//
// The partition is not popped again before that. The batch is settled in one request: as
// acknowledgements or, if an event was moved, as one transaction.
struct queen_events {
    const char *partition;
    size_t n;
    const struct queen_delivery *const *messages;
    unsigned tried; // how often this processor has handled these before
    void *internal;
};

// Sets the outcome of event i. An event without an outcome is delivered again soon, without
// counting a retry, and so are the events behind it unless they were handled. A
// QUEEN_RETRYABLE event is passed to on_events again, as configured in .retry, in a batch of
// such events. The other events of this batch are done by then, so the handler is responsible
// for the order among them. error is copied; may be NULL.
void queen_events_answer(struct queen_events *b, size_t i, enum queen_outcome outcome,
                         const char *error);
// Sets the error code of event i; copied. See struct queen_ack.
void queen_events_error_code(struct queen_events *b, size_t i, const char *error_code);
// Moves the event to another partition: it is acknowledged and pushed there in one
// transaction. Copied.
void queen_events_move(struct queen_events *b, size_t i, const char *queue,
                       const char *partition);
// Manual checkpoint, like queen_event_checkpoint().
void queen_events_checkpoint(struct queen_events *b, size_t i);
// True once the partition was lost or is to be released: events not started yet can be skipped.
bool queen_events_is_over(const struct queen_events *b); // any thread
// The last call for this batch; any thread.
void queen_events_done(struct queen_events *b);

// Default: retry after 1 s, 5 s and 15 s, then dead-letter; later events of the partition wait.
struct queen_event_retry {
    bool by_queue; // leave it to the queue: acknowledge as failed, and its retryPolicy decides
    const unsigned *pauses_ms; // borrowed for the processor's life
    unsigned n_pauses;
};

enum queen_checkpoints {
    QUEEN_CHECKPOINT_BATCH,  // after every batch: acknowledged events are done
    QUEEN_CHECKPOINT_TIME,   // every checkpoint_ms; the next owner gets later events again
    QUEEN_CHECKPOINT_MANUAL, // queen_event_checkpoint()
};

enum queen_closed {
    QUEEN_CLOSED_LOST,    // expired, or claimed by another processor
    QUEEN_CLOSED_GIVEN,   // handed over to a processor that owns fewer
    QUEEN_CLOSED_STOPPED, // the processor stops
    QUEEN_CLOSED_REBUILT, // the connection is re-established; it may be opened again
};

// A partition that this processor now owns. The epoch grows with every owner of the
// partition. A store that records it can therefore reject late writes of an earlier owner.
struct queen_opened {
    const char *partition;
    const char *partition_id; // changes if the queue is deleted and created again
    int64_t epoch;
};

// 0 and NULL select the default. Texts are copied.
struct queen_processor_options {
    const char *queue, *group; // both are required
    const char *owner;         // "<host>-<pid>-<random>"
    bool greedy;               // claim all free partitions, not only a fair share
    unsigned expiry_s;         // 60
    unsigned look_ms;          // 500: how often owners are read
    unsigned batch;            // 100 events per pop
    unsigned threads;          // 4, for on_event; on a client with a loop it runs there
    enum queen_checkpoints checkpoints;
    unsigned checkpoint_ms; // 5000
    struct queen_event_retry retry;
    unsigned dedup_count; // remember the last 1000 events of each partition ...
    unsigned dedup_ms;    // ... handled within 5 minutes, and skip them if they are delivered
                          // again because their acknowledgement was not confirmed
    const char *subscription_mode; // for a new group: "all" (default) or "new"

    // Set one of these two. Handlers of one partition are called one after another, those of
    // different partitions concurrently.
    enum queen_outcome (*on_event)(struct queen_event *e, void *ctx);
    // Called on the client's thread: starts the work and returns.
    void (*on_events)(struct queen_events *b, void *ctx);
    // The following are called on the client's thread; may be NULL.
    void (*on_error)(const struct queen_error *err, void *ctx);
    void (*on_opened)(const struct queen_opened *o, void *ctx);
    void (*on_closed)(const char *partition, enum queen_closed why, void *ctx);
    // With on_events: the batch is settled or was released, and another may follow. known
    // false: the server has not confirmed it, so it may still take effect.
    void (*on_settled)(const char *partition, bool known, void *ctx);
    void (*on_stopped)(void *ctx);
    void *ctx;
};

// Starts at once. Given: queen_processor_free(), or queen_processor_close() on a loop. The
// client is borrowed; the processor may close and reopen its connections to recover from
// errors.
struct queen_processor *queen_processor_new(struct queen_client *c,
                                            const struct queen_processor_options *o,
                                            struct queen_error *err);

struct queen_processor_stats {
    unsigned owned; // partitions
    uint64_t handled, duplicates, retried, moved, dead;
    unsigned rebuilds;
};
void queen_processor_stats(struct queen_processor *p,
                           struct queen_processor_stats *out); // any thread

// Finishes the current event and releases the rest of its batch (with on_events: finishes the
// batch), then releases all partitions. Returns at once; any thread.
void queen_processor_stop(struct queen_processor *p);
// Stops the processor, waits for it and frees it. Must not be called from a handler.
void queen_processor_free(struct queen_processor *p);
void queen_processor_close(struct queen_processor *p, void (*closed)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
