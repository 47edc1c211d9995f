// ingest.h: events of the queue -> tables of the tenants.
//
//      broker ──► feed (batches of a partition, by tenant) ──► writer ──► tenants' databases
//                  ▲     │ cannot be applied now                 ▲
//                  │     ▼                                       │
//                  └── lanes (held events, tried again) ─────────┘
//
// Each process of the platform runs one; they share the partitions of the queue (see
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
    const char *owner;   // this process
    unsigned partitions; // of a queue that is not there yet
    unsigned batch;      // events of one pop
    unsigned max_events; // of one transaction
    unsigned pause_ms;   // from a batch of a partition to the next, at least
    unsigned limit_ms;   // of one transaction
    unsigned parallel;   // transactions at a time
    unsigned held_base_ms, held_cap_ms;
    unsigned expiry_s; // of ownership
    // May be NULL: a tenant's data changed, as committed.
    void (*on_changed)(span tenant, void *ctx);
    void *ctx;
};

// Starts at once; makes the queues if they are not there, for as long as that takes.
struct ingest *ingest_open(uv_loop_t *loop, struct queen_client *broker,
                           struct pg_pool *control, struct tenant_pools *tenants,
                           const struct ingest_conf *conf);
const struct ingest_stats *ingest_stats(const struct ingest *i);
const struct writer_stats *ingest_writer_stats(const struct ingest *i);
const struct lanes_stats *ingest_lanes_stats(const struct ingest *i);
void ingest_processor_stats(const struct ingest *i, struct queen_processor_stats *out);
const char *ingest_held_queue(const struct ingest *i);
// Batches under way come to their end, partitions are handed over, then closed is called.
void ingest_close(struct ingest *i, void (*closed)(void *ctx), void *ctx);

#endif
