// processor_int.h: a processor and its partitions; for processor.c, processor_life.c,
// assignment.c, assignment_event.c, assignment_events.c and assignment_settle.c.
//
// Everything belongs to the loop's thread, except fields marked as atomic or under the lock,
// and the fields of a assignment that its handler owns while it runs.
#ifndef QUEEN_CLIENT_PROCESSOR_INT_H
#define QUEEN_CLIENT_PROCESSOR_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "client_int.h"
#include "dedup.h"
#include "event_plan.h"
#include "job.h"
#include "owners.h"
#include "queen/processor.h"
#include "reconnect.h"
#include "threads.h"

//      CLOSED ─claimed─► POPPING ─► (MARKING) ─► HANDLING ◄─► PAUSING
//         ▲                ▲  │                      │
//         │                │  └► WAITING             ▼
//         └─── closing ────┴───────────────────── ACKING
enum assignment_state {
    ASSIGN_CLOSED,
    ASSIGN_POPPING,
    ASSIGN_WAITING,  // after an error, for due_ms
    ASSIGN_MARKING,  // the first checkpoint is saved before any event is handled
    ASSIGN_HANDLING, // its handler runs, or waits for a thread
    ASSIGN_PAUSING,  // an event is retried at due_ms
    ASSIGN_ACKING,
};

struct assignment_move { // queue NULL: it is not moved
    char *queue, *partition;
};

// One partition; there is one assignment per partition of the queue, owned or not.
struct assignment {
    struct queen_processor *processor;
    char *name;
    char *partition_id; // when it was opened last; differs if the queue was created again
    enum assignment_state state;
    bool closing;   // changes to CLOSED as soon as possible
    bool is_listed; // in the last list of owners
    enum queen_closed why;
    int64_t epoch;
    _Atomic uint64_t valid_until_ms; // by our clock: after it we are not the owner
    _Atomic bool halt;               // the handler must not start another event
    bool renewing;                   // named in the renewal in flight
    struct call *pop;
    uint64_t due_ms;
    uint64_t asked_ms; // since when we have requested it from its owner; 0: not requested
    bool doubted;      // nothing was settled or found empty since a failure

    // the batch; belongs to the handler while HANDLING
    struct queen_job *job;
    size_t at;         // current event: those before it are settled
    unsigned tried;    // how often it was handled
    unsigned pause_ms; // > 0: it is to be retried
    char error[240];
    struct assignment_events *events; // current batch of on_events
    struct assignment_move
        *moves;          // destination of each message of the batch; NULL: none is moved
    struct dedup *dedup; // handled, acknowledgement unconfirmed; outlives ownership; NULL: it
                         // was never ours
    bool reopened;       // nothing was popped since it was opened

    // checkpoints by time or manual
    char *checkpoint; // transaction id to save; under the processor's lock
    bool marked;      // one was saved since it was opened
    bool saving;
    uint64_t checkpoint_due_ms;
};

struct queen_processor {
    struct queen_client *client;
    struct queen_processor_options conf; // texts in these:
    char *queue, *group, *owner, *mode;
    char *path; // of the requests about owners
    struct threads *threads;
    struct reconnect reconnect;
    uint64_t (*now_ms)(void); // continues while the machine sleeps

    uv_timer_t tick;
    struct mailbox_item start, stop, close;
    struct assignment **assignments; // all partitions ever listed
    unsigned n_assignments;
    unsigned n_calls; // requests that will call back
    bool looking, claiming, renewing;
    unsigned n_releasing; // requests
    uint64_t look_due_ms, renew_due_ms;
    bool stopping, released, closing;

    _Atomic unsigned n_owned, n_rebuilds;
    _Atomic uint64_t n_handled, n_duplicates, n_retried, n_moved, n_dead;

    pthread_mutex_t lock; // guards the rest, and checkpoints of assignments
    pthread_cond_t changed;
    bool stopped, closed, stop_posted;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// ---- assignment.c ----
void assignment_open(struct assignment *s, const struct owner_result *claimed,
                     uint64_t valid_until_ms);
void assignment_close(struct assignment *s,
                      enum queen_closed why); // calls on_closed when it has ended
void assignment_tick(struct assignment *s, uint64_t now_ms);
static inline bool assignment_is_open(const struct assignment *s)
{
    return s->state != ASSIGN_CLOSED && !s->closing;
}
void assignment_end(struct assignment *s); // nothing is in flight: closes it, or pops again
void assignment_pop(struct assignment *s);
void assignment_forget_settled(struct assignment *s); // a whole batch is confirmed as settled
// A pop or a settlement failed with an unknown outcome. If messages are leased, another pop
// would wait for that lease to end. Claiming the partition again ends it at once and
// invalidates requests still in flight. So close the partition, to be opened again. Nothing
// may be in flight.
void assignment_doubt(struct assignment *s, const struct queen_error *err);
static inline uint64_t assignment_now_ms(const struct assignment *s)
{
    return s->processor->now_ms();
}
static inline bool assignment_may_go_on(struct assignment *s)
{
    return !s->halt && assignment_now_ms(s) < s->valid_until_ms;
}

// ---- assignment_event.c: on_event ----
enum queen_verdict assignment_handle(struct queen_job *job,
                                     void *processor); // the handler of the threads
// Settles an event with this status; counts it, and remembers it if it was handled.
void assignment_note_settled(struct assignment *s, size_t i, enum queen_ack_status status,
                             const char *error);
void assignment_note_checkpoint(struct assignment *s, const char *transaction_id);

// ---- assignment_events.c: on_events ----
void assignment_hand_out(struct assignment *s);     // calls on_events, or finishes at once
void assignment_read_answers(struct assignment *s); // after queen_events_done()

// ---- assignment_settle.c: acknowledging a batch ----
void assignment_settle(struct assignment *s);

// ---- processor.c ----
void processor_tick(struct queen_processor *p);
// reconnects as well
void processor_failed(struct queen_processor *p, const struct queen_error *err);
void processor_report(struct queen_processor *p, const struct queen_error *err);
// POST <owners>/<action>; takes body. done is called once; n_calls counts it.
void processor_post(struct queen_processor *p, const char *action, struct buf *body,
                    queen_response_cb done, void *ctx);
void processor_release(struct queen_processor *p,
                       struct assignment *only); // NULL: all owned partitions
void processor_heal_init(struct queen_processor *p);

// ---- processor_life.c ----
void processor_stop_if_done(struct queen_processor *p);

#endif
