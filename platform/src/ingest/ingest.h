// ingest.h: applies the events of the queue to the tables of the tenants.
//
//       broker ──► intake (batches of a partition, by tenant) ──► writer ──► tenants' databases
//                   ▲     │ tenant unavailable                    ▲
//                   │     ▼                                       │
//                   └── lanes (held events, retried) ─────────────┘
//
// Each platform process runs one.  The processes share the partitions of the queue (see
// queen/processor.h).
#ifndef QUEEN_INGEST_INGEST_H
#define QUEEN_INGEST_INGEST_H

#include <uv.h>

#include <queen/processor.h>

#include "ingest/lanes.h"
#include "ingest/stats.h"
#include "ingest/writer.h"

struct ingest;

struct ingest_conf { // texts are copied
    const char *queue, *group;
    const char *owner;   // name of this process
    unsigned partitions; // number of partitions if the queue must be created
    unsigned batch;      // events per pop
    unsigned max_events; // events per transaction
    unsigned pause_ms;   // minimum time between two batches of a partition
    unsigned limit_ms;   // time limit of a transaction
    unsigned parallel;   // concurrent transactions
    unsigned held_base_ms, held_cap_ms;
    unsigned expiry_s; // of partition ownership
    // Called after a commit that changed the tenant's data.  May be NULL.
    void (*on_changed)(span tenant, void *ctx);
    void *ctx;
};

// Starts immediately.  Creates missing queues and retries until that succeeds.
struct ingest *ingest_open(uv_loop_t *loop, struct queen_client *broker,
                           struct pg_pool *control, struct tenant_pools *tenants,
                           const struct ingest_conf *conf);
const struct ingest_stats *ingest_stats(const struct ingest *i);
const struct writer_stats *ingest_writer_stats(const struct ingest *i);
const struct lanes_stats *ingest_lanes_stats(const struct ingest *i);
void ingest_processor_stats(const struct ingest *i, struct queen_processor_stats *out);
const char *ingest_held_queue(const struct ingest *i);
// Finishes batches in progress, hands the partitions over, then calls closed.
void ingest_close(struct ingest *i, void (*closed)(void *ctx), void *ctx);

#endif
