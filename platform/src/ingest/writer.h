// writer.h: writes groups of events in transactions, one at a time per tenant.
//
//       writer_add ──► (wait for more) ──► slot ──► tenant_get ──► write ──► outcomes ──►
//                           ▲                              │                    group->done
//                           └────── later arrivals ◄───────┘
//
// While a tenant waits for a slot or for its transaction, further events for it collect and
// share the next transaction.  So transactions grow with the load of the tenant or the machine,
// and an idle tenant has a short wait.
#ifndef QUEEN_INGEST_WRITER_H
#define QUEEN_INGEST_WRITER_H

#include <uv.h>

#include "base/metric.h"
#include "ingest/group.h"
#include "tenant/pools.h"

struct writer;

struct writer_conf {
    const char *queue;   // copied
    unsigned max_events; // per transaction
    unsigned limit_ms;   // a transaction that takes longer has failed
    unsigned parallel;   // concurrent transactions, slow ones not counted (SLOT_MS)
    // Called after a commit for the tenant.
    void (*on_written)(span tenant, void *ctx);
    void *ctx;
};

struct writer_stats {
    struct counter transactions, retries, failures, behind;
    struct histogram events, us; // per transaction
};

struct writer *writer_open(uv_loop_t *loop, struct tenant_pools *pools,
                           const struct writer_conf *conf);
// Lost events of this partition are about to be replayed to the tenant, so its checkpoint is
// not compared until the next transaction is committed.
void writer_forget(struct writer *w, span tenant, span partition);
// g is borrowed until its done is called.
void writer_add(struct writer *w, struct group *g);
const struct writer_stats *writer_stats(const struct writer *w);
// No group may be in progress.
void writer_close(struct writer *w, void (*closed)(void *ctx), void *ctx);

#endif
