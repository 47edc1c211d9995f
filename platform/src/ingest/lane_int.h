// lane_int.h: struct lane and the functions that lanes.c, lane.c, lane_drain.c, lane_replay.c
// and lanes_broker.c share.
#ifndef QUEEN_INGEST_LANE_INT_H
#define QUEEN_INGEST_LANE_INT_H

#include <queen/message.h>

#include "base/map.h"
#include "ingest/lanes.h"

//       RECORDING ──► PAUSING ──► POPPING ──► WRITING ──► ACKING ──► POPPING ...
//                        ▲           │ empty                 │ failed: PAUSING
//                        │           ▼                       │ the mark was delivered
//                        └──────── MARKING                   ▼
//       freed, or RECORDING again  ◄──────────────────  DELETING
//
// If the outcome of RECORDING or DELETING is unknown, the lane goes from PAUSING to DELETING
// until the control database confirms: otherwise its row would stay until the next owner of the
// partition.
//
// If the tenant's database lost events, the lane goes from PAUSING to REPLAYING, then to
// POPPING.
enum lane_state {
    LANE_RECORDING,
    LANE_PAUSING, // until due_ms
    LANE_REPLAYING,
    LANE_POPPING,
    LANE_WRITING,
    LANE_ACKING,
    LANE_MARKING,
    LANE_DELETING, // the lane is empty; new events bypass it
};

struct lane_wait { // a caller that waits for RECORDING
    void (*ready)(int status, void *ctx);
    void *ctx;
    struct lane_wait *next;
};

struct lane_owner { // identifies this owner of a partition in the control database
    char partition_id[37];
    int64_t epoch;
};

// A partition that this process owns.  It is entered in the control database; then the broker
// is queried for lanes that the control database lacks.
struct entry {
    struct lanes *lanes;
    char *partition;
    struct lane_owner owner;
    int64_t instead_of; // invalid epoch in the control database to replace; 0: none
    int64_t refused_by; // later epoch with which the control database refused this owner
    void (*loaded)(const char *partition, int status, void *ctx);
    void *ctx;
    bool calling, is_loaded, left;
    bool is_owner;   // the broker confirms that the epoch is current
    uint64_t due_ms; // time of the next attempt
    struct pg_call call;
    struct pg_params params;
    UT_hash_handle hh;
};

struct lane {
    struct lanes *lanes;
    char *key;              // "<partition>/<tenant>": the partition of the queue of held events
    span partition, tenant; // parts of key
    struct lane_owner owner;
    enum lane_state state;
    bool recorded;  // in the control database or at the broker: events go into the lane
    bool in_doubt;  // not recorded, but the control database may have it: it must be deleted
    bool left;      // the partition has another owner: the lane ends as soon as possible
    bool diverting; // the current batch of the partition may still add an event
    bool needed;    // an event arrived while DELETING: record the lane again
    bool replay;    // the tenant's database lost events: apply them before those in the lane
    bool replay_recorded;
    struct replay *replaying; // while REPLAYING
    struct lane_wait *waits;
    char why[240];

    unsigned attempts;
    uint64_t due_ms;
    uint64_t n_diverted;

    char mark[37];          // id of the mark that was pushed and not yet delivered; "": none
    uint64_t mark_diverted; // n_diverted when the mark was pushed
    uint64_t mark_due_ms;   // a mark that was not delivered by then is pushed again

    struct queen_batch *batch;
    struct arena arena;
    struct bundle bundle;
    size_t *at;           // index in the batch, per item
    const char **invalid; // per message of the batch: the error; NULL: an event or a mark
    bool failed, emptied;

    struct pg_call call;
    struct pg_params params;
    UT_hash_handle hh;
};

struct lanes {
    uv_loop_t *loop;
    struct queen_client *broker;
    struct pg_pool *control;
    struct tenant_pools *pools;
    struct writer *writer;
    struct ingest_stats *events;
    struct lanes_conf conf;
    char *queue, *held, *group;
    struct lane *open;     // by key
    struct entry *entries; // by partition
    unsigned n_ending;     // abandoned lanes and calls in progress
    uv_timer_t timer;
    struct lanes_stats stats;
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// ---- lane.c ----
struct lane *lane_new(struct lanes *l, span partition, const struct lane_owner *owner,
                      span tenant);
void lane_record(struct lane *lane, span why); // in the control database, then PAUSING
void lane_pause(struct lane *lane, uint64_t ms);
void lane_set_reason(struct lane *lane, span why);
void lane_record_failure(struct lane *lane, span why); // then PAUSING, for longer
void lane_delete(struct lane *lane);

// ---- lane_replay.c ----
void lane_replay(struct lane *lane);

// ---- lane_drain.c ----
// The next step of a lane with nothing in progress: record it again, delete it, replay, or pop.
void lane_continue(struct lane *lane);

// ---- lanes.c ----
void lanes_remove(struct lane *lane); // frees the lane
void lanes_end_one(struct lanes *l);  // decrements n_ending
bool lanes_has(struct lanes *l, span partition, span tenant);

// ---- lanes_broker.c: queries the broker about a partition; done receives 0 or a code ----
typedef void (*entry_cb)(struct entry *e, int status);
// Opens the lanes that contain events and are not open yet.
void entry_find_lanes(struct entry *e, entry_cb done);
// Sets is_owner.
void entry_check_epoch(struct entry *e, entry_cb done);

#endif
