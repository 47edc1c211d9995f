// lanes.h: where the events of a tenant wait whose database is away.
//
//      partition 7: a b A c B     tenant A is down:  A, B ──► lane "7/A" of <queue>.held
//                                                    a, b, c go on
//
// An event that cannot be applied now leaves its partition for the lane of partition and
// tenant, acknowledged and pushed in one transaction of the broker; later events of that tenant
// follow it for as long as the lane is not empty, so their order is kept.  The owner of the
// partition is the only one who writes and reads its lanes.  The head of a lane is tried again
// after pauses that grow like Fibonacci's numbers; when it can be applied the lane is drained
// in order.
//
// Which lanes exist stands in the control database (platform.held_lane), noted before anything
// is pushed and forgotten after the lane was seen to be empty: the next owner of the partition
// begins with it, and with those that the broker knows of (lanes_broker.c).  What an earlier
// owner says late (it was frozen, or the control database was away) is refused there by the
// epoch of its ownership (platform.held_partition): else it could make forget a lane that holds
// events again.  A lane is empty when a mark that its owner has pushed comes out: then nothing
// is left in front of it, also not under somebody's lease.
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
    const char *queue; // of events; copied.  The lanes are in "<queue>.held"
    const char *group; // copied
    unsigned base_ms;  // first pause
    unsigned cap_ms;   // longest
    unsigned batch;    // events of one pop
};

struct lanes_stats {
    struct counter opened, closed, held, drained, attempts;
    _Atomic unsigned n_open;
};

struct lanes *lanes_open(uv_loop_t *loop, struct queen_client *broker, struct pg_pool *control,
                         struct writer *writer, struct ingest_stats *events,
                         const struct lanes_conf *conf);
const char *lanes_queue(const struct lanes *l);
const struct lanes_stats *lanes_stats(const struct lanes *l);

// The partition is ours now: its lanes are read from the control database.  loaded is called
// with 0 when they are known, and with a code each time that this has failed and will be tried
// again; never once the partition is left.
void lanes_enter(struct lanes *l, const struct queen_opened *o,
                 void (*loaded)(const char *partition, int status, void *ctx), void *ctx);
void lanes_leave(struct lanes *l, const char *partition);

// The lane that events of this tenant must take, or NULL: they need none.
struct lane *lanes_find(struct lanes *l, const char *partition, span tenant);
// They need one: it is noted in the control database, then ready is told (never from inside
// this call): 0, or that it could not be noted.
void lanes_need(struct lanes *l, const char *partition, span tenant, span why,
                void (*ready)(int status, void *ctx), void *ctx);
const char *lane_partition(const struct lane *lane); // in lanes_queue()
// An event is going there with the batch of its partition; lanes_settled() when it is known
// that that has happened, or will not.
void lane_divert(struct lane *lane);
void lanes_settled(struct lanes *l, const char *partition);

void lanes_tenant_works(struct lanes *l, span tenant); // its lanes are tried now
unsigned lanes_pause_ms(unsigned attempt, unsigned base_ms, unsigned cap_ms); // attempt from 1

// All partitions were left.  closed is called when nothing is under way any more.
void lanes_close(struct lanes *l, void (*closed)(void *ctx), void *ctx);

#endif
