// lanes.h: holds the events of tenants whose database is unavailable.
//
//       partition 7: a b A c B     tenant A is down:  A, B ──► lane "7/A" of <queue>.held
//                                                     a, b, c continue
//
// An event that cannot be applied now moves from its partition to the lane of (partition,
// tenant): acknowledged and pushed in one transaction of the broker.  Later events of that
// tenant follow until the lane is empty, so their order is kept.  Only the owner of the
// partition writes and reads its lanes.  It retries the head of a lane after pauses that grow
// like the Fibonacci numbers.  When the head can be applied, the lane is drained in order.
//
// The control database lists the lanes (platform.held_lane).  A lane is recorded before the
// first event is pushed and deleted after it was found empty.  The next owner of the partition
// starts with these lanes and with those that it finds at the broker (lanes_broker.c).  The
// control database compares epochs (platform.held_partition) and refuses a late call of an
// earlier owner, which could otherwise delete a lane that contains events again.  A lane is
// empty when a mark that its owner pushed is delivered: then no event is in front of it, not
// even a leased one.
#ifndef QUEEN_INGEST_LANES_H
#define QUEEN_INGEST_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include <queen/processor.h>

#include "base/metric.h"
#include "base/span.h"
#include "ingest/stats.h"
#include "ingest/writer.h"
#include "pg/pool.h"

struct lane;
struct lanes;

struct lanes_conf {
    const char *queue; // queue of events; copied.  The lanes are in "<queue>.held"
    const char *group; // copied
    unsigned base_ms;  // first pause
    unsigned cap_ms;   // longest pause
    unsigned batch;    // events per pop
};

struct lanes_stats {
    struct counter opened, closed, held, drained, attempts;
    struct counter replays, replayed; // lanes whose lost events were replayed; these events
    struct counter unreplayed;        // lanes whose lost events could not be replayed
    _Atomic unsigned n_open;
};

struct lanes *lanes_open(uv_loop_t *loop, struct queen_client *broker, struct pg_pool *control,
                         struct tenant_pools *pools, struct writer *writer,
                         struct ingest_stats *events, const struct lanes_conf *conf);
const char *lanes_queue(const struct lanes *l);
const struct lanes_stats *lanes_stats(const struct lanes *l);

// This process now owns the partition: read its lanes from the control database.  loaded is
// called with 0 when they are known, and with a code after each failed attempt, which is
// repeated.  It is not called after lanes_leave().
void lanes_enter(struct lanes *l, const struct queen_opened *o,
                 void (*loaded)(const char *partition, int status, void *ctx), void *ctx);
void lanes_leave(struct lanes *l, const char *partition);

// The lane that events of this tenant must go to, or NULL if they need none.
struct lane *lanes_find(struct lanes *l, const char *partition, span tenant);
// Records a lane in the control database.  Then calls ready with 0 or the error, never from
// inside this call.  replay: the tenant's database lost committed events of this partition;
// the lane applies them before its own.
void lanes_need(struct lanes *l, const char *partition, span tenant, span why, bool replay,
                void (*ready)(int status, void *ctx), void *ctx);
const char *lane_partition(const struct lane *lane); // in lanes_queue()
// An event goes to the lane with the current batch of its partition.  Call lanes_settled() when
// the outcome of that batch is known.
void lane_divert(struct lane *lane);
void lanes_settled(struct lanes *l, const char *partition);

void lanes_tenant_available(struct lanes *l, span tenant); // retries its lanes now
unsigned lanes_pause_ms(unsigned attempt, unsigned base_ms,
                        unsigned cap_ms); // attempt counts from 1

// All partitions must have been left.  closed is called when nothing is in progress.
void lanes_close(struct lanes *l, void (*closed)(void *ctx), void *ctx);

#endif
