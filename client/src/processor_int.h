// processor_int.h: a processor and its partitions; for processor.c, processor_life.c, slot.c,
// slot_event.c, slot_events.c and slot_settle.c.
//
// Everything belongs to the loop's thread, but for what is said to be atomic or under the lock,
// and the fields of a slot that its handler has while it runs.
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
enum slot_state {
    SLOT_CLOSED,
    SLOT_POPPING,
    SLOT_WAITING,  // after an error, for due_ms
    SLOT_MARKING,  // the first checkpoint is saved before anything is handled
    SLOT_HANDLING, // its handler runs, or waits for a thread
    SLOT_PAUSING,  // an event is tried again at due_ms
    SLOT_ACKING,
};

struct slot_move { // queue NULL: it stays
    char *queue, *partition;
};

// One partition; there is one for each of the queue, owned or not.
struct slot {
    struct queen_processor *processor;
    char *name;
    char *partition_id; // when it was opened last; another one if the queue was made again
    enum slot_state state;
    bool closing;   // comes to CLOSED as soon as it can
    bool is_listed; // in the list that was seen last
    enum queen_closed why;
    int64_t epoch;
    _Atomic uint64_t valid_until_ms; // by our clock: later we are not the owner
    _Atomic bool halt;               // the handler must not begin another event
    bool renewing;                   // the renewal that is under way names it
    struct call *pop;
    uint64_t due_ms;
    uint64_t asked_ms; // since when its owner is asked for it by us; 0: he is not
    bool doubted;      // and since then nothing was settled, nor found empty

    // the batch; the handler's while HANDLING
    struct queen_job *job;
    size_t at;         // event under way: those in front of it are settled
    unsigned tried;    // how often it was handled
    unsigned pause_ms; // > 0: it is to be tried again
    char error[240];
    struct slot_events *events; // under way with on_events
    struct slot_move *moves;    // where each message of the batch goes; NULL: none goes
    struct dedup *dedup;        // handled, but not known to be acknowledged; outlives ownership
    bool reopened;              // nothing was popped since it was opened

    // checkpoints on time or by hand
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
    uint64_t (*now_ms)(void); // goes on while the process sleeps

    uv_timer_t tick;
    struct mailbox_item start, stop, close;
    struct slot **slots; // of all partitions that were ever listed
    unsigned n_slots;
    unsigned n_calls; // requests that will call back
    bool looking, claiming, renewing;
    unsigned n_releasing; // requests
    uint64_t look_due_ms, renew_due_ms, claim_sent_ms;
    bool stopping, released, closing;

    _Atomic unsigned n_owned, n_rebuilds;
    _Atomic uint64_t n_handled, n_duplicates, n_retried, n_moved, n_dead;

    pthread_mutex_t lock; // guards the rest, and checkpoints of slots
    pthread_cond_t changed;
    bool stopped, closed, stop_posted;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

// ---- slot.c ----
void slot_open(struct slot *s, const struct owner_result *claimed, uint64_t valid_until_ms);
void slot_close(struct slot *s, enum queen_closed why); // on_closed is called when it has ended
void slot_tick(struct slot *s, uint64_t now_ms);
static inline bool slot_is_open(const struct slot *s)
{
    return s->state != SLOT_CLOSED && !s->closing;
}
void slot_end(struct slot *s); // nothing is under way: closed, or another pop
void slot_pop(struct slot *s);
void slot_forget_settled(struct slot *s); // a whole batch is known to be settled
// A pop or a settlement has failed, and may have happened for all we know.  If something is
// leased, another pop would wait for that lease to end; claiming the partition anew ends it at
// once, and makes void whatever of it is still on its way.  So: closed, to be opened again.
// Nothing is under way.
void slot_doubt(struct slot *s, const struct queen_error *err);
static inline uint64_t slot_now_ms(const struct slot *s) { return s->processor->now_ms(); }
static inline bool slot_may_go_on(struct slot *s)
{
    return !s->halt && slot_now_ms(s) < s->valid_until_ms;
}

// ---- slot_event.c: on_event ----
enum queen_verdict slot_handle(struct queen_job *job,
                               void *processor); // the handler of the threads
// Settled by what was said about it; counted, and known from now on when it was handled.
void slot_note_settled(struct slot *s, size_t i, enum queen_ack_status status,
                       const char *error);
void slot_note_checkpoint(struct slot *s, const char *transaction_id);

// ---- slot_events.c: on_events ----
void slot_hand_out(struct slot *s);     // calls on_events, or finishes at once
void slot_read_answers(struct slot *s); // after queen_events_done()

// ---- slot_settle.c: acknowledging a batch ----
void slot_settle(struct slot *s);

// ---- processor.c ----
void processor_tick(struct queen_processor *p);
void processor_failed(struct queen_processor *p, const struct queen_error *err); // and heals
void processor_report(struct queen_processor *p, const struct queen_error *err);
// POST <owners>/<action>; body is taken.  done is told once; n_calls counts it.
void processor_post(struct queen_processor *p, const char *action, struct buf *body,
                    queen_response_cb done, void *ctx);
void processor_release(struct queen_processor *p,
                       struct slot *only); // NULL: all that are owned
void processor_heal_init(struct queen_processor *p);

// ---- processor_life.c ----
void processor_stop_if_done(struct queen_processor *p);

#endif
