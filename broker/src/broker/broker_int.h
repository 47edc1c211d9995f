// broker_int.h: what the files of this folder share.
//
//      queue ─┬─ lane ──────┐
//             └─ group ── consumer (one per lane and group)
//
// A consumer is in exactly one state; READY means "in its group's ready list" (ready.h), which
// is served from the front and refilled at the back: least recently served first, at a cost
// that follows the lanes that have something, not those that exist.
//
//           push, feed, discovery              taken for a pop
//      IDLE ──────────────────────► READY ◄──────────────► CLAIMING
//        ▲                            ▲                     │ │ │
//        └──── nothing there ─────────│─────────────────────┘ │ │
//                      due, released  ├── LEASED ◄─ claimed ──┘ │
//                                due  └── TIMED ◄─ not yet ─────┘
#ifndef QUEEN_BROKER_BROKER_INT_H
#define QUEEN_BROKER_BROKER_INT_H

#include "broker/broker.h"

#include "base/map.h"
#include "batch/due.h"
#include "batch/gate.h"
#include "broker/ready.h"
#include "broker/tally.h"

STAILQ_HEAD(op_list, op);
TAILQ_HEAD(pop_list, pop_op);
TAILQ_HEAD(flight_list, push_flight);
LIST_HEAD(lane_consumers, consumer);
LIST_HEAD(lane_list, lane);

struct lane {
    UT_hash_handle hh; // by name, in its queue
    struct queue *queue;
    int64_t num; // 0: not known yet, or no longer
    uint8_t id[16];
    struct lane_consumers consumers;
    TAILQ_ENTRY(lane) recent; // least recently used first
    unsigned pins;            // items of queued requests that point here
    // pushing
    struct push_item *first, *last; // chain of the batch under construction
    struct lane *next_in_batch;
    struct op_list waiting;   // requests that cannot go because of it: see locked.c
    TAILQ_ENTRY(lane) parked; // of the broker: lanes with such requests
    bool locked;              // by another transaction, at the last check
    unsigned n_behind;        // items of requests in flight that do not carry them
    bool seen_free;           // at the last check, but it has such items
    unsigned blocked_pass;    // an earlier request of this pass waits for the lane
    bool pushing;             // a batch with this lane is in flight
    bool resolving;           // its number is being queried
    bool asking;      // ... in a call, or in the next one; else locked.c repeats the query
    int64_t last_seq; // start of the last cached segment: a hint for the database
    bool limited;     // of a queue with a maxSize: requests go by themselves
    bool careful;     // its claims go the careful way
    bool work;        // of a work queue: see work/claim_work.c
    uint8_t priority; // of its messages: see ready.h
    // Retry lanes (broker/sql/retry/retry_lane.sql): messages of one partition for one group.
    struct lane *origin;      // that partition; NULL: this is one itself
    struct lane_list retries; // the cached retry lanes of a partition
    LIST_ENTRY(lane) of_origin;
    span only;    // the group, in name; SPAN_NONE: a partition, for all groups
    bool refused; // by the last query: the queue has a fixed set without it
    size_t name_len;
    char name[];
};

// Is it why an operation fails with status?  QE_WRONG_PARTITION: of one lane.  Otherwise the
// database is at fault, for all that wait for a number.
static inline bool lane_is_missing(const struct lane *lane, int status)
{
    return status == QE_WRONG_PARTITION ? lane->refused : lane->num == 0;
}

struct queue {
    UT_hash_handle hh;
    struct broker *broker;
    bool work; // by the last claim that found out: a guess for new lanes
    struct lane *lanes;
    struct group *groups;
    unsigned n_lanes;
    uint64_t sealed_until_us; // known to be encrypted until then; 0: not known to be
    unsigned sealed_version;  // house.n_changes when we learnt it
    bool logged_no_key;       // the missing key was logged
    unsigned notified_turn;   // turn of the broker that last notified other servers of it
    struct queue_notes notes; // for record.c
    size_t name_len;
    char name[];
};

// The messages of a consumer under a lease of this broker: see outstanding.c.
struct outstanding {
    UT_hash_handle hh; // by lease, in the broker; only while n is not 0
    uint8_t lease[16];
    uint64_t sum; // of the messages' keys
    unsigned n;
};

enum consumer_state { IDLE, READY, CLAIMING, LEASED, TIMED };

struct consumer {
    UT_hash_handle hh;     // by lane, in its group
    UT_hash_handle hh_num; // by num, in the broker; only while num is not 0
    struct group *group;
    struct lane *lane;
    int64_t num;    // 0: not known yet
    uint32_t fewer; // messages that a claim may take, after an answer was too long; 0: any
    uint64_t handed_over;  // the last push that claimed for it (hand_over.c); 0: none
    int64_t ver, near_seq; // hints for the next claim: see broker/sql/pop/claim.sql; 0: none
    enum consumer_state state;
    bool dirty;         // something came while it was CLAIMING or LEASED
    bool gone;          // deleted in the database while in flight
    bool careful_once;  // its state, not its lane, needs the careful claim
    bool asking;        // its number is being queried
    bool locked;        // the answer: another transaction has locked the partition
    uint8_t misses;     // lease polls in a row that found it leased by others
    uint8_t busy;       // claims in a row that found it locked by another transaction
    struct pop_op *pop; // CLAIMING: for this one
    // Of a work queue; see work/claim_work.c:
    bool working;          // CLAIMING, and other pops of the group wait for the result
    bool resting;          // TIMED: nothing is available until then, unless something is pushed
    uint32_t riders;       // pops that share the next claim
    uint64_t available_us; // when a lease may expire, or a returned message is due; 0: none
    bool available_known;  // an empty claim has named it, and it has not passed yet
    struct consumer *next_target; // of the same pop
    struct due due;               // LEASED, TIMED
    struct outstanding outstanding;
    TAILQ_ENTRY(consumer) ready;
    uint64_t
        turn; // its last claim, of those of the group; UINT64_MAX: the next one is a new turn
    LIST_ENTRY(consumer) of_lane;
    struct pop_list seats; // pops of this partition only
};

// State of the list of partitions of a group, see group_states.c:
//
//      UNKNOWN ──► DISCOVERING ──► KNOWN ──► REDISCOVERING ──► KNOWN
//
// From all of them a change leads back to UNKNOWN; while a discovery is under way to STALE,
// because its rows may be older than the change.
enum group_state {
    GROUP_UNKNOWN,
    GROUP_KNOWN, // its ready list is complete, or a scan is completing it
    GROUP_DISCOVERING,
    GROUP_REDISCOVERING, // known, and a subscription is being recorded
    GROUP_STALE,         // discovering: the rows that come do not count as complete
    GROUP_STATES
};
enum group_event {
    GROUP_ASKED,   // a discovery of all partitions leaves
    GROUP_LEARNT,  // ... its rows make sense
    GROUP_FAILED,  // ... it failed, or they do not
    GROUP_MISSED,  // what is known is not complete any more; a discovery under way is
    GROUP_CHANGED, // nor is that one
    GROUP_EVENTS
};
enum group_scan { SCAN_NONE, SCAN_PAGES, SCAN_TWICE }; // see scan.c

struct group {
    UT_hash_handle hh; // by name, in its queue
    struct queue *queue;
    struct consumer *consumers;
    struct ready ready;
    unsigned n_ready;
    // Limits of a work queue: see work/room.c.
    bool full;      // no partition may deliver more
    unsigned width; // claims that may be in flight at once; 0: any number
    struct due full_due;
    unsigned n_busy;       // CLAIMING, LEASED or TIMED: something is pending
    unsigned n_asking;     // consumers whose number is on its way: they may have something
    unsigned n_unnumbered; // those alone; n_asking also counts a scan and claims of work
    struct pop_list seats; // pops of any partition, first come first served
    LIST_HEAD(, follow) selectors;
    uint8_t state;           // enum group_state
    uint8_t scan;            // enum group_scan
    uint64_t empty_noted_us; // when the watermark was last written
    // The last subscriptionFrom that the database accepted; "": none was given; NULL: the start
    // point must be recorded (or looked up).
    char *checked_from;
    // Evicted when unused: see unused.c.
    TAILQ_ENTRY(group) recent; // least recently used first
    uint64_t used_us;
    unsigned n_pops; // that have not ended
    bool noting;     // in broker.watermarks
    size_t name_len;
    char name[];
};

// Where a pop is.  Only pop_states.c changes it.
enum pop_state {
    POP_UNPLACED,    // on its way to its home, or in a list of pops that are being placed
    POP_LOOKING,     // waits for the change feed
    POP_DISCOVERING, // waits for partitions of its group, or for the queues of its selector
    POP_SEATED,      // in the list of a group, consumer or selector: an answer ends that
    POP_PARKED,      // likewise, until its deadline at the latest
    POP_CLAIMING,    // its claim is queued or in flight
    POP_SERVED,      // messages were rendered, even if none of them could be read
    POP_NOTING,      // waits for the watermark of its group
    POP_LEAVING,     // the client has gone; the call that it waits for ends it
    POP_DONE,
    POP_STATES
};

// Events of a pop.
enum pop_event {
    POP_ON_PLACE,          // it has arrived, or left its seat: find it a place
    POP_ON_UNSEAT,         // its consumer is gone, or its group discovered: to be placed again
    POP_ON_FORGET,         // likewise, and nothing that was found before counts any more
    POP_ON_TAKE,           // consumers with messages were taken for it
    POP_ON_CHANGES,        // the feed was read
    POP_ON_CHANGES_LOST,   // ... could not be read
    POP_ON_DISCOVERED,     // partitions, or queues, were found
    POP_ON_DISCOVERY_LOST, // ... could not be found, but may be in a moment
    POP_ON_ANSWERED,       // all answers that its group has waited for are there
    POP_ON_PAGE,           // a page of partitions was read, and there are more
    POP_ON_RENDER,         // its claim has messages
    POP_ON_TARGET_GONE,    // a claimed consumer was deleted
    POP_ON_TARGET_LOST,    // the claim of a consumer failed
    POP_ON_CLAIM_EMPTY,    // its claim is over; without messages its partition has nothing
    POP_ON_CLAIM_OVER,     // its claim is over; without messages there may be others
    POP_ON_CLAIM_REFUSED,  // its claim was made for another server, and never left
    POP_ON_CLAIM_LOST,     // its claim has failed, but may work in a moment
    POP_ON_RETRIES_LOST,   // likewise, a claim for retries of its partition
    POP_ON_FAILED,         // a call has failed for good
    POP_ON_NOTED,          // the watermark was written
    POP_ON_DEADLINE,
    POP_ON_CANCEL, // its client has gone
    POP_ON_DRAIN,  // the broker stops
    POP_EVENTS
};

// chores.c
enum chore { CHORE_ROTATE, CHORE_FORGET, CHORE_EVICT, CHORE_RETAIN, CHORES };
struct sweep_pass {
    bool evict;                   // else retention
    int64_t after_us, after_lane; // where its last step ended
};

// The operations of one kind at their home: those that wait for a batch, and the gate that
// decides when a batch leaves.
struct op_stage {
    struct gate gate;
    struct op_list queue;
    unsigned n_requests, n_items; // in the queue; n_items: of pushes and acknowledgements only
};

struct broker {
    struct house *house;
    unsigned index;
    uv_loop_t *loop;
    struct broker_conf conf;
    struct broker_stats stats;
    uint64_t dead_logged_s;   // second of the last dlq.added line ...
    unsigned n_dead_unlogged; // ... and the number of dead letters since
    struct pg_pool *pg;
    struct pg_pool_stats pg_stats; // other brokers and the API read it until the house is freed
    struct mailbox mailbox;
    uv_check_t turn;
    uv_timer_t timer;
    unsigned n_handles;
    _Atomic bool up;
    bool away; // the database is known to be
    bool in_turn, again, draining, closing;
    unsigned n_turns; // that have begun
    void (*closed)(void *ctx);
    void *closed_ctx;

    struct queue *queues;
    struct consumer *consumers_by_num, *outstanding;
    TAILQ_HEAD(, lane) recent_lanes;
    TAILQ_HEAD(, group) recent_groups;
    unsigned n_lanes, n_groups;
    struct {
        unsigned lanes, groups, consumers;
    } limits; // above these unused entries are evicted
    struct due unused_due;

    struct op_list finished; // done is called at the end of the turn
    unsigned n_pending, n_parked;
    uint64_t n_arrived; // operations, ever
    struct due_heap due;

    struct op_stage ops[OP_KINDS];
    struct op_list customs_first; // of OP_CUSTOM, before those in its queue
    unsigned push_pass;
    struct flight_list push_flights; // in flight, oldest first; push_int.h
    uint64_t stalled_us;             // since when the database is silent; 0: it answers
    struct due watchdog_due;
    bool probing;
    uint64_t probed_us;
    unsigned n_replay_waits; // pushes that wait for the replay
    struct due replay_wait_due;
    bool pops_stopped;                  // maintenance
    uint64_t n_hand_overs, handed_over; // see hand_over.c
    struct due flags_due;
    unsigned flags_asked; // flags_version at the time of the query
    struct due keys_due;  // keys.c
    bool keys_known, keys_asking;
    unsigned keys_epoch, keys_count;
    struct stored *stored; // NULL: nothing is counted

    struct lane **unresolved; // lanes whose number must be queried
    unsigned n_unresolved, cap_unresolved;
    bool resolving;
    struct lane **alone; // likewise, one by one: others are creating the same names
    unsigned n_alone, cap_alone;
    bool resolving_alone;

    // locked.c
    TAILQ_HEAD(, lane) parked_lanes;
    unsigned n_parked_ops;
    struct lane **locked;
    unsigned n_locked, cap_locked;
    bool locked_probing;
    bool unsorted; // a lock has ended: the pushes must be sorted
    struct due locked_due;
    uint64_t locked_interval_us;
    struct op_list later; // requests that found a consumer locked: they go alone, one at a time
    struct due later_due;
    struct consumer **unnumbered; // consumers likewise
    unsigned n_unnumbered, cap_unnumbered;
    bool numbering;
    uint64_t n_numberings; // answers so far

    // schedule.c
    struct op_list schedule_queue;
    bool scheduling;

    // feed.c
    char *feed_seen;
    bool feed_flying, feed_ready;
    bool feed_again;      // something came that the look under way may have missed
    int64_t feed_emptied; // see queen.changes_since
    unsigned feed_flags_version;
    bool feed_missed; // a pop was parked without having looked: the database was away
    struct pop_list feed_waiting, feed_flying_pops;
    unsigned feed_misses;
    uint64_t feed_asked_us; // when we last looked
    struct due feed_due;

    uint8_t (*give_back)[16]; // leases to be released
    unsigned n_give_back, cap_give_back;
    bool giving_back;

    struct group **watermarks; // groups whose watermark is to be written
    unsigned n_watermarks, cap_watermarks;
    bool noting;
    struct pop_list noting_pops;

    LIST_HEAD(, selector) selectors;
    struct sealer *sealer;  // NULL: no keys
    uint64_t unexpected_us; // when an unexpected result was last logged
    uint64_t failed_us;     // when a failed statement was last logged
    unsigned n_failed;      // since then
    uint64_t unread_us;     // when payloads without a fitting key were last logged
    uint64_t n_unread;      // since then

    struct due chores_due;
    uint64_t chore_us[CHORES]; // when each is to be done next
    struct sweep_pass pass;
    int64_t consumers_walked; // number of the consumer where the last step of a walk ended
    struct due stats_due;
    uint64_t stats_begun_us; // start of the last pass of the statistics

    struct queue_list touched; // see tally.h
    int64_t pg_ahead_us;       // PostgreSQL's clock minus our monotonic one, see broker_pg_us()
    struct recorder *recorder; // NULL: nothing is written
};

struct house {
    unsigned n;
    int32_t origin;               // random number of this process, for the change feed
    uint8_t mark[6];              // inside lease ids: made by this process
    _Atomic unsigned n_selectors; // pops by namespace or task live at broker 0
    _Atomic unsigned n_changes;   // queues configured or deleted through this process
    struct broker **brokers;
    house_notify_cb *notify; // other servers; NULL: there are none
    void *notify_ctx;
    void (*parked)(void *ctx); // a pop has parked; NULL: not needed
    void *parked_ctx;
    _Atomic bool parked_awaited; // call it

    struct timer *timer;
    struct key_table *keys;     // NULL: none are read
    bool keys_protected;        // the settings require authentication
    struct limit_table *limits; // NULL: no stored bytes are counted

    // maintenance.c, buffer.c, replay.c; spool NULL: none of it
    struct spool *spool;
    struct replay_conf replay_conf;
    struct replay *replay;
    _Atomic unsigned flags;         // MAINTENANCE_*
    _Atomic unsigned flags_version; // counts changes: an answer older than one is void
    _Atomic bool flags_known;
};

// ---- broker.c ----
struct broker *house_home(struct house *h, span queue);
// complete calls done of the operation, on the thread of its origin.
void op_begin(struct broker *b, struct op *op, uint8_t kind, op_complete_cb *complete);
void op_go(struct broker *b, struct broker *home, struct op *op,
           void (*arrive)(struct mailbox_item *));
void op_finish(struct broker *home, struct op *op,
               int status); // done will be called at its origin
// false: too much is pending; op was finished with QE_BUSY.
bool op_admit(struct broker *home, struct op *op);
void broker_wake(struct broker *b); // make sure a turn is taken soon
// A call of our own, allocated with its parameters; freed by call_free() in done.
struct call {
    struct pg_call pg;
    struct pg_params params;
    struct broker *broker;
    void *what;
    struct group *group; // for those about one
    uint64_t left_us;
};
struct call *call_new(struct broker *b, const struct pg_statement *statement, void *what);
void call_send(struct call *c, pg_done_cb done);
void pg_watchdog_start(struct broker *b); // pg_watchdog.c: while calls are out
void call_free(struct call *c);
// The rows do not fit the call: logs it, at most once a second.  Gives QE_PG_SHAPE.
int call_unexpected(const struct call *c, const char *detail);
// Logs that PostgreSQL refused the statement, if it did, at most once a second.  For calls
// whose requests are not answered with the error.
void call_failed(const struct call *c, int status, const struct pg_reply *reply);
bool is_outage(int status);                   // the database is away, gone, full or read-only
int64_t broker_pg_us(const struct broker *b); // PostgreSQL's clock, about; since 1970
bool is_worth_retry(int status);              // the same call may work in a moment

// ---- forget.c ----
bool is_of_server(const struct pg_statement *statement); // see pg_call.of_server
void broker_forget(void *b);                             // pg_pool_conf.on_new_server

// ---- lanes.c ----
struct queue *queue_find(struct broker *b, span name);
struct queue *queue_get(struct broker *b, span name); // made if it is not there
struct lane *lane_get(struct broker *b, struct queue *q, span name);
struct lane *lane_get_retry(struct broker *b, struct queue *q, const uint8_t id[16],
                            span partition, span group);
// The lane of a row, with its number.  cols: of num and id, of its name; of the
// partition and group of a retry lane, null for others.
struct lane_cols {
    unsigned num, id, name, partition, group;
};
struct lane *lane_of_row(struct broker *b, struct queue *q, const struct pg_reply *reply,
                         unsigned row, struct lane_cols cols);
bool lane_is_in_row(const struct pg_reply *reply, unsigned row, struct lane_cols cols);
span lane_shown(const struct lane *lane); // the name of its partition
// The cached partitions with the same concurrencyKey, by priority, the highest first.  Returns
// their number.
unsigned lanes_of_key(const struct lane *lane, struct lane *found[LANE_PRIORITIES + 1]);
void lane_set_num(struct broker *b, struct lane *lane, int64_t num, const uint8_t id[16]);
void lane_forget_num(struct broker *b, struct lane *lane); // deleted in the database
void lane_resolve(struct broker *b, struct lane *lane);    // query its number
// Whether requests for the lane can be sent.  If its number was forgotten since the request
// came, this queries it again.
bool lane_is_known(struct broker *b, struct lane *lane);
bool lanes_are_known(struct broker *b, const struct push_item *items, unsigned n);
void lanes_flush(struct broker *b);
void lanes_distrust(struct broker *b, span queue); // the queue may have other options now
void lanes_free(struct broker *b);
// Its number again, in a call that keeps other names waiting for a moment only.
void lane_ask_alone(struct broker *b, struct lane *lane);

// ---- locked.c ----
// op, which is in no queue, waits for the lane; then it returns to the front of queue.
void lane_part_landed(struct broker *b, struct lane *lane); // one less of n_behind
// The first push that has a part for the lane, waits there or at another locked lane (*at) and
// arrived before; NULL: there is none.
struct push_op *lane_parked_push(struct broker *b, struct lane *lane, uint64_t arrival,
                                 struct lane **at);
void lane_take_parked(struct broker *b, struct lane *lane, struct op *op); // it waits no more
void pushes_sort(struct broker *b); // by arrival, after a lock has ended
void lane_park(struct broker *b, struct lane *lane, struct op *op, struct op_list *queue);
void lane_unpark(struct broker *b, struct lane *lane); // what waits for it may go
void pushes_unpark(struct broker *b);                  // all that wait at a lane
void lanes_refuse_parked(struct broker *b);            // closing
// A statement waited for a lock too long, perhaps that of this lane: its requests are sent
// alone until a probe has decided.
void lane_suspect(struct broker *b, struct lane *lane);
void items_suspect(struct broker *b, const struct push_item *items, unsigned n);
void lane_resolved(struct broker *b, struct lane *lane); // its name is not locked any more
// op, which is in no queue and shares no call, found something locked: it goes again from the
// front of queue, in a while.  false: it has waited long enough.
MUST_USE bool op_try_later(struct broker *b, struct op *op, struct op_list *queue);
void op_try_next(struct broker *b); // one of them has got through: the next need not wait
struct lane *lanes_find_locked(const struct push_item *items, unsigned n); // the first, or NULL

// ---- the rest, each the flush of its queue ----
void pushes_flush(struct broker *b);
void pushes_fail_unresolved(struct broker *b, const struct fault *why);
void push_finish(struct broker *b, struct push_op *push, int status);
void acks_flush(struct broker *b);
void renewals_flush(struct broker *b);
void give_back_flush(struct broker *b);
void give_back_add(struct broker *b, const uint8_t lease[16]);
void transactions_flush(struct broker *b);
void transactions_fail_unresolved(struct broker *b, const struct fault *why);
void transaction_finish(struct broker *b, struct tx_op *tx, int status);
void cycles_flush(struct broker *b);
void cycles_fail_unresolved(struct broker *b, const struct fault *why);
void cycle_finish(struct broker *b, struct cycle_op *cycle, int status);
void customs_flush(struct broker *b);

// ---- schedule.c ----
void schedule_add(struct broker *b, struct push_op *push); // its items that are LATER
void schedules_flush(struct broker *b);
void schedules_fail_unresolved(struct broker *b, const struct fault *why);

// ---- timer.c ----
struct timer *timer_new(struct house *h);
void timer_free(struct timer *f);
void timer_start(struct broker *b);
void timer_forget(struct house *h); // of broker 0: look at everything, now
// Something is due in wait_us (0 or less: now); any thread.
void timer_expect(struct house *h, int64_t wait_us);
// The same from the change feed, which includes due messages that other sessions have locked.
void timer_expect_feed(struct house *h, int64_t wait_us);
// For queen.next_due: nothing before this time waits any more.
int64_t timer_from_us(const struct house *h);

// ---- feed.c ----
void feed_look(struct broker *b, struct pop_op *pop); // POP_ON_CHANGES comes
void feed_flush(struct broker *b);
void feed_rearm(struct broker *b);              // there are parked pops: poll
void feed_active(struct broker *b);             // something happened: poll often again
void feed_poll_now(struct broker *b);           // for those who are parked
void feed_prompt(struct broker *b, span queue); // another server has something for it
void feed_forget(struct broker *b);             // where it was does not count any more
void feed_deinit(struct broker *b);

// ---- notify.c ----
void notify_lane(struct broker *b,
                 struct lane *lane);             // the home of the lane, and selectors
void notify_queue(struct broker *b, span queue); // it was changed: all brokers
// Something was stored in a lane that need not be known here.
// servers: notify other servers too; once is enough for several lanes of a queue.
struct stored_lane {
    span queue, partition, only; // only: the group of a retry lane; SPAN_NONE: it is none
    int64_t num;
    const uint8_t *id;
};
void notify_stored(struct broker *b, const struct stored_lane *lane, bool servers);
void notify_parked(struct house *h); // a pop has parked: see house_watch_parked()
void notify_poll(struct broker *b);  // read the feed now for parked pops
void notify_released(struct broker *b, span queue, int64_t consumer, bool maybe_more);

// ---- buffer.c ----
bool pushes_may_need_buffer(const struct broker *b);      // some may not go to the database now
void pushes_buffer(struct broker *b);                     // those in the queue
void push_buffer(struct broker *b, struct push_op *push); // taken out of the queue already
// The same, behind earlier requests of its lanes that are still here.
void push_divert(struct broker *b, struct push_op *push);
bool push_may_buffer(const struct broker *b, const struct push_op *push, int status);

// ---- replay.c ----
struct replay *replay_new(struct house *h);
void replay_free(struct replay *r);
void replay_kick(struct house *h); // there may be something to replay; any thread
bool replay_is_busy(const struct replay *r);

// ---- keys.c ----
void keys_start(struct broker *b); // reads them now

// ---- maintenance.c ----
void maintenance_start(struct broker *b);
// A reply carries the flags; version is that of the time of the query.
void maintenance_read(struct broker *b, unsigned flags, unsigned version);

// ---- seal.c ----
bool queue_is_sealed(struct queue *q); // at the last push
void queue_sealed(struct queue *q);    // the database reported it

// ---- chores.c ----
void chores_start(struct broker *b);

// ---- stats.c ----
void stats_start(struct broker *b);
// ---- stored.c ----
void stored_start(struct broker *b);
bool stored_is_counted(const struct broker *b); // stored_add() is to be called
// Messages of a sender were stored at this time, or are due then.
void stored_add(struct broker *b, span subject, int64_t lane, int64_t at_us, uint64_t bytes);
void stored_forget(struct broker *b); // the server has changed
void stored_finish(struct broker *b); // closing: what was counted leaves now
void stored_free(struct broker *b);
// ---- record.c ----
void recorder_start(struct broker *b);
void recorder_finish(struct broker *b); // closing: what was counted leaves now
void recorder_free(struct broker *b);

// The tally of a queue, to be added to.  active: this is worth a row (see tally.h).
static inline struct tally *queue_tally(struct broker *b, struct queue *q, bool active)
{
    q->notes.active = q->notes.active || active;
    if (!q->notes.is_touched) {
        q->notes.is_touched = true;
        LIST_INSERT_HEAD(&b->touched, q, notes.touched);
    }
    return &q->notes.tally;
}

#include "broker/pops.h"

#endif
