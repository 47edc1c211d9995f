// writer.h: writes bundles of events in transactions, one at a time per tenant.
//
//       writer_add ──► (wait for more) ──► permit ──► tenant_get ──► write ──► outcomes ──►
//                           ▲                              │                    bundle->done
//                           └────── later arrivals ◄───────┘
//
// While a tenant waits for a permit or for its transaction, further events for it collect and
// share the next transaction.  So transactions grow with the load of the tenant or the machine,
// and an idle tenant has a short wait.
#ifndef QUEEN_INGEST_WRITER_H
#define QUEEN_INGEST_WRITER_H

#include <uv.h>

#include "base/metric.h"
#include "ingest/bundle.h"
#include "tenant/pools.h"

struct writer;

struct writer_conf {
    const char *queue;   // copied
    unsigned max_events; // per transaction
    unsigned limit_ms;   // a transaction that takes longer has failed
    unsigned parallel;   // concurrent transactions, slow ones not counted (PERMIT_MS)
    // Called after a commit for the tenant.
    void (*on_written)(span tenant, void *ctx);
    void *ctx;
};

struct writer_stats {
    struct counter transactions, retries, failures, behind;
    struct histogram events, us; // per transaction
};

struct writer *writer_open(uv_loop_t *loop, struct tenant_pools *pools, struct pg_pool *control,
                           const struct writer_conf *conf);
// This process owns one more partition: the stamps of its earlier owner are loaded before the
// next transaction of each tenant.
void writer_reload_stamps(struct writer *w);
// Lost events of this partition are about to be replayed to the tenant, so its checkpoint is
// not compared until the next transaction is committed.
void writer_forget(struct writer *w, span tenant, span partition);
// g is borrowed until its done is called.
void writer_add(struct writer *w, struct bundle *g);
const struct writer_stats *writer_stats(const struct writer *w);
// No bundle may be in progress.
void writer_close(struct writer *w, void (*closed)(void *ctx), void *ctx);

#endif
