// lane_int.h: one lane; for lanes.c, lane.c and lane_drain.c.
#ifndef QUEEN_INGEST_LANE_INT_H
#define QUEEN_INGEST_LANE_INT_H

#include <queen/message.h>

#include "base/map.h"
#include "ingest/lanes.h"

//      NOTING ──► PAUSING ──► POPPING ──► WRITING ──► ACKING ──► POPPING ...
//                    ▲           │ empty                 │ failed: PAUSING
//                    │           ▼                       │ the mark came out
//                    └──────── MARKING                   ▼
//      gone, or NOTING again  ◄────────────────────  FORGETTING
enum lane_state {
    LANE_NOTING,
    LANE_PAUSING, // until due_ms
    LANE_POPPING,
    LANE_WRITING,
    LANE_ACKING,
    LANE_MARKING,
    LANE_FORGETTING, // empty: events do not need it any more
};

struct lane_wait { // for NOTING
    void (*ready)(int status, void *ctx);
    void *ctx;
    struct lane_wait *next;
};

struct lane_owner { // as whom we speak of a partition's lanes
    char partition_id[37];
    int64_t epoch;
};

// A partition that is ours: entered at the control database, then its lanes are looked for at
// the broker.
struct entry {
    struct lanes *lanes;
    char *partition;
    struct lane_owner owner;
    int64_t instead_of; // epoch in the control database that is void; 0: none is known
    int64_t refused_by; // epoch that was noted when we were refused
    void (*loaded)(const char *partition, int status, void *ctx);
    void *ctx;
    bool calling, is_loaded, left;
    bool is_owner;   // the broker says that the epoch is ours
    uint64_t due_ms; // to ask again
    struct pg_call call;
    struct pg_params params;
    UT_hash_handle hh;
};

struct lane {
    struct lanes *lanes;
    char *key;              // "<partition>/<tenant>": the partition of the held queue
    span partition, tenant; // in key
    struct lane_owner owner;
    enum lane_state state;
    bool left;      // the partition is not ours any more: ends as soon as it can
    bool diverting; // an event may be on its way with the batch of the partition
    bool needed;    // while FORGETTING: note it again
    struct lane_wait *waits;
    char why[240];

    unsigned attempts;
    uint64_t due_ms;
    uint64_t n_diverted;

    char mark[37];          // pushed and not seen yet; "": none
    uint64_t mark_diverted; // n_diverted when it was pushed

    struct queen_batch *batch;
    struct arena arena;
    struct group group;
    size_t *at; // of each item in the batch
    bool *junk; // of each message of the batch: no event, and no mark either
    bool failed, emptied;

    struct pg_call call;
    struct pg_params params;
    UT_hash_handle hh;
};

struct lanes {
    uv_loop_t *loop;
    struct queen_client *broker;
    struct pg_pool *control;
    struct writer *writer;
    struct ingest_stats *events;
    struct lanes_conf conf;
    char *queue, *held, *group;
    struct lane *open;     // by key
    struct entry *entries; // partitions
    unsigned n_ending;     // lanes that were left, and calls
    uv_timer_t timer;
    struct lanes_stats stats;
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// ---- lane.c ----
struct lane *lane_new(struct lanes *l, span partition, const struct lane_owner *owner,
                      span tenant);
void lane_note(struct lane *lane, span why); // in the control database, then PAUSING
void lane_pause(struct lane *lane, uint64_t ms);
void lane_keep_why(struct lane *lane, span why);
void lane_note_attempt(struct lane *lane, span why); // it failed: PAUSING, for longer
void lane_forget(struct lane *lane);

// ---- lane_drain.c ----
void lane_pop(struct lane *lane);

// ---- lanes.c ----
void lanes_remove(struct lane *lane); // frees it
void lanes_end_one(struct lanes *l);  // n_ending
bool lanes_has(struct lanes *l, span partition, span tenant);

// ---- lanes_broker.c: what the broker knows of a partition; done is told 0 or a code ----
typedef void (*entry_cb)(struct entry *e, int status);
// Opens lanes that hold events and are not open.
void entry_find_lanes(struct entry *e, entry_cb done);
// Sets is_owner.
void entry_check_epoch(struct entry *e, entry_cb done);

#endif
