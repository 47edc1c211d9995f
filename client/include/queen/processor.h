// processor.h: events of a queue with a fixed set of partitions, shared by processes.
//
//      look at all owners ──► claim what is missing ──► each partition: pop ─► events ─► settle
//      ─► pop ...
//            ▲    every 0.5 s                                │
//            └───────────────────────────────────────────────┘  renewed every third of the
//            expiry
//
// Processors of one group share the partitions: each partition has one owner at a time, events
// of a partition are handled one after the other in order.  Dead processors lose their
// partitions when their claims expire; a new one is given its share, one partition at a time,
// by the busiest; on stop everything is handed over at once.  Nothing else moves.
//
// A processor that was asleep past its expiry (SIGSTOP, a paused machine) finds that out by its
// own clock before it handles another event, and the server refuses what it does about the old
// ones: see docs/guide/processor.md, "Fencing".
#ifndef QUEEN_PROCESSOR_H
#define QUEEN_PROCESSOR_H

#include <queen/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queen_processor;

enum queen_outcome {
    QUEEN_HANDLED,
    QUEEN_RETRYABLE, // try again, as .retry says
    QUEEN_HOPELESS,  // into the dead-letter queue
};

struct queen_event {
    const struct queen_delivery *message;
    const char *partition;
    unsigned tried; // how often it was handled before, by this processor
    void *internal;
};

// What the last QUEEN_RETRYABLE or QUEEN_HOPELESS is recorded with; copied.
void queen_event_error(struct queen_event *e, const char *text);
// By hand: all events of the partition up to this one are done.  Sent soon; refused ones are
// told to on_error.
void queen_event_checkpoint(struct queen_event *e);

// ---- many events at once, answered later ----

// Events of one partition, in order; those that were handled already are left out.  It lives
// from on_events to queen_events_done().
//
//      on_events ──► answer, move, ... (later, one thread at a time) ──► queen_events_done
//
// The partition is not popped again before that, and the batch is settled in one request: as
// acknowledgements, or, when something was moved, as one transaction.
struct queen_events {
    const char *partition;
    size_t n;
    const struct queen_delivery *const *messages;
    unsigned tried; // how often these were handled before, by this processor
    void *internal;
};

// What is not answered is delivered again, soon and without counting, and so is what is behind
// it unless it was handled.  With QUEEN_RETRYABLE the event comes again, as .retry says, in a
// batch of those that need it; the others of this batch are done by then, so order among them
// is the handler's business.  error is copied; may be NULL.
void queen_events_answer(struct queen_events *b, size_t i, enum queen_outcome outcome,
                         const char *error);
// The event leaves its partition: it is acknowledged and pushed there, both or neither.
// Copied.
void queen_events_move(struct queen_events *b, size_t i, const char *queue,
                       const char *partition);
// By hand, as queen_event_checkpoint().
void queen_events_checkpoint(struct queen_events *b, size_t i);
// True once the partition is lost or is to be given up: what was not begun need not be.
bool queen_events_is_over(const struct queen_events *b); // any thread
// The last call about this batch; any thread.
void queen_events_done(struct queen_events *b);

// By default 1 s, 5 s, 15 s, then the dead-letter queue; later events of the partition wait.
struct queen_event_retry {
    bool by_queue; // leave it to the queue: acknowledged as failed, its retryPolicy decides
    const unsigned *pauses_ms; // borrowed for the processor's life
    unsigned n_pauses;
};

enum queen_checkpoints {
    QUEEN_CHECKPOINT_BATCH,  // what is acknowledged is done: after every batch
    QUEEN_CHECKPOINT_TIME,   // every checkpoint_ms; what came later is delivered again to the
                             // next owner
    QUEEN_CHECKPOINT_MANUAL, // queen_event_checkpoint()
};

enum queen_closed {
    QUEEN_CLOSED_LOST,    // expired, or taken by somebody else
    QUEEN_CLOSED_GIVEN,   // handed over to a processor that has fewer
    QUEEN_CLOSED_STOPPED, // the processor stops
    QUEEN_CLOSED_REBUILT, // the connection is built anew; it may be opened again
};

// A partition is ours.  The epoch grows with every owner of this partition, so whoever keeps
// something of it elsewhere can tell a late word of an earlier owner.
struct queen_opened {
    const char *partition, *partition_id; // the id is another one if the queue was made anew
    int64_t epoch;
};

// 0 and NULL mean the default.  Texts are copied.
struct queen_processor_options {
    const char *queue, *group; // both needed
    const char *owner;         // "<host>-<pid>-<random>"
    bool greedy;               // claim all free partitions, not only one's share
    unsigned expiry_s;         // 60
    unsigned look_ms;          // 500: how often owners are looked at
    unsigned batch;            // 100 events for each pop
    unsigned threads;          // 4, for on_event; on a client with a loop it runs there
    enum queen_checkpoints checkpoints;
    unsigned checkpoint_ms; // 5000
    struct queen_event_retry retry;
    unsigned dedup_count; // 1000 events of each partition ...
    unsigned dedup_ms;    // ... handled within 5 minutes are not handled again when the
                          // broker did not confirm that they are acknowledged
    const char *subscription_mode; // of a new group: "all" (default) or "new"

    // One of these.  Handlers of one partition are called one after the other, of different
    // ones at the same time.
    enum queen_outcome (*on_event)(struct queen_event *e, void *ctx);
    // On the client's thread: it begins the work and returns.
    void (*on_events)(struct queen_events *b, void *ctx);
    // The following on the client's thread; may be NULL.
    void (*on_error)(const struct queen_error *err, void *ctx);
    void (*on_opened)(const struct queen_opened *o, void *ctx);
    void (*on_closed)(const char *partition, enum queen_closed why, void *ctx);
    // on_events: the batch is settled, or was given back; another may come.  known false: the
    // server has not said so, and it may still happen.
    void (*on_settled)(const char *partition, bool known, void *ctx);
    void (*on_stopped)(void *ctx);
    void *ctx;
};

// Starts at once.  Given: queen_processor_free(), or queen_processor_close() on a loop.  The
// client is borrowed; its connections are built anew when the processor heals itself.
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

// The event that is being handled comes to its end; what is behind it in its batch is given
// back (on_events: the batch comes to its end); all partitions are given up.  Returns at once;
// any thread.
void queen_processor_stop(struct queen_processor *p);
// Stops, waits, frees.  Not from a handler.
void queen_processor_free(struct queen_processor *p);
void queen_processor_close(struct queen_processor *p, void (*closed)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
