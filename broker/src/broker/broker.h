// broker.h: the domain: queues, consumer groups, leases.  No HTTP in here.
//
//      op ──► home broker ──► micro-batch ──► PostgreSQL ──► op->done
//                 ▲                                │
//                 └── parked (long poll) ◄─ empty ─┘
//
// There is one broker per loop; all brokers of a process form a house.  Every queue has a home:
// the broker that alone keeps the queue's lanes, groups, ready lists and parked pops, so that
// batches of two workers never meet in the same lane and nothing here needs a lock.  An
// operation may be given to any broker: it travels to its home and back by itself
// (net/mailbox), and `done` is always called on the thread it was given on.
//
// Contract of all operations: they live in the caller's memory, with everything they point to,
// until `done`, which is called exactly once and never from inside the starting function.
// Fields below the line "out" are written by the broker, the rest by the caller.  Spans are
// borrowed until done. status is 0 or a code of err.h; `why` carries a sentence for people
// then.
#ifndef QUEEN_BROKER_BROKER_H
#define QUEEN_BROKER_BROKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metric.h"
#include "base/span.h"
#include "batch/due.h"
#include "batch/gate.h"
#include "db/constants.gen.h"
#include "net/mailbox.h"
#include "pg/pool.h"

struct broker;
struct house;
struct keyring;      // crypt/keyring.h
struct key_table;    // auth/key_table.h
struct limit_table;  // auth/identity_limits.h
struct access_rules; // auth/rules.h

// The first member of every operation; private to the broker.
struct op;
typedef void op_complete_cb(struct op *op);
struct op {
    struct broker *origin; // where it was given
    struct mailbox_item mail;
    STAILQ_ENTRY(op) link;       // one queue of its home at a time
    struct op_list *parked_from; // while it waits for a lane: that queue (locked.c)
    op_complete_cb *complete;    // calls done
    uint64_t since_us;           // monotonic, when it was given
    uint64_t arrival;            // its number at its home: the order in a lane (locked.c)
    uint8_t kind;
    uint8_t tries;
    bool alone;   // shares no batch: one of its neighbours was bad, or it must be whole
    bool waited;  // for a consumer that was locked (locked.c)
    bool whole;   // all or nothing (queues with a maxSize)
    bool unknown; // an earlier try may have been stored; of a pop: or have taken messages
    int status;
    struct fault why;
};

// ---- push ----

// BUFFERED: on this machine's disk; stored when the database takes it (see house_use_spool).
// LATER: pending too, and to be scheduled when the items that are not are stored.
enum push_status {
    PUSH_PENDING,
    PUSH_QUEUED,
    PUSH_DUPLICATE,
    PUSH_BUFFERED,
    PUSH_LATER,
    PUSH_SCHEDULED
};
// When an item is delivered: at once, at a time (microseconds since 1970), or after a while.
enum push_when { PUSH_NOW, PUSH_AT, PUSH_AFTER };

enum { LANE_PRIORITIES = 10 }; // 0 to 9: see ready.h
// The name of a partition ends with a priority, as in "Default~p7".
static inline bool lane_names_priority(span name)
{
    const char *end = name.ptr + name.len;

    return name.len > 3 && end[-3] == '~' && end[-2] == 'p' && end[-1] >= '0' && end[-1] <= '9';
}

struct lane;
struct push_item {
    span queue, partition; // partition "" is taken for "Default" by the caller
    span txid;             // SPAN_NONE: none given; the key below is the id
    span payload;          // valid JSON text
    span producer;         // SPAN_NONE: none
    span meta;        // JSON object of further fields, see segment/codec.h; SPAN_NONE: none
    span correlation; // correlationId among them: it is to be found by that; SPAN_NONE: none
    uint8_t trace[16];
    bool has_trace;
    bool by_key; // partition is a partitionKey yet: the caller's business, before it is given
    uint8_t key[16];  // key_of_text(txid), or a fresh UUIDv7 when no txid was given
    bool txid_is_key; // txid is the text of key (or was not given)
    enum push_when when;
    int64_t when_us; // of PUSH_AT and PUSH_AFTER
    // out
    int64_t due_us; // set when scheduled
    enum push_status status;
    uint8_t message_id[16];   // of this message, or of the one that was there first
    uint8_t partition_id[16]; // set when queued
    // the broker's own
    struct lane *lane;
    struct push_item *next, *same; // next in the lane's batch; earlier item with the same key
    struct push_op *op;
    bool behind; // its request is in flight without it: the lane was locked
};

struct push_op {
    struct op op;
    struct push_item *items;
    unsigned n_items;
    void (*done)(struct push_op *op, int status);
    // the broker's own
    unsigned n_pending, n_later;
    bool waits_replay; // waits for earlier records of its lanes to be replayed
    bool replay;       // comes from the file buffer
    bool diverted;     // goes there, also if the database is back
    bool several;      // has open items of several lanes
    bool has_behind;   // of its items some have `behind`
};
void broker_push(struct broker *b, struct push_op *op);

// ---- pop ----

// A run of messages inside one segment: `n` of them, starting with number `from` (0-based).
struct pop_run {
    span keys, body;
    int64_t first_seq; // of the segment
    int64_t created_us;
    unsigned from, n;
};
struct pop_claim { // messages of one lane
    span queue, partition;
    const uint8_t *partition_id;
    int64_t lane;
    int retries;
    unsigned n_runs, n_messages;
    const struct pop_run *runs;
};
struct pop_result {
    unsigned n_claims, n_messages;
    const struct pop_claim *claims;
    const uint8_t *lease; // 16 bytes; NULL: acknowledged already (autoAck)
    struct broker *home;  // on whose thread this is: for broker_unseal()
};

struct group;
struct consumer;
struct selector;
struct pop_op {
    struct op op;
    span queue;            // SPAN_NONE: any queue of (namespace_, task)
    span partition;        // SPAN_NONE: any
    span namespace_, task; // SPAN_NONE: any
    span group;            // "__QUEUE_MODE__" for none
    span sub_mode, sub_from;
    struct access_rules
        *rules; // of a pop without queue: only queues that they permit; NULL: any
    uint32_t batch, partitions; // both >= 1
    uint32_t timeout_ms;        // for wait
    bool wait, auto_ack;
    // Called on the home's thread, with messages, before done: write the answer into out.  Must
    // touch nothing but *op; result is borrowed until the return.
    void (*render)(struct pop_op *op, const struct pop_result *result);
    // out: n_messages is 0 when there was nothing, or nothing that render could read (status 0
    // too).
    void (*done)(struct pop_op *op, int status);
    struct buf out;
    unsigned n_messages;
    // the broker's own
    struct broker *home;
    TAILQ_ENTRY(pop_op) seat; // of a group, consumer or selector: waits for its turn
    struct group *at;
    struct consumer *only; // a pop of one partition: where it is seated or flies to, else NULL
    struct selector *by;   // of a pop by namespace or task
    struct consumer *targets; // claimed for it, in order
    unsigned n_targets;
    struct due deadline;
    uint8_t lease[16];
    uint8_t state;         // enum pop_state, on the home's thread: see pop_states.c
    bool looked;           // the database was asked after it came; only pop_states.c uses it
    bool has_waited;       // it was parked because nothing was there
    unsigned n_pages;      // of partitions, read while it was seated (scan.c)
    uint64_t until_number; // waits for new partitions until this answer; 0: does not (pop.c)
    uint8_t client;        // enum pop_client, on the origin's thread: see pop.c
    struct mailbox_item cancel_mail;
};
void broker_pop(struct broker *b, struct pop_op *op);
// The client has gone: done comes soon, with UV_ECANCELED, unless it is on its way already.
// Its lease is released.  At most once, on the thread of broker_pop().
void broker_pop_cancel(struct broker *b, struct pop_op *op);
// The answer of a finished pop could not be written: give its lease back.
void broker_give_back(struct broker *b, const uint8_t lease[16]);

// ---- ack ----

// enum ack_status and enum ack_why: broker/sql/settle/statements.sql

struct ack_entry {
    span txid;
    uint8_t partition_id[16];
    bool bad_partition; // partitionId was no UUID: answered "not found" without asking
    enum ack_status status;
    span lease;      // SPAN_NONE: none given
    span error;      // SPAN_NONE: none
    span code;       // of the error, for the retry policy; SPAN_NONE: none
    span worker;     // id of the consumer, for the history of failures; SPAN_NONE: not given
    int32_t after_s; // ACK_RETRY on a work queue: not delivered before; -1: not given
    span tries;      // JSON, see queen.note_tries; SPAN_NONE: none
    // out
    enum ack_why why;
    int8_t released; // 1, 0, or -1: the group has no state for the partition
    bool dead;
    int attempt;           // that has failed; 0: none, or not counted
    int64_t retry_us;      // when the next one is due (unix time); 0: in order, or never
    span queue, partition; // names, in the op's arena; SPAN_NONE: no such partition
    // the broker's own
    uint8_t key[16];
    struct ack_entry *next; // of the same partition
};

struct ack_group;
struct ack_op {
    struct op op;
    struct ack_entry *entries;
    unsigned n_entries;
    span group;
    struct arena *arena; // for the names; used on the home's thread until done
    void (*done)(struct ack_op *op, int status);
    // the broker's own
    struct ack_group *groups;
    unsigned n_groups;
    bool whole; // all that its leases hold, completed
};
void broker_ack(struct broker *b, struct ack_op *op);

// ---- transaction: pushes and acks, all or nothing ----

enum { TX_PUSH, TX_ACK };
struct tx_step { // in request order: which item or entry comes when
    uint8_t kind;
    unsigned index; // into items or entries
};
struct tx_op {
    struct op op;
    struct push_item *items;
    unsigned n_items;
    struct ack_entry *entries; // each with its own group:
    span *entry_groups;
    unsigned n_entries;
    span *required; // requiredLeases
    unsigned n_required;
    struct arena *arena;
    void (*done)(struct tx_op *op, int status); // status 0 also when it did not commit
    // out
    bool committed;
    int failed_item, failed_entry; // index of the one at fault, or -1
    span error;                    // in the arena; when not committed
};
void broker_transaction(struct broker *b, struct tx_op *op);

// ---- cycle: state, sink pushes and source ack of a stream, all or nothing ----

struct cycle_state {
    span key;
    span value; // JSON text; SPAN_NONE: delete
};
struct cycle_ack {
    uint8_t key[16]; // of the last message of what was processed
    uint8_t lease[16];
    bool has_lease;
    bool dead; // into the dead-letter queue with it
    bool release;
    int32_t count;
    span error; // SPAN_NONE: none
};
struct cycle_op {
    struct op op;
    uint8_t query[16], partition[16];
    span group;
    uint8_t hash[16]; // of the whole request
    struct cycle_state *states;
    unsigned n_states;
    struct push_item *items;
    unsigned n_items;
    const struct cycle_ack *ack; // NULL: none
    struct arena *arena;
    void (*done)(struct cycle_op *op, int status); // status 0 also when it did not commit
    // out; after a failure items that are not PUSH_PENDING have the status they would have got
    bool committed, released;
    span error;  // in the arena; when not committed
    span source; // name of the source queue, in the arena; SPAN_NONE: no such partition
};
void broker_cycle(struct broker *b, struct cycle_op *op);

// ---- lease ----

struct renew_op {
    struct op op;
    span lease;
    span txid; // only this message of a work queue; SPAN_NONE: the whole lease
    int32_t seconds;
    void (*done)(struct renew_op *op, int status);
    // out
    int why; // enum renew_why
    int64_t expires_us;
};
void broker_renew(struct broker *b, struct renew_op *op);

// ---- custom: any statement, one per connection ----

struct custom_op {
    struct op op;
    const struct pg_statement *statement;
    struct pg_params params; // the caller frees it
    void (*done)(struct custom_op *op, int status, const struct pg_reply *reply);
    bool first;          // a short lookup that a request needs: slow reports must not delay it
    struct pg_call call; // the broker's own
};
void broker_custom(struct broker *b, struct custom_op *op);

// ---- maintenance ----
//
// Two switches for all brokers of a database, kept in queen.system_state: pushes go to the file
// buffer instead of the database; pops deliver nothing.

enum { MAINTENANCE_PUSH = 1, MAINTENANCE_POP = 2 }; // as in queen.maintenance_flags()
// They were read or written just now: acts in this process at once.
void broker_maintenance_changed(struct broker *b, unsigned flags);
unsigned house_maintenance(const struct house *h); // the last known value; any thread

// There may be new messages in the queue: parked pops check again.
void broker_notify(struct broker *b, span queue);

// ---- other servers of the same database ----

// Events that other servers are notified of. Without a notification they find out later.
enum house_event {
    HOUSE_STORED,     // messages of a queue
    HOUSE_FREED,      // a lease of a queue has ended and something is left
    HOUSE_CONFIGURED, // a queue has other options, or is gone
    HOUSE_MODES,      // maintenance
    HOUSE_KEYS,       // API keys
};
typedef void house_notify_cb(void *ctx, enum house_event what, span queue, span partition);
// Before the loops run.  notify is called on the brokers' threads.
void house_notify_with(struct house *h, house_notify_cb *notify, void *ctx);
// A notification from another server.  Any thread, until house_free().
void house_notified(struct house *h, enum house_event what, span queue);
// Reads the change feed of all brokers with parked pops.  Any thread, until their close.
void house_poll(struct house *h);
uint64_t house_parked(const struct house *h); // pops, in all brokers; as house_poll()
// parked is called on a broker's thread when a pop parks, once after each
// house_await_parked(true).  Set it before the loops run.
void house_watch_parked(struct house *h, void (*parked)(void *ctx), void *ctx);
void house_await_parked(struct house *h, bool await); // any thread

// ---- API keys ----

// Before the loops run: broker 0 keeps the table up to date. keys is borrowed.
void house_use_keys(struct house *h, struct key_table *keys, bool is_protected);
// Before the loops run: limits of stored bytes are counted. limits is borrowed.
void house_use_limits(struct house *h, struct limit_table *limits);
// For those who read the keys themselves: the parameter of the call, and its rows into the
// table. epoch: of the table, before the call was sent.
void keys_put_version(struct key_table *t, struct pg_params *params);
MUST_USE int keys_read(struct key_table *t, const struct pg_reply *reply, unsigned epoch);
// This process has changed the keys, and its own table already: notifies other servers.
void broker_keys_changed(struct broker *b);

// ---- encryption at rest ----

// Payloads of queues with encryptionEnabled are sealed on their way into a segment, whoever
// pushes them.  Readers open them: appends the payload that sealed holds, or sealed itself,
// with a warning in the log, if no key of ours fits or it is bound to another message.  key: of
// the message's transaction id (segment/keys.h); NULL: unknown.  On b's thread.
void broker_unseal(struct broker *b, struct buf *out, span sealed, const uint8_t *key);
// That of a delivered message: its transaction id if it has one, else the key itself. A message
// that was redriven to another queue has an id of its own and keeps the binding of the first:
// NULL.
const uint8_t *broker_seal_key(span txid, const uint8_t *key, uint8_t room[16]);
// For what SQL stores for us: appends plain, sealed.  false, and a warning in the log: there is
// no key, and out is as before.
bool broker_must_seal(const struct broker *b); // refuse it then, unless the queue allows it
MUST_USE bool broker_seal(struct broker *b, struct buf *out, span plain);

// Something about a queue was changed (configure, delete): forget what was learnt about it, and
// look into the change feed wherever pops are parked.  SPAN_NONE: of a queue that only the feed
// knows.
void broker_queue_changed(struct broker *b, span queue);

// ---- scheduled delivery ----

// Something may be due earlier than was known: look.
void broker_times_changed(struct broker *b);

// ---- life ----

// Recording of metrics into tables (record.c); every_ms 0: off.
struct record_conf {
    unsigned sample_ms, every_ms, keep_days;
    unsigned port;
    const char *process; // its name; borrowed for the broker's life
};

struct broker_conf {
    struct pg_pool_conf pg;
    struct batch_conf push, pop, ack, renew, tx, cycle, custom;
    struct limit_conf limit;
    unsigned max_pending; // operations not parked, per broker; QE_BUSY above
    unsigned poll_initial_ms, poll_threshold, poll_max_ms;
    double poll_multiplier;
    // Sweeps of over-age messages: ttl and maxWaitTimeSeconds; retention.  See
    // broker/sql/retention/sweep.sql.
    struct sweep_conf {
        unsigned interval_ms;
        unsigned max_segments; // that one transaction removes
    } evict, retain;
    unsigned timer_probe_ms; // scheduled messages: interval of periodic checks; 0: other
                             // processes deliver them
    unsigned idle_partition_days, history_days; // see broker/sql/retention/tidy.sql
    unsigned attempts_days;                     // see broker/sql/retry/trim_attempts.sql
    unsigned audit_days;                        // see broker/sql/access/trim_audit.sql
    unsigned stats_ms, stats_reconcile_ms, stats_history_days; // stats.c; 0: never
    const struct keyring *keys; // of encryption at rest, borrowed; NULL: none
    bool must_seal; // without keys: refuse what should be encrypted, unless the queue allows it
    unsigned refresh_ms; // what is known of a queue's options is forgotten after this
    struct record_conf record;
};

enum { RETRY_ATTEMPTS = 30 };
enum { OP_PUSH, OP_POP, OP_ACK, OP_TRANSACTION, OP_RENEW, OP_CUSTOM, OP_CYCLE, OP_KINDS };
enum {                // background work, as it is counted when it fails
    BROKER_RETENTION, // messages that are too old
    BROKER_CLEANUP,   // partitions and consumers without use
    BROKER_ROTATION,  // of the change feed and the states of consumers
    BROKER_DELETION,  // the rest of deleted queues
    BROKER_STATISTICS,
    BROKER_CHORES
};

struct broker_stats {                      // one writer, any reader
    struct histogram latency_us[OP_KINDS]; // given to done, parked time of pops excluded
    struct histogram batch_requests[OP_KINDS], batch_items[OP_KINDS], batch_us[OP_KINDS];
    struct counter requests[OP_KINDS], items[OP_KINDS], failed[OP_KINDS];
    struct counter lanes_asked, buffered, duplicates, pops_empty, acks_ok, acks_failed,
        dead_letters, expired, refused, retried, scheduled, fired, exhausted;
    struct counter chores_failed[BROKER_CHORES], feed_reads, feed_failed;
    struct histogram late_us; // of fired messages
    // Retries scheduled, by the attempt that failed; the last one counts all from there on.
    struct counter retries[RETRY_ATTEMPTS];
    _Atomic uint64_t parked, pending, lanes, consumers, queues;
    _Atomic uint64_t stuck_rows; // removed, and vacuum cannot free them: removal waits
};

// n brokers that will share the queues among them; call broker_open n times before any loop
// runs.
struct house *house_new(unsigned n);
void house_free(struct house *h); // after all brokers are closed
// With a file buffer pushes are diverted to it under maintenance and while the database is
// away; without one neither is known.  Before the first broker_open(); s is borrowed for the
// house's life.
struct replay_conf {
    unsigned max_batch;  // records per push
    unsigned refresh_ms; // how often the switches are read
};
struct spool;
void house_use_spool(struct house *h, struct spool *s, const struct replay_conf *conf);
struct buffer_stats {                                 // all 0 without a file buffer
    uint64_t pending, bytes, max_bytes;               // what waits, and how much may
    uint64_t buffered, replayed, refused;             // messages since the start
    uint64_t failed_files, failed_bytes, failed_qos0; // in the folder "failed"
    bool healthy;                                     // the last write worked
    bool db_healthy; // the database is there and takes what is replayed
};
void house_buffer_stats(const struct house *h, struct buffer_stats *out); // any thread

struct broker *broker_open(struct house *h, unsigned index, uv_loop_t *loop,
                           const struct broker_conf *conf);
void broker_resume(struct broker *b);                // for conf.pg.paused: see pg_pool_resume()
const char *broker_pg_error(const struct broker *b); // of its last failed connection; "": none
const struct broker_stats *broker_stats(const struct broker *b);
const struct pg_pool_stats *broker_pg_stats(const struct broker *b);
bool broker_is_up(const struct broker *b); // the database answers; any thread
bool house_is_up(const struct house *h);   // all brokers are; any thread
unsigned house_size(const struct house *h);
struct broker *house_broker(const struct house *h, unsigned i);
// Parked pops are answered empty; later waits do not park.  Work under way goes on.
void broker_drain(struct broker *b);
bool broker_is_quiet(const struct broker *b); // after drain: no work of its own is under way
// After drain, quiet, with no operation left.  Frees b, then calls closed.
void broker_close(struct broker *b, void (*closed)(void *ctx), void *ctx);

#endif
